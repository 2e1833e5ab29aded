"""Aggregates over UNBOUNDED and LANDMARK windows as relations in joins."""

from __future__ import annotations

import random

import pytest

from oracle import Arrivals, Row
from tests.engine import simulated
from tests.engine.test_maintained_queries import STREAMS, arrivals, compare, planned
from tests.oracle.generate import Case

QUERIES = (
    "a.v, d.n FROM a [RANGE 3] JOIN (SELECT k, count(*) AS n FROM b [UNBOUNDED] GROUP BY k) d ON a.k = d.k",
    (
        "a.v, d.n FROM a [NOW] LEFT JOIN (SELECT k, sum(v) AS n FROM b [LANDMARK START AT 3] GROUP BY k"
        " HAVING count(*) > 1) d ON a.k = d.k"
    ),
    (
        "c.k, c.n, d.n FROM (SELECT k, max(v) AS n FROM a [UNBOUNDED] GROUP BY k) c"
        " FULL JOIN (SELECT k, count(*) AS n FROM b [UNBOUNDED] GROUP BY k) d ON c.k = d.k"
    ),
    (
        "a.k, count(*) AS c, sum(d.n) AS s FROM a [ROWS 3], (SELECT max(w) AS n FROM b [UNBOUNDED]) d"
        " WHERE a.v <= d.n GROUP BY a.k"
    ),
)


@pytest.mark.parametrize("kind", ["", "CHANGES", "RSTREAM"])
@pytest.mark.parametrize("query", QUERIES)
def test_joins_with_aggregates_that_only_grow(query: str, kind: str) -> None:
    for seed in range(3):
        chance = random.Random(seed)
        given = {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")}
        case = Case(STREAMS, (), (f"SELECT {kind} {query}",), given)
        compare(case, planned(case.script), chance)


def test_a_tuple_meets_the_count_of_its_instant() -> None:
    query = (
        "SELECT a.v, d.n FROM a [NOW] JOIN (SELECT k, count(*) AS n FROM b [UNBOUNDED] GROUP BY k) d"
        " ON a.k = d.k"
    )
    chance = random.Random(1)
    ones = [{"k": chance.choice([1, 2]), "v": i, "t": i} for i in range(12)]
    others = [{"k": chance.choice([1, 2]), "v": 0, "w": 0, "t": chance.randint(0, 9)} for _ in range(15)]
    others.sort(key=lambda row: row["t"])
    met = [(x, [y for y in others if y["k"] == x["k"] and y["t"] <= x["t"]]) for x in ones]
    given = {"a": Arrivals([[Row(row) for row in ones]]), "b": Arrivals([[Row(row) for row in others]])}
    case = Case(STREAMS, (), (query,), given)
    expected = [(x["t"], x["v"], len(found)) for x, found in met if found]
    assert simulated.run(planned(case.script), given, chance) == expected
