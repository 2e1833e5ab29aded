"""SELECT EACH: the rows of a star while it grows, by the engine and by the definition."""

from __future__ import annotations

import random
from typing import Any

import pytest

from oracle import Arrivals, Row, run
from tests.engine import simulated
from tests.physical.planning import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

STREAM = "CREATE STREAM s (id INT, k INT, v INT, t INT) ORDER BY t"
TABLE = "CREATE TABLE names (v INT, name STRING) USING csv OPTIONS (path 'names.csv')"
QUERIES = (
    "SELECT EACH Y.id, Y.t, csum(Y.v) AS s, X.id AS x FROM s PARTITION BY k AS (X, *Y) WHERE Y.v > 0",
    "SELECT EACH Y.id, ccount(Y.v), cmax(Y.v) FROM s AS (*Y) WHERE Y.v > 1 AND ccount(Y.v) < 4",
    "SELECT EACH Z.id, X.v + Z.v FROM s PARTITION BY k AS (X, Y, *Z) WHERE Y.v > X.v AND Z.v >= Z.previous.v",
    "SELECT EACH Y.id, n.name FROM s AS (X, *Y), names n WHERE X.v < 2 AND Y.v > X.v AND n.v = Y.v",
    "SELECT EACH Y.id, csum(Y.v) OVER (ROWS 1 PRECEDING) AS s FROM s AS (X, *Y) WHERE X.v = 0 AND Y.v > 0",
)
NAMES: list[dict[str, Any]] = [{"v": 1, "name": "one"}, {"v": 2, "name": "two"}]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(6))
def test_each_tuple_of_the_last_star_has_a_row(query: str, seed: int) -> None:
    chance = random.Random(f"{query} {seed}")
    tuples, time = [], 0
    for number in range(chance.randint(0, 25)):
        time += chance.choice((0, 1, 2))
        tuples.append(Row({"id": number, "k": chance.randint(1, 2), "v": chance.randint(0, 3), "t": time}))
    plan, given = planned(f"{STREAM}; {TABLE}; {query}"), {"s": Arrivals([tuples]), "names": NAMES}
    expected = [(row.time, *row.values) for row in run(plan, given).rows]
    assert sorted(simulated.run(plan, given, chance), key=str) == sorted(expected, key=str)


def test_rows_come_before_the_star_ends() -> None:
    query = f"{STREAM}; SELECT EACH Y.id, csum(Y.v) AS s FROM s AS (X, *Y) WHERE Y.v > 0"
    tuples = [Row({"id": i, "k": 1, "v": 1, "t": i}) for i in range(4)]
    given = {"s": Arrivals([tuples])}
    # Of what may still have ties, the last tuple is not known yet.
    found = [row.values for row in run(planned(query), given, ended=False).rows]
    assert found[:2] == [(1, 1), (2, 2)]


def test_a_window_counts_the_rows_of_stars() -> None:
    script = f"""{STREAM};
        CREATE STREAM m AS SELECT EACH Y.t, Y.v FROM s PARTITION BY k AS (X, *Y) WHERE Y.v > 0;
        SELECT window_end, sum(v) FROM m [TUMBLE 4]"""
    tuples = [Row({"id": i, "k": i % 2, "v": 1, "t": i}) for i in range(12)]
    plan, given = planned(script), {"s": Arrivals([tuples])}
    expected = [(row.time, *row.values) for row in run(plan, given).rows]
    assert simulated.run(plan, given, random.Random(1)) == expected
