"""Bounds of windows, and columns of streams that have the names of bounds.

The rows are worked out by hand; the engine without Spark and the oracle give the same.
"""

from __future__ import annotations

import random

import pytest

from millstream.errors import AnalysisError
from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

STREAMS = {
    "a": ("k v t", [("x", 10, 1), ("y", 5, 3), ("x", 20, 11), ("y", 2, 12), ("x", 7, 25)]),
    "w": (
        "wid window_end v t",
        [(1, 2, 10, 1), (1, 6, 5, 3), (3, 22, 20, 11), (4, 24, 2, 12), (5, 50, 7, 25)],
    ),
}
INPUTS = {
    name: Arrivals([[Row(dict(zip(columns.split(), row, strict=True))) for row in rows]])
    for name, (columns, rows) in STREAMS.items()
}
SCRIPT = """
CREATE STREAM a (k STRING, v INT, t INT) ORDER BY t;
CREATE STREAM w (wid INT, window_end INT, v INT, t INT) ORDER BY t;
CREATE STREAM sums AS SELECT window_end, k, sum(v) AS n FROM a [TUMBLE 10] GROUP BY k;
CREATE STREAM counts AS SELECT window_end, count(*) AS n FROM a [TUMBLE 10];
"""
Rows = list[tuple[object, ...]]


def check(query: str, expected: Rows) -> None:
    plan = planned(f"{SCRIPT}{query};")
    for number, one in enumerate((plan, optimize(plan), plan)):
        assert why_not(one) is None
        same(simulated.run(one, INPUTS, random.Random(number)), expected)
    same([(row.time, *row.values) for row in interpreted(plan, INPUTS).rows], expected)


GROUPED = {
    "SELECT window_start, window_end, count(*) FROM a [TUMBLE 5] GROUP BY window_start, window_end": [
        *[(5, 0, 5, 2), (15, 10, 15, 2), (30, 25, 30, 1)]
    ],
    "SELECT window_start, k, count(*) FROM a [TUMBLE 10] GROUP BY window_start, k HAVING window_start > 5": [
        *[(20, 10, "x", 1), (20, 10, "y", 1), (30, 20, "x", 1)]
    ],
    "SELECT k, max(v) AS m FROM a [TUMBLE 10] GROUP BY k, wid, window_end HAVING wid = 1 AND max(v) > 2": [
        (20, "x", 20)
    ],
    "SELECT window_start FROM a [TUMBLE 5] GROUP BY window_start": [(5, 0), (15, 10), (30, 25)],
    "SELECT window_start + 1 AS s, count(*) FROM a [TUMBLE 5] GROUP BY window_start + 1": [
        *[(5, 1, 2), (15, 11, 2), (30, 26, 1)]
    ],
    "SELECT window_end AS e, count(*) FROM a [TUMBLE 10] GROUP BY e": [(10, 10, 2), (20, 20, 2), (30, 30, 1)],
    "SELECT window_end, count(*) FROM a [TUMBLE 10] GROUP BY 1": [(10, 10, 2), (20, 20, 2), (30, 30, 1)],
    "SELECT a.window_end, count(*) FROM a [TUMBLE 10] GROUP BY a.window_end": [
        *[(10, 10, 2), (20, 20, 2), (30, 30, 1)]
    ],
    "SELECT wid, k, count(*) FROM a [ROWS 2 SLIDE 2] GROUP BY k, wid": [
        *[(3, 0, "x", 1), (3, 0, "y", 1), (12, 1, "x", 1), (12, 1, "y", 1), (25, 2, "x", 1)]
    ],
    "SELECT window_start, window_end, sum(v) FROM a [SESSION GAP 5] GROUP BY window_end, window_start": [
        *[(8, 1, 8, 15), (17, 11, 17, 22), (30, 25, 30, 7)]
    ],
    "SELECT window_end, complete, count(*) FROM a [TUMBLE 10 EMIT EVERY 4] GROUP BY window_end, complete": [
        *[(4, 10, False, 2), (8, 10, False, 2), (10, 10, True, 2), (12, 20, False, 1), (16, 20, False, 2)],
        *[(20, 20, True, 2), (30, 30, True, 1)],
    ],
    "SELECT e, sum(c) FROM (SELECT window_end AS e, count(*) AS c FROM a [TUMBLE 5] GROUP BY window_end) "
    "[TUMBLE 20] GROUP BY e": [(20, 5, 2), (20, 15, 2), (40, 30, 1)],
    # A condition on bounds inside a derived stream is not one on the bounds of the window outside.
    "SELECT window_end, sum(n) FROM (SELECT k, sum(v) AS n FROM a [TUMBLE 10 PATTR k] GROUP BY k "
    "HAVING window_end > 10) [TUMBLE 20]": [(40, 40, 29)],
}


@pytest.mark.parametrize("query", GROUPED)
def test_bounds_in_group_by(query: str) -> None:
    check(query, GROUPED[query])


COLUMNS = {
    # Windows that are evaluated at every instant have no bounds: the name is the column.
    "SELECT wid, v FROM w [RANGE 10]": [(1, 1, 10), (3, 1, 5), (11, 3, 20), (12, 4, 2), (25, 5, 7)],
    "SELECT DISTINCT wid FROM w [RANGE 10]": [(1, 1), (11, 3), (12, 4), (25, 5)],
    "SELECT window_end FROM w [TUMBLE 10]": [(10, 2), (10, 6), (20, 22), (20, 24), (30, 50)],
    "SELECT CHANGES wid, count(*) FROM w [TUMBLE 10] GROUP BY wid": [
        *[
            (10, "+", 1, 2),
            (20, "-", 1, 2),
            (20, "+", 3, 1),
            (20, "+", 4, 1),
            (30, "-", 3, 1),
            (30, "-", 4, 1),
        ],
        *[(30, "+", 5, 1), (40, "-", 5, 1)],
    ],
    "SELECT x.n, y.k, y.n FROM counts [NOW] x JOIN sums [NOW] y ON x.window_end = y.window_end": [
        *[(10, 2, "x", 10), (10, 2, "y", 5), (20, 2, "x", 20), (20, 2, "y", 2), (30, 1, "x", 7)]
    ],
    "SELECT wid, v FROM w [NOW] EXCEPT SELECT wid, v FROM w [NOW] WHERE wid = 1": [
        *[(11, 3, 20), (12, 4, 2), (25, 5, 7)]
    ],
    # Where windows are reported, a name with the stream is the column, and one without is the bound.
    "SELECT w.wid, count(*) FROM w [TUMBLE 10] GROUP BY w.wid": [
        (10, 1, 2),
        (20, 3, 1),
        (20, 4, 1),
        (30, 5, 1),
    ],
    "SELECT wid, window_end, sum(v) FROM w [TUMBLE 10]": [(10, 0, 10, 15), (20, 1, 20, 22), (30, 2, 30, 7)],
    "SELECT window_end, w.wid, sum(v) FROM w [TUMBLE 10] GROUP BY w.wid HAVING window_end > 10": [
        *[(20, 20, 3, 20), (20, 20, 4, 2), (30, 30, 5, 7)]
    ],
    "SELECT window_end, sum(v) FROM w [NOW] WHERE window_end < 23": [(1, 1, 10), (3, 3, 5), (11, 11, 20)],
    # In WHERE and in arguments of aggregates there are no bounds yet.
    "SELECT window_end, max(window_end), sum(wid + w.wid) FROM w [TUMBLE 10] WHERE wid < 5": [
        *[(10, 10, 6, 4), (20, 20, 24, 14)]
    ],
    "SELECT window_end, sum(n) FROM sums [TUMBLE 20]": [(20, 20, 15), (40, 40, 29)],
    "SELECT window_end, sum(wid) OVER (ROWS 1 PRECEDING) AS s FROM w": [
        *[(1, 2, 1), (3, 6, 2), (11, 22, 4), (12, 24, 7), (25, 50, 9)]
    ],
}


@pytest.mark.parametrize("query", COLUMNS)
def test_columns_with_names_of_bounds(query: str) -> None:
    check(query, COLUMNS[query])


def test_a_column_called_window_end_is_no_timestamp() -> None:
    query = (
        "SELECT sum(n) FROM (SELECT w.window_end AS e, count(*) AS n FROM w [TUMBLE 10] "
        "GROUP BY w.window_end) [TUMBLE 30 WATTR e]"
    )
    with pytest.raises(AnalysisError, match="nothing promises progress on 'e'"):
        planned(f"{SCRIPT}{query};")


AMBIGUOUS = {
    "SELECT count(*) FROM w [TUMBLE 10] GROUP BY wid": "'w'",
    "SELECT wid, count(*) FROM w [TUMBLE 10] GROUP BY w.wid": "'w'",
    "SELECT count(*) FROM (SELECT wid FROM w) [TUMBLE 10] GROUP BY wid": "the query in FROM",
}


@pytest.mark.parametrize("query", AMBIGUOUS)
def test_ambiguous_names(query: str) -> None:
    with pytest.raises(AnalysisError) as found:
        planned(f"{SCRIPT}{query};")
    assert (
        found.value.message == f"'wid' is ambiguous: a column of {AMBIGUOUS[query]} and a bound of its window"
    )


REFUSED = {
    "SELECT window_end, k FROM a [RANGE 10]": "'window_end' of the window [RANGE 10 WATTR t]",
    "SELECT wid, k FROM a [RANGE 10]": "'wid' of the window [RANGE 10 WATTR t]",
    "SELECT CHANGES count(*) FROM a [TUMBLE 5] GROUP BY wid": "'wid' of the window [RANGE 5 SLIDE 5 WATTR t]",
}


@pytest.mark.parametrize("query", REFUSED)
def test_windows_without_rows_of_their_own_have_no_bounds(query: str) -> None:
    reason = why_not(planned(f"{SCRIPT}{query};"))
    assert reason is not None
    assert reason.what == f"{REFUSED[query]} in a query without a row for each window"
