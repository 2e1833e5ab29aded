"""Random sequence patterns over random streams: the engine agrees with the definition.

Micro-batches, tasks, shards, recoveries, disorder, late tuples and heartbeats are drawn at random, and the
oracle takes the plan as it was built, without any rewriting: agreeing is all of the invariants at once, but
for tables, which are looked at on Spark.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from millstream.catalog import Catalog
from millstream.errors import ExecutionError
from millstream.kernels.kernel_specs import PatternGroupSpec
from millstream.physical.node import Role
from millstream.physical.query_plan import plan_without_spark
from millstream.physical.scan_sharing import share
from millstream.plan.refusals import why_not
from oracle import Arrivals, Failure, Heartbeat, Row, answer
from tests.engine import simulated
from tests.engine.test_invariants import same
from tests.engine.test_user_aggregates import CLAUSES, arrivals
from tests.oracle.patterns import AGGREGATES, pattern_query
from tests.oracle.shapes import Source
from tests.physical.planning import planned, plans_of

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
RELATED = (
    "SELECT FIRST(Y).t, count(*Y) AS n FROM s PARTITION BY k AS (X, *Y) WHERE Y.v >= Y.previous.v",
    "SELECT X.t, Z.v FROM s PARTITION BY k AS (X, *Y, Z) WHERE Y.v >= Y.previous.v AND Z.v < Z.previous.v",
    "SELECT A.t, sum(*A.v) AS total FROM s PARTITION BY k AS (*A, B) WHERE A.v > 0 AND B.v < 1",
    "SELECT X.t, Y.name FROM s PARTITION BY k AS (X, Y) WHERE X.v > 1 AND X.name = 'p' AND Y.name = 'q'",
    "SELECT X.t, Y.w FROM s PARTITION BY k AS (X, *Y) WHERE X.name = 'p' AND Y.name <> 'p' AND Y.v > 0",
    "SELECT X.t FROM s PARTITION BY k AS (X) WHERE X.v > 1 AND upper(X.name) = 'Q'",
    "SELECT X.t FROM s PARTITION BY k AS (X, Y) WHERE lower(X.name) = 'p' AND upper(Y.name) = 'Q'",
)
"""Some that ask the same, or of which one tells about another; Spark computes a part of it before."""


def renamed(given: Arrivals) -> Arrivals:
    return Arrivals([[_renamed(arrival) for arrival in partition] for partition in given.partitions])


def _renamed(arrival: Row | Heartbeat) -> Row | Heartbeat:
    if isinstance(arrival, Heartbeat):
        return arrival
    return Row({NAMES.get(name, name): value for name, value in arrival.values.items()})


def script_of(query: str, clause: str) -> str:
    return f"{STREAM} {clause};\n{AGGREGATES};\n{query}"


def drawn_stream(clause: str, chance: random.Random) -> Arrivals:
    partitions = 1 if "HEARTBEAT" in clause else chance.choice([1, 1, 2])
    return renamed(arrivals(clause, chance, partitions))


def defined(script: str, stream: Arrivals, *, ended: bool) -> list[tuple[Any, ...]]:
    return [(row.time, *row.values) for row in answer(script, {"s": stream}, ended=ended).rows]


def check(query: str, clause: str, seed: int, *, ended: bool) -> None:
    chance = random.Random(seed)
    script = script_of(query, clause)
    plan = planned(script)
    assume(why_not(plan) is None)
    stream = drawn_stream(clause, chance)
    try:
        expected = defined(script, stream, ended=ended)
    except Failure:
        # An attempt that fails for another reason need not evaluate a condition that raises an error.
        with contextlib.suppress(ExecutionError):
            simulated.run(plan, {"s": stream}, chance, ended=ended)
        return
    same(simulated.run(plan, {"s": stream}, chance, ended=ended), expected)


def check_together(queries: Sequence[str], clause: str, seed: int, *, ended: bool) -> None:
    """Check queries that can be run over the stream, if some of them have the same partitions."""
    chance = random.Random(seed)
    stream = drawn_stream(clause, chance)
    plans = []
    expected = []
    for query in queries:
        script = script_of(query, clause)
        plan = planned(script)
        if why_not(plan) is None:
            with contextlib.suppress(Failure):
                expected.append(defined(script, stream, ended=ended))
                plans.append(plan_without_spark(plan, Catalog()).physical)
    shared = share(plans)
    assume(any(len(one.members) > 1 for one in shared.stages))
    found = simulated.run_shared(shared, {"s": stream}, chance, ended=ended)
    for mine, theirs in zip(found, expected, strict=True):
        same(mine, theirs)


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


@given(
    st.lists(
        st.one_of(
            pattern_query(SOURCE, "", everything=True).map(lambda query: query[0]), st.sampled_from(RELATED)
        ),
        min_size=3,
        max_size=8,
    ),
    st.sampled_from(CLAUSES),
    st.integers(),
    st.booleans(),
)
@quickly
def test_random_patterns_over_one_stream(queries: list[str], clause: str, seed: int, ended: bool) -> None:
    check_together(queries, clause, seed, ended=ended)


@given(
    st.lists(st.sampled_from(RELATED), min_size=2, max_size=5),
    st.sampled_from(CLAUSES),
    st.integers(),
    st.booleans(),
)
@quickly
def test_patterns_with_something_in_common(queries: list[str], clause: str, seed: int, ended: bool) -> None:
    check_together(queries, clause, seed, ended=ended)


def test_columns_that_spark_computes_before_are_told_apart() -> None:
    """Each pattern numbers them for itself, so that the same number is another column in another pattern."""
    queries = "".join(
        f"SELECT X.t FROM s PARTITION BY k AS (X) WHERE {f}(X.name) = 'a';" for f in ("md5", "soundex", "md5")
    )
    (whole,) = share([plan.physical for plan in plans_of(script_of(queries, ""))]).stages
    group = whole.stage.kernels[-1]
    assert isinstance(group, PatternGroupSpec)
    first, second, third = (branch.spec for branch in group.branches)
    assert first == third
    assert first.arguments != second.arguments
    values = [str(c.expr) for c in whole.stage.sources[0].columns if c.role is Role.ARGUMENT]
    assert values == ["md5(s.name)", "s.t", "soundex(s.name)"]
