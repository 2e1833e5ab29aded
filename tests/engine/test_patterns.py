"""Random sequence patterns over random streams: the engine gives what the definition gives.

Micro-batches, tasks, shards, recoveries, disorder, late tuples and heartbeats are drawn at random, and the
oracle takes the plan as it was built, without any rewriting: agreeing is all of the invariants at once, but
for tables, which are looked at on Spark.
"""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.engine.pattern_stages import pattern_staged
from tests.engine.test_invariants import same
from tests.engine.test_user_aggregates import CLAUSES, arrivals
from tests.engine.without_spark import planned
from tests.reference.patterns import AGGREGATES, pattern_query
from tests.reference.shapes import Source

from millstream.kernels.pattern import PatternError
from millstream.plan.executable import why_not
from millstream.reference import Arrivals, Failure, Heartbeat, Row, answer

pytestmark = pytest.mark.usefixtures("uncompiled")

NAMES = {"x": "v", "y": "w", "z": "name"}
"""Columns that are not called as variables of patterns are."""
SOURCE = Source(
    "s",
    {"k": "INT", "v": "INT", "w": "DOUBLE", "name": "STRING", "t": "TIMESTAMP"},
    "TIMESTAMP",
    frozenset("t"),
)
STREAM = "CREATE STREAM s (k INT, v INT, w DOUBLE, name STRING, t TIMESTAMP, p BOOLEAN) ORDER BY t"
FIXED = (
    "SELECT k, count(*Y) AS n FROM s PARTITION BY k AS (X, *Y) WHERE Y.v >= Y.previous.v",
    "SELECT FIRST(A).t AS since, B.t, sum(*A.v) AS total FROM s AS (*A, B) WHERE A.v > 0 AND B.v < A.v",
    "SELECT X.v, Z.v AS last FROM s PARTITION BY k, name AS (X, *Y, Z) WHERE Y.v <> X.v AND Z.v = X.v",
)
"""Some that match often."""


def renamed(given: Arrivals) -> Arrivals:
    return Arrivals([[_renamed(arrival) for arrival in partition] for partition in given.partitions])


def _renamed(arrival: Row | Heartbeat) -> Row | Heartbeat:
    if isinstance(arrival, Heartbeat):
        return arrival
    return Row({NAMES.get(name, name): value for name, value in arrival.values.items()})


def check(query: str, clause: str, seed: int, *, ended: bool) -> None:
    chance = random.Random(seed)
    script = f"{STREAM} {clause};\n{AGGREGATES};\n{query}"
    plan = planned(script)
    assume(why_not(plan) is None)
    partitions = 1 if "HEARTBEAT" in clause else chance.choice([1, 1, 2])
    stream = renamed(arrivals(clause, chance, partitions))
    stage = pattern_staged(plan)
    try:
        expected = [(row.time, *row.values) for row in answer(script, {"s": stream}, ended=ended).rows]
    except Failure:
        # An attempt that fails for another reason need not be asked what it cannot answer.
        with contextlib.suppress(PatternError):
            stage.run(stream, chance, ended=ended)
        return
    same(stage.run(stream, chance, ended=ended), expected)


quickly = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@given(
    pattern_query(SOURCE, "", everything=True).map(lambda query: query[0]),
    st.sampled_from(CLAUSES),
    st.integers(),
    st.booleans(),
)
@quickly
def test_random_patterns(query: str, clause: str, seed: int, ended: bool) -> None:
    check(query, clause, seed, ended=ended)


@given(st.sampled_from(FIXED), st.sampled_from(CLAUSES), st.integers(), st.booleans())
@quickly
def test_patterns_that_match_often(query: str, clause: str, seed: int, ended: bool) -> None:
    check(query, clause, seed, ended=ended)
