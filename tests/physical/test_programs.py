"""Programs of a query are generated once, when it is planned, and never in a micro-batch."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from millstream.codegen.patterns import pattern_compiler
from millstream.codegen.udas import uda_compiler
from millstream.physical.nodes import Output, stages_of
from millstream.physical.scan_sharing import share, share_groups
from millstream.spark.lowering.translator import Sources, Translation
from millstream.stage.shard import tagged_schema
from tests.physical.planning import plans_of

SCRIPT = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) USING csv OPTIONS (path 'x.csv') ORDER BY t;
CREATE AGGREGATE total(x INT) : INT {
    TABLE state(s INT);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE    : { UPDATE state SET s = s + x; }
    TERMINATE  : { INSERT INTO RETURN SELECT s FROM state; }
};
"""
TWICE = """
SELECT total(v) OVER (PARTITION BY k ROWS 9 PRECEDING) AS a,
       total(v) OVER (PARTITION BY k ROWS 9 PRECEDING) AS b FROM s;
"""
PATTERN = "SELECT X.v FROM s PARTITION BY k AS (X, *Y) WHERE Y.v > Y.previous.v;"
OTHER = "SELECT X.v, Y.v FROM s PARTITION BY k AS (X, Y) WHERE Y.v > X.v;"


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that are generated."""
    names: list[str] = []
    udas, patterns = uda_compiler.compile_uda, pattern_compiler.compile_pattern

    def uda(*arguments: object) -> object:
        names.append("uda")
        return udas(*arguments)  # type: ignore[arg-type]

    def pattern(*arguments: object) -> object:
        names.append("pattern")
        return patterns(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(uda_compiler, "compile_uda", uda)
    monkeypatch.setattr(pattern_compiler, "compile_pattern", pattern)
    return names


def test_equal_calls_have_one_program(generated: list[str]) -> None:
    (plan,) = plans_of(SCRIPT + TWICE)
    # One for the call, one for the window of both.
    assert generated == ["uda"] * 2
    assert len(plan.programs) == 1


def test_a_plan_that_is_bound_keeps_its_programs(generated: list[str]) -> None:
    (plan,) = plans_of(SCRIPT + TWICE + PATTERN.replace("SELECT", "EXPLAIN SELECT"))
    generated.clear()
    plan.bind({})
    assert generated == []


@pytest.mark.spark
def test_nothing_is_generated_for_a_micro_batch(generated: list[str], spark: SparkSession) -> None:
    plans = [plan.physical for plan in plans_of(SCRIPT + TWICE + PATTERN + OTHER)]
    shared = share(plans)
    generated.clear()
    schema = tagged_schema([one.stage.pipeline for one in shared.stages])
    batch = spark.createDataFrame([], from_arrow_schema(schema))
    to = Translation(Sources(spark, None, {}), None, batch=batch)  # type: ignore[arg-type]
    assert [to.frame(plan).count() for plan in shared.plans] == [0, 0, 0]
    assert generated == []


def test_patterns_over_the_same_tuples_are_one_stage() -> None:
    plans = [plan.physical for plan in plans_of(SCRIPT + TWICE + PATTERN + OTHER)]
    assert share_groups(plans) == [[0, 1, 2]]
    shared = share(plans)
    assert [one.members for one in shared.stages] == [(0,), (1, 2)]
    assert all(not stages_of(plan) for plan in shared.plans)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.v FROM s [RANGE 1 MINUTE] AS a, s [RANGE 1 MINUTE] AS b WHERE a.k = b.k;",
        "SELECT sum(v) OVER (PARTITION BY k ROWS 1 PRECEDING), sum(v) OVER (ROWS 1 PRECEDING) FROM s;",
        "SELECT sum(v) OVER (ROWS 1 PRECEDING) FROM (SELECT v FROM s UNION ALL SELECT k FROM s);",
    ],
)
def test_queries_that_share_nothing(query: str) -> None:
    plans: list[Output] = [plan.physical for plan in plans_of(SCRIPT + PATTERN + query)]
    assert share_groups(plans) == [[0], [1]]
