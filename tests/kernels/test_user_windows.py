"""State of user-defined aggregates: as little as their version needs, and nothing of empty windows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from millstream.kernels.column_names import KEY
from millstream.kernels.core.kernel import Frontier, Kernel, Tuples
from millstream.kernels.registry import make_kernel
from millstream.kernels.udas import compiled_machine
from millstream.program.jit_loader import plain_functions
from tests.physical.planning import stage_of

SUM = """
CREATE AGGREGATE total(x INT) : INT ALGEBRAIC {
    TABLE state(s INT);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE    : { UPDATE state SET s = s + x; }
    TERMINATE  : { INSERT INTO RETURN SELECT s FROM state; }
};"""
HELD = """
CREATE WINDOW AGGREGATE total(x INT) : INT {
    TABLE inwindow(w INT);
    INITIALIZE : { INSERT INTO RETURN VALUES (x); }
    ITERATE    : { INSERT INTO RETURN SELECT CAST(sum(w) AS INT) FROM inwindow; }
    EXPIRE     : { }
};"""


@pytest.fixture(autouse=True, scope="module")
def uncompiled() -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setattr(compiled_machine, "functions", plain_functions)
    yield
    patch.undo()


def kernel(over: str, created: str, calls: tuple[str, ...] = ("total(x)",)) -> Kernel:
    """Return the kernel of some calls over a window, without the reordering before it."""
    stream = "CREATE STREAM s (k INT, x INT, t BIGINT) ORDER BY t;"
    asked = ", ".join(f"{call} OVER (PARTITION BY k {over}) AS r{i}" for i, call in enumerate(calls))
    return make_kernel(stage_of(f"{stream}{created} SELECT k, {asked} FROM s;").kernels[-1])


def tuples(start: int, end: int, keys: int = 1) -> Tuples:
    """One at each instant, for one key after the other."""
    time = np.arange(start, end)
    given = pa.array(time % 7, pa.int32())
    columns = pa.table({KEY: pa.array(time % keys), "a0_0": given, "a1_0": given})
    return Tuples(columns, time, np.zeros(len(time), np.int32), time)


def test_of_panes_only_their_results_are_kept() -> None:
    window = kernel("ROWS 399 PRECEDING SLIDE 100", SUM)
    out = window.process(tuples(0, 1050), Frontier(1050, 0))
    # The instance and the row of the pane that fills, the instance that combines, its row and four panes.
    assert window.rows <= 8
    assert len(out) == 10
    sums = [sum(t % 7 for t in range(max(0, end - 400), end)) for end in range(100, 1001, 100)]
    assert out.columns["r0_0"].to_pylist() == sums


def test_a_tumble_keeps_nothing_between_its_slots() -> None:
    window = kernel("ROWS 9 PRECEDING SLIDE 28", SUM)
    window.process(tuples(0, 280), Frontier(280, 0))
    assert window.rows == 0
    window.process(tuples(280, 300), Frontier(300, 0))
    assert window.rows == 1, "tuples before the window of a slot are counted only"


@pytest.mark.parametrize("created", [SUM, HELD], ids=["derived", "window version"])
@pytest.mark.parametrize("active", ["", " ACTIVE EXPIRATION"])
def test_a_window_that_has_emptied_is_forgotten(created: str, active: str) -> None:
    window = kernel(f"RANGE 10 PRECEDING{active}", created)
    window.process(tuples(0, 100, keys=20), Frontier(99, 0))
    assert window.rows > 0
    window.process(tuples(0, 0), Frontier(500, 0))
    assert window.rows == 0
    added, gone = window.snapshot().added, window.snapshot()
    assert sum(table.num_rows for table in added.values()) <= 20, "that instances have ended is written down"
    assert not gone.added


def test_aggregates_over_the_same_window_keep_its_tuples_once() -> None:
    longest = HELD.replace("total", "longest").replace("sum", "max")
    alone = kernel("ROWS 9 PRECEDING", HELD)
    both = kernel("ROWS 9 PRECEDING", HELD + longest, ("total(x)", "longest(x)"))
    batch = tuples(0, 100, keys=3)
    out, other = (window.process(batch, Frontier(100, 0)) for window in (alone, both))
    assert out.columns["r0_0"].equals(other.columns["r0_0"])
    assert other.columns["r1_0"].to_pylist()[:5] == [0, 1, 2, 3, 4]
    assert alone.rows == both.rows == 3 + 30


def test_one_that_deletes_from_its_window_has_it_for_itself() -> None:
    peak = HELD.replace("total", "peak").replace(
        "ITERATE    : {", "ITERATE : { DELETE FROM inwindow WHERE w < x;"
    )
    both = kernel("ROWS 9 PRECEDING", HELD + peak, ("total(x)", "peak(x)"))
    both.process(tuples(0, 100, keys=3), Frontier(100, 0))
    assert 3 + 30 < both.rows < 2 * (3 + 30)


DELTAS = """
CREATE WINDOW AGGREGATE total(x INT) : BIGINT {
    TABLE inwindow(w INT); TABLE state(s BIGINT);
    INITIALIZE : { INSERT INTO state VALUES (x); INSERT INTO RETURN VALUES (x); }
    ITERATE    : { UPDATE state SET s = s + x; INSERT INTO RETURN SELECT s FROM state; }
    EXPIRE     : { UPDATE state SET s = s - oldest().w; }
};"""


@pytest.mark.parametrize("over", ["ROWS 4 PRECEDING", "RANGE 25 PRECEDING"])
def test_after_a_restart_nobody_is_in_a_window_who_had_left_it(over: str) -> None:
    window, written, meta = kernel(over, DELTAS), dict[str, pa.Table](), dict[str, object]()
    for start in range(0, 100, 20):
        window.process(tuples(start, start + 20, keys=5), Frontier(start + 19, 0))
        change = window.snapshot()
        written = {
            name: table for name, table in written.items() if name not in change.dropped
        } | change.added
        meta = change.meta
    again = kernel(over, DELTAS)
    again.restore(meta, written)
    assert again.rows == window.rows
    one, other = (w.process(tuples(100, 140, keys=5), Frontier(140, 0)) for w in (window, again))
    assert one.columns["r0_0"].to_pylist() == other.columns["r0_0"].to_pylist()


def test_the_tuples_of_a_window_do_not_fill_memory() -> None:
    window = kernel("ROWS 9 PRECEDING", DELTAS)
    for start in range(0, 5_000, 100):
        window.process(tuples(start, start + 100, keys=3), Frontier(start + 99, 0))
    [table] = [t for t in window._windows[0].state.machine.tables if t.is_window]  # type: ignore[attr-defined]
    assert table.layout.queue
    assert len(table["next"]) <= 1_000
