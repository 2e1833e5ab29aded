"""Killed at random moments and started again, a run gives the same results as one that was let alone."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tests.recovery import sinks
from tests.recovery.bids import (
    LATE,
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
    from_csv,
    from_directory,
    write,
)
from tests.recovery.processes import QUICK, Runs

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

FILES = 6
SCRIPT = declared("../bids") + QUERIES + LATE + RISES + RIVALS


@pytest.fixture(scope="module")
def stream() -> list[Bid]:
    return bids(seed=3, count=240)


@pytest.fixture(scope="module")
def directory(stream: list[Bid], tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recovery")
    write(directory / "bids", stream, FILES)
    return directory


@pytest.fixture(scope="module")
def undisturbed(directory: Path) -> Answers:
    runs = Runs(directory / "undisturbed", SCRIPT, "--out", "out", *QUICK)
    child = runs.start()
    assert child.wait() == 0, child.err
    return from_directory(runs.directory / "out")


@pytest.fixture(scope="module")
def killed(directory: Path) -> Runs:
    """A run that was killed three times before it could end."""
    chance = random.Random(11)
    runs = Runs(directory / "killed", SCRIPT, "--out", "out", *QUICK)

    # While it reads: some batches are finished, and one or two are on their way.
    child = runs.start()
    assert child.wait_until(lambda: runs.batches >= 2), child.err
    time.sleep(chance.uniform(0, 0.5))
    child.kill()
    finished = runs.batches

    # As soon as it works again: while it repeats the last batch and gets its state back.
    child = runs.start()
    assert child.wait_until(lambda: bool(child.python_workers())), child.err
    time.sleep(chance.uniform(0, 1.5))
    child.kill()

    # When everything has been read, and the last windows are about to be closed.
    child = runs.start()
    assert child.wait_until(lambda: runs.is_told_the_end), child.err
    time.sleep(chance.uniform(0, 0.3))
    child.kill()
    assert runs.batches > finished
    assert not (runs.directory / "out" / "q1.csv").exists()

    child = runs.start()
    assert child.wait() == 0, child.err
    return runs


def in_any_order(answers: Answers, name: str) -> Answers:
    """What enters and leaves at one instant does so in no order."""
    return {**answers, name: sorted(answers[name])}


def test_three_kills_change_nothing(killed: Runs, stream: list[Bid]) -> None:
    found = from_directory(killed.directory / "out")
    assert in_any_order(found, "q6") == in_any_order(expected(SCRIPT, stream), "q6")
    assert found["q4"], "no tuple was late"


@pytest.mark.soak
def test_a_run_that_is_let_alone_answers_in_the_same_order(killed: Runs, undisturbed: Answers) -> None:
    assert from_directory(killed.directory / "out") == undisturbed


@pytest.mark.soak
def test_a_run_that_has_ended_says_the_same_again(killed: Runs, undisturbed: Answers) -> None:
    child = killed.start("--out", "again")
    assert child.wait() == 0, child.err
    assert from_directory(killed.directory / "again") == undisturbed


@pytest.mark.soak
def test_another_query_cannot_go_on_from_there(killed: Runs) -> None:
    killed.rewrite(SCRIPT.replace("RANGE 5 SECONDS SLIDE", "RANGE 6 SECONDS SLIDE"))
    try:
        child = killed.start("--out", "changed")
        assert child.wait() == 1
    finally:
        killed.rewrite(SCRIPT)
    said = child.err
    assert "query 'q1, q2, q3, q5' is not the one whose checkpoint is in" in said
    assert "it had 'WindowAggregate" in said or "RANGE 5 SECONDS" in said
    assert "start with a new directory, or run the script as it was" in said
    assert not list((killed.directory / "changed").glob("*"))


@pytest.mark.soak
def test_another_number_of_partitions_cannot_go_on_from_there(killed: Runs) -> None:
    child = killed.start("--out", "changed", "--set", "spark.sql.shuffle.partitions=3")
    assert child.wait() == 1
    assert "partitions, and this run would have 3" in child.err
    assert "add --set spark.sql.shuffle.partitions=" in child.err


def test_file_sinks_have_every_row_once_whoever_is_killed(directory: Path, stream: list[Bid]) -> None:
    chance = random.Random(12)
    script = declared("../bids") + SINKS
    runs = Runs(directory / "sinks", script, "--format", "csv", *QUICK)
    child = runs.start()
    # Spark gives the task of a dead Python worker to another one, and the run does not even notice.
    for batches in (2, 5):
        assert child.wait_until(lambda least=batches: runs.batches >= least), child.err
        assert child.kill_python_worker(chance)
    assert child.wait_until(lambda: runs.batches >= 8), child.err
    time.sleep(chance.uniform(0, 0.5))
    child.kill()
    child = runs.start()
    assert child.wait() == 0, child.err

    should = expected(script, stream)
    assert from_csv(child.out) == should["q1"]
    for name in ("windows", "late"):
        assert sorted(sinks.rows(runs.directory / name)) == sorted(should[name])


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
