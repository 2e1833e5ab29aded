"""Streams derived from maintained results: windows, OVER and joins over insertions and deletions.

A row has the instant at which it enters, which no column has, and rows of one instant are in the order of
their values.
"""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from oracle import Arrivals, Row
from tests.engine.test_maintained_queries import STREAMS, arrivals, compare, planned
from tests.oracle.generate import Case, StreamDeclaration

DERIVED = (
    "SELECT k, count(*) AS n FROM a [TUMBLE 3] GROUP BY k HAVING count(*) > 2",
    "SELECT k, count(*) AS n FROM a [RANGE 4] GROUP BY k",
    "SELECT k, n FROM (SELECT k, v AS n, count(*) OVER (ROWS 2 PRECEDING) AS c FROM a) WHERE n > 2",
    "SELECT a.k AS k, a.v AS n, a.t AS t FROM a [RANGE 4] JOIN b [RANGE 4] ON a.k = b.k",
    "SELECT a.k AS k, a.v AS n, a.t AS t FROM a [RANGE 4] LEFT JOIN b [RANGE 4] ON a.k = b.k",
    "SELECT DISTINCT k, v AS n, t FROM a [RANGE 4]",
    "SELECT k, v AS n, t FROM a [RANGE 4 SLIDE 4]",
    "SELECT DSTREAM k, v AS n, t FROM a [RANGE 4] WHERE v > 2",
    "SELECT k, v AS n, t FROM a [RANGE 4] EXCEPT SELECT k, w, t FROM b [RANGE 2]",
    "SELECT t, k, count(*) AS n FROM (SELECT k, t FROM a [RANGE 4]) GROUP BY t, k",
)
QUERIES = (
    "SELECT window_end, count(*) FROM r [LANDMARK START AT 0 SLIDE 2]",
    "SELECT window_end, count(*) FROM r [LANDMARK START AT 3]",
    "SELECT window_end, count(*) FROM r [TUMBLE 5]",
    "SELECT CHANGES n FROM r [RANGE 3]",
    "SELECT n, count(*) OVER (RANGE 3 PRECEDING) FROM r",
    "SELECT x.n, b.w FROM r [RANGE 3] x JOIN b [RANGE 2] ON b.k = x.k",
    "SELECT x.n, b.w FROM r [NOW] x JOIN b [RANGE 2] ON b.k = x.k",
    "SELECT window_end, count(*) FROM r [SESSION GAP 1]",
)


@pytest.mark.parametrize("derived", DERIVED)
def test_what_is_made_of_results(derived: str) -> None:
    for seed, query in enumerate(QUERIES):
        chance = random.Random(seed)
        given = {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")}
        case = Case(STREAMS, (f"CREATE STREAM r AS {derived}",), (query,), given)
        compare(case, planned(case.script), chance)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x.k, x.n, a.v FROM r [RANGE 0.03] x JOIN a [RANGE 0.05] ON a.k = x.k",
        "SELECT k, n FROM r [RANGE 0.03] UNION SELECT k, v FROM a [RANGE 0.05]",
    ],
)
def test_reports_beside_their_stream_ordered_by_decimals(query: str) -> None:
    """Ends of windows have more digits, but the same units."""
    stream = StreamDeclaration("a", "k INT, v INT, t DECIMAL(10, 2)", "ORDER BY t", "")
    derived = "CREATE STREAM r AS SELECT k, sum(v) AS n FROM a [TUMBLE 0.02] GROUP BY k"
    given = [(1, 5, "0.01"), (2, 3, "0.02"), (1, 2, "0.04"), (2, 7, "0.04"), (1, 1, "0.07")]
    rows = [Row({"k": k, "v": v, "t": Decimal(t)}) for k, v, t in given]
    case = Case((stream,), (derived,), (query,), {"a": Arrivals([rows])})
    for seed in range(3):
        compare(case, planned(case.script), random.Random(seed))
