"""Patterns over a query in FROM: rows that a loop over its tuples finds, and those of a derived stream."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

from oracle import Arrivals, Row, run
from tests.engine import simulated
from tests.physical.planning import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

STREAM = "CREATE STREAM a (k INT, v INT, t INT) ORDER BY t SLACK 3;"
QUERIES = (
    "SELECT k, v, t FROM a WHERE v > 0",
    "SELECT k, sum(v) AS v FROM a [TUMBLE 5] GROUP BY k",
    "SELECT DISTINCT k, v FROM a [RANGE 5]",
    "SELECT k, v, t FROM a UNION ALL SELECT k, -v, t FROM a",
    "SELECT X.k AS k, Y.v AS v FROM a AS (X, Y) WHERE X.v < Y.v",
)


def drawn(chance: random.Random) -> list[dict[str, Any]]:
    times = sorted(chance.randint(0, 30) for _ in range(chance.randint(0, 30)))
    return [{"k": chance.choice((1, 2, None)), "v": chance.randint(-2, 5), "t": time} for time in times]


def answers(text: str, tuples: list[dict[str, Any]], chance: random.Random) -> list[tuple[Any, ...]]:
    plan, given = planned(f"{STREAM} {text}"), {"a": Arrivals([[Row(one) for one in tuples]])}
    found = simulated.run(plan, given, chance)
    assert sorted(found, key=str) == sorted(
        [(row.time, *row.values) for row in run(plan, given).rows], key=str
    )
    return found


@pytest.mark.parametrize("seed", range(10))
def test_pairs_are_those_of_the_selected_tuples(seed: int) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance)
    found = answers(
        "SELECT X.v, Y.v AS w FROM (SELECT k, v, t FROM a WHERE v > 0) PARTITION BY k AS (X, Y)"
        " WHERE X.v < Y.v",
        tuples,
        chance,
    )
    partitions = defaultdict(list)
    for one in tuples:
        if one["v"] > 0:
            partitions[one["k"]].append(one)
    expected = []
    for partition in partitions.values():
        place = 0
        while place + 1 < len(partition):
            first, second = partition[place : place + 2]
            matches = first["v"] < second["v"]
            if matches:
                expected.append((second["t"], first["v"], second["v"]))
            place += 2 if matches else 1
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(4))
def test_a_query_is_searched_as_the_stream_derived_from_it(query: str, seed: int) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance)
    search = "PARTITION BY k AS (X, *Y) WHERE Y.v >= Y.previous.v"
    outputs = "SELECT k, X.v, count(*Y) AS n"
    direct = answers(f"{outputs} FROM ({query}) {search}", tuples, chance)
    derived = answers(f"CREATE STREAM q AS {query}; {outputs} FROM q {search}", tuples, chance)
    assert sorted(direct, key=str) == sorted(derived, key=str)
