"""Runs that are told to stop, or whose JVM dies: at most one message, an exit code, and nothing left."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recovery.processes import QUICK, Child, Runs

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = """
CREATE STREAM s (a INT, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 'in', follow 'true');
CREATE SINK w USING parquet OPTIONS (path 'w');
INSERT INTO w SELECT a, sum(a) OVER (ROWS 2 PRECEDING) AS x, t FROM s;
SELECT a FROM s;
"""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("1,2026-01-01 10:00:00\n2,2026-01-01 10:00:01\n")
    runs = Runs(tmp_path, SCRIPT, *QUICK)
    yield runs
    runs.end()


def write_and_wait(runs: Runs, child: Child, second: int) -> None:
    """Write one more file, and wait until a micro-batch with it is finished."""
    before = runs.batches
    (runs.directory / "in" / f"{second}.csv").write_text(f"{second},2026-01-01 10:00:0{second}\n")
    assert child.wait_until(lambda: runs.batches > before), child.err


def jvm(child: Child) -> int | None:
    found = [p.pid for p in child.family() if p.parent == child.popen.pid and "SparkSubmit" in p.command]
    return found[0] if found else None


def leftovers(runs: Runs) -> list[str]:
    return sorted(path.name for path in (runs.directory / "scratch").rglob("*"))


def test_killed_then_told_to_stop_then_without_its_jvm(runs: Runs) -> None:
    child = runs.start()
    assert child.wait_until(lambda: runs.batches >= 1), child.err
    child.kill()
    (old,) = (runs.directory / "scratch").glob("millstream-*")
    shared = [Path(line) for line in (old / "outside").read_text().splitlines()]
    assert any(path.exists() for path in shared)

    # The next run sweeps what the killed one left, and ends in order.
    child = runs.start()
    assert child.wait_until(lambda: not old.exists()), child.err
    assert not any(path.exists() for path in shared)
    write_and_wait(runs, child, second=2)
    local = next((runs.directory / "scratch").glob("millstream-*"))
    assert local.stat().st_mode & 0o777 == 0o700
    assert list(local.glob("blockmgr-*"))
    assert not list((runs.directory / "scratch").glob("blockmgr-*"))
    child.popen.terminate()
    assert (child.wait(60), child.err) == (0, "")
    assert leftovers(runs) == []
    time.sleep(2)  # the JVM notices a little later
    assert child.family() == []

    # A dead JVM is one message.
    child = runs.start()
    write_and_wait(runs, child, second=3)
    victim = jvm(child)
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    assert child.wait(60) == 1
    message, *_, hint = child.err.strip().splitlines()
    assert message.endswith("Spark's JVM has ended unexpectedly")
    assert hint.startswith("Hint: if memory ran out")
    assert "Traceback" not in child.err
    assert leftovers(runs) == []


@pytest.mark.parametrize(("number", "after"), [(signal.SIGTERM, 0.0), (signal.SIGINT, 4.0)])
def test_a_signal_during_the_start_ends_at_once(runs: Runs, number: int, after: float) -> None:
    child = runs.start()
    assert child.wait_until(lambda: jvm(child) is not None), child.err
    time.sleep(after)
    child.popen.send_signal(number)
    began = time.monotonic()
    assert (child.wait(60), child.err) == (0, "")
    assert time.monotonic() - began < 20
    assert leftovers(runs) == []
    time.sleep(2)  # the JVM notices a little later
    assert child.family() == []
