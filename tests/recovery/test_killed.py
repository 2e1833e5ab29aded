"""Killed at random moments and started again, a run gives the same results as one that was let alone."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.recovery import sinks
from tests.recovery.bids import (
    PATTERNS,
    QUERIES,
    RISES,
    RIVALS,
    SINKS,
    Answers,
    Bid,
    bids,
    declared,
    expected,
    from_directory,
    from_sections,
    write,
)
from tests.recovery.processes import QUICK, Child, Runs

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

FILES = 6
SCRIPT = declared("../bids") + QUERIES + RISES + RIVALS + SINKS


@pytest.fixture(scope="module")
def stream() -> list[Bid]:
    return bids(seed=3, count=240)


@pytest.fixture(scope="module")
def directory(stream: list[Bid], tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recovery")
    write(directory / "bids", stream, FILES)
    return directory


def answered(runs: Runs, child: Child) -> Answers:
    """The results that a run has printed, and the rows of its sinks."""
    return {
        **from_sections(child.out),
        **{name: sinks.rows(runs.directory / name) for name in ("windows", "late")},
    }


@pytest.fixture(scope="module")
def undisturbed(directory: Path) -> Answers:
    runs = Runs(directory / "undisturbed", SCRIPT, "--format", "csv", *QUICK)
    child = runs.start()
    assert child.wait() == 0, child.err
    return answered(runs, child)


@dataclass(frozen=True)
class Killed:
    """A run that was killed before it could end, and the one that went on to its end."""

    runs: Runs
    last: Child


@pytest.fixture(scope="module")
def killed(directory: Path) -> Killed:
    chance = random.Random(11)
    runs = Runs(directory / "killed", SCRIPT, "--format", "csv", *QUICK)

    # While it reads. Spark gives the task of a dead Python worker to another one, and the run goes on.
    child = runs.start()
    for batches in (2, 5):
        assert child.wait_until(lambda least=batches: runs.batches >= least), child.err
        assert child.kill_python_worker(chance)
    # Some batches are finished, and one or two are on their way.
    assert child.wait_until(lambda: runs.batches >= 8), child.err
    time.sleep(chance.uniform(0, 0.5))
    child.kill()
    finished = runs.batches

    # When everything has been read, and the last windows are about to be closed.
    child = runs.start()
    assert child.wait_until(lambda: runs.is_told_the_end), child.err
    time.sleep(chance.uniform(0, 0.3))
    child.kill()
    assert runs.batches > finished
    assert not child.out

    child = runs.start()
    assert child.wait() == 0, child.err
    return Killed(runs, child)


def in_any_order(answers: Answers, *names: str) -> Answers:
    """Sort results whose rows enter and leave at one instant in no order, and those of sinks."""
    return {**answers, **{name: sorted(answers[name]) for name in names}}


def test_kills_change_nothing(killed: Killed, stream: list[Bid]) -> None:
    found = answered(killed.runs, killed.last)
    without_order = ("q5", "windows", "late")
    assert in_any_order(found, *without_order) == in_any_order(expected(SCRIPT, stream), *without_order)
    assert found["late"], "no tuple was late"


@pytest.mark.soak
def test_a_run_that_is_let_alone_answers_in_the_same_order(killed: Killed, undisturbed: Answers) -> None:
    found = answered(killed.runs, killed.last)
    assert in_any_order(found, "windows", "late") == in_any_order(undisturbed, "windows", "late")


@pytest.mark.soak
def test_a_run_that_has_ended_says_the_same_again(killed: Killed, undisturbed: Answers) -> None:
    child = killed.runs.start()
    assert child.wait() == 0, child.err
    found = answered(killed.runs, child)
    assert in_any_order(found, "windows", "late") == in_any_order(undisturbed, "windows", "late")


@pytest.mark.soak
def test_another_query_cannot_go_on_from_there(killed: Killed) -> None:
    killed.runs.rewrite(SCRIPT.replace("RANGE 5 SECONDS SLIDE", "RANGE 6 SECONDS SLIDE"))
    try:
        child = killed.runs.start("--out", "changed")
        assert child.wait() == 1
    finally:
        killed.runs.rewrite(SCRIPT)
    said = child.err
    assert "query 'q1, q2, q3, q4' is not the one whose checkpoint is in" in said
    assert "RANGE 5 SECONDS" in said
    assert "RANGE 6 SECONDS" in said
    assert "start with a new directory, or run the script as it was" in said
    assert not list((killed.runs.directory / "changed").glob("*"))


@pytest.mark.soak
def test_another_number_of_partitions_cannot_go_on_from_there(killed: Killed) -> None:
    child = killed.runs.start("--out", "changed", "--set", "spark.sql.shuffle.partitions=3")
    assert child.wait() == 1
    assert "partitions, and this run would have 3" in child.err
    assert "add --set spark.sql.shuffle.partitions=" in child.err


@pytest.mark.soak
def test_patterns_that_are_searched_for_together(directory: Path, stream: list[Bid]) -> None:
    """They are one stage: a kill finds all of them in the middle of attempts, and some waiting to be told."""
    chance = random.Random(13)
    script = declared("../bids") + PATTERNS
    runs = Runs(directory / "patterns", script, "--out", "out", *QUICK)
    child = runs.start()
    for batches in (1, 3):
        assert child.wait_until(lambda least=batches: runs.batches >= least), child.err
        time.sleep(chance.uniform(0, 0.5))
        child.kill()
        child = runs.start()
    assert child.wait_until(lambda: bool(child.python_workers())), child.err
    time.sleep(chance.uniform(0, 1.5))
    child.kill()
    assert not (runs.directory / "out" / "q1.csv").exists()
    child = runs.start()
    assert child.wait() == 0, child.err
    found = from_directory(runs.directory / "out")
    assert found == expected(script, stream)
    assert all(found.values())
    assert len(list(runs.checkpoint.glob("*/spark"))) == 1, "they were not started as one query"
