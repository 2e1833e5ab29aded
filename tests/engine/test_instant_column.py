"""The column ``instant`` of CHANGES, ISTREAM, DSTREAM and RSTREAM: engine and oracle agree on it."""

from __future__ import annotations

import random

import pytest

from millstream.plan.optimize import optimize
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.chains import course
from tests.engine.little import check, stream
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

A = (
    "CREATE STREAM a (k INT, v INT, t {}) ORDER BY t SLACK 2; "
    "CREATE STREAM b (k INT, v INT, t {}) ORDER BY t;"
)
QUERIES = (
    "SELECT CHANGES k, instant, v FROM a [RANGE 10]",
    "SELECT CHANGES instant AS at, count(*) AS n, k FROM a [ROWS 3] GROUP BY k",
    "SELECT DSTREAM v, instant FROM a [RANGE 6 SLIDE 4]",
    "SELECT ISTREAM DISTINCT k, instant FROM a [RANGE 6]",
    "SELECT RSTREAM instant, sum(v) FROM a [RANGE 6 SLIDE 4]",
    "SELECT CHANGES instant, a.v, b.v AS w FROM a [RANGE 8] LEFT JOIN b [RANGE 4] ON a.k = b.k",
    "SELECT ISTREAM a.v, instant FROM a [RANGE 8] JOIN b [RANGE 4] ON a.k = b.k WHERE a.v > 1",
    "SELECT window_end, count(*) FROM (SELECT CHANGES instant, k FROM a [RANGE 5]) [TUMBLE 7]",
    "SELECT CHANGES instant, k FROM (SELECT k FROM a [RANGE 5] EXCEPT SELECT k FROM b [RANGE 5]) AS d",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(4))
def test_instants(seed: int, query: str) -> None:
    chance = random.Random(f"{seed} {query}")
    plan = planned(A.format(*["SMALLINT" if seed else "BIGINT"] * 2) + query)
    inputs = {name: Arrivals([rows(chance), rows(chance)]) for name in "ab"}
    expected = [(row.time, *row.values) for row in interpreted(plan, inputs).rows]
    same(simulated.run(optimize(plan), inputs, chance, course(chance)), expected)


def rows(chance: random.Random) -> list[Row]:
    times = sorted(chance.randrange(30) for _ in range(chance.randrange(12)))
    return [Row({"k": chance.randrange(3), "v": chance.randrange(4), "t": t}) for t in times]


def test_rows_come_and_go_at_instants() -> None:
    given = {"a": stream("k v t", [(1, 10, 1), (2, 5, 3)]), "b": stream("k v t", [])}
    query = "SELECT CHANGES instant, v FROM a [RANGE 10]"
    expected = [("+", 1, 10), ("+", 3, 5), ("-", 11, 10), ("-", 13, 5)]
    check(A.format("INT", "INT") + query, given, expected)


def test_a_column_of_the_stream_has_the_name() -> None:
    script = "CREATE STREAM a (instant INT, t INT) ORDER BY t; SELECT CHANGES instant FROM a [RANGE 10]"
    check(script, {"a": stream("instant t", [(7, 1)])}, [("+", 7), ("-", 7)])
