"""Results with the same time are in the order of their windows and groups, whenever they come.

What reads them in order (OVER, row windows, patterns, joins, first) gives the same for every way to cut the
input, for every number of shards, and after restarts.
"""

from __future__ import annotations

import random

import pytest

from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.chains import course
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

PER_KEY = """
    x 1 1
    y 2 2
    z 3 3
    z 4 12
    z 1 25
    y 2 13
    y 5 27
    x 7 11
    x 3 22
"""
"""Each key is in order by itself, and z is far ahead."""

IN_ORDER = """
    z 1 1
    y 1 1
    x 1 1
    z 2 2
    y 2 2
    x 3 2
    x 4 3
    z 4 3
    y 1 3
"""

DISORDERED = """
    y 3 1
    x 2 3
    z 1 2
    y 4 3
    x 5 4
"""

SCRIPT = """
CREATE STREAM a (k STRING, n BIGINT, t INT) ORDER BY t ORDERED PER (k);
CREATE STREAM b (k STRING, n BIGINT, t INT) ORDER BY t;
CREATE STREAM c (k STRING, n BIGINT, t INT) ORDER BY t SLACK 1;
"""
DERIVED = {
    # Windows of z are complete, while those of others with the same end are not.
    "sub-streams": "SELECT k, sum(n) AS n FROM a [TUMBLE 10] GROUP BY k",
    "row windows": "SELECT k, sum(n) AS n FROM b [ROWS 2 PATTR k]",
    "predicate windows": "SELECT k, sum(n) AS n FROM b [START WHEN n > 0 END WHEN n > 1 PATTR k]",
    "sessions": "SELECT k, sum(n) AS n FROM b [SESSION GAP 1 PATTR k]",
    # What leaves at an instant was in the order of shards.
    "expiries": "SELECT k, count(*) OVER (PARTITION BY k RANGE 2 PRECEDING ACTIVE EXPIRATION) AS n FROM b",
    "expiries of expiries": "SELECT k, sum(n) OVER (PARTITION BY k RANGE 1 PRECEDING ACTIVE EXPIRATION) AS n "
    "FROM (SELECT k, count(*) OVER (PARTITION BY k RANGE 2 PRECEDING ACTIVE EXPIRATION) AS n FROM b)",
    # The left side comes first, with what leaves it, and then the right side.
    "expiries on the left": "SELECT k, count(*) OVER (RANGE 2 PRECEDING ACTIVE EXPIRATION) AS n "
    "FROM b UNION ALL SELECT k, n FROM c",
    "expiries on the right": "SELECT k, n FROM c UNION ALL "
    "SELECT k, count(*) OVER (PARTITION BY k RANGE 2 PRECEDING ACTIVE EXPIRATION) AS n FROM b",
    "expiries of a union": "SELECT k, count(*) OVER (PARTITION BY k RANGE 1 PRECEDING ACTIVE EXPIRATION) AS n"
    " FROM (SELECT k, n FROM b UNION ALL SELECT k, n FROM c)",
    "a union in a union": "SELECT k, sum(n) OVER (ROWS 1 PRECEDING) AS n "
    "FROM (SELECT k, n FROM b UNION ALL SELECT k, n FROM c) UNION ALL SELECT k, n + 5 FROM b",
    # A match is known later than an equal tuple of the right side, and stands before it.
    "distinct matches": "SELECT Y.k AS k, Y.n AS n FROM c AS (X, Y) WHERE Y.n > 3 UNION SELECT k, n FROM c",
    "results that vary": "SELECT DISTINCT k, n FROM b [RANGE 2]",
    "lists": "SELECT RSTREAM array(10 - n, 1) AS l, k, n FROM b [RANGE 3 SLIDE 2]",
    "groups of lists": "SELECT array(-n) AS l, max(k) AS k, sum(n) AS n FROM b [TUMBLE 4] GROUP BY array(-n)",
    "NaN": "SELECT RSTREAM CAST(IF(n = 1, 'NaN', '5') AS DOUBLE) AS d, k, n FROM b [RANGE 3]",
    "matches": "SELECT X.k AS k, Y.n AS n FROM b PARTITION BY k AS (X, Y) WHERE Y.n > X.n",
}
ABOVE = (
    "SELECT k, n, sum(n) OVER (ROWS 1 PRECEDING) AS s FROM d",
    "SELECT first(k) AS k, collect_list(n) AS n FROM d [TUMBLE 20]",
    "SELECT max(k) AS k, count(*) AS n FROM d [ROWS 2]",
    "SELECT CHANGES k, sum(n) AS n FROM d [ROWS 2] GROUP BY k",
    "SELECT X.k AS x, Y.k AS y FROM d AS (X, Y) WHERE Y.n >= X.n",
    "SELECT x.k AS x, y.k AS y FROM d [ROWS 1] x JOIN a [RANGE 20] y ON x.n = y.n",
    "SELECT k, n FROM d [ROWS 2 SLIDE 2]",
)


def arrivals(table: str) -> Arrivals:
    rows = (line.split() for line in table.split("\n") if line.strip())
    return Arrivals([[Row({"k": k, "n": int(n), "t": int(t)}) for k, n, t in rows]])


@pytest.mark.parametrize("query", ABOVE)
@pytest.mark.parametrize("name", DERIVED)
def test_ties_that_come_in_several_micro_batches(name: str, query: str) -> None:
    inputs = {"a": arrivals(PER_KEY), "b": arrivals(IN_ORDER), "c": arrivals(DISORDERED)}
    plan = planned(f"{SCRIPT}CREATE STREAM d AS {DERIVED[name]};\n{query};")
    expected = [(row.time, *row.values) for row in interpreted(plan, inputs).rows]
    for seed in range(4):
        chance = random.Random(seed)
        same(simulated.run(plan, inputs, chance, course(chance)), expected)
