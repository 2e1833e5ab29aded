"""Random sequence patterns end to end, on streams and tables: Spark agrees with the oracle."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import millstream as ms
from millstream.physical.nodes import Output
from millstream.physical.scan_sharing import SharedPlan, share
from millstream.plan.refusals import why_not
from oracle import Arrivals, Failure, NotInterpreted, Row, answers
from tests.engine.on_spark import Rows, run, without_heartbeats
from tests.engine.test_invariants import same
from tests.engine.test_patterns import SOURCE
from tests.oracle.generate import NOON, Case, StreamDeclaration, script_and_inputs
from tests.oracle.patterns import AGGREGATES, pattern_query
from tests.physical.planning import planned

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DECLARED = StreamDeclaration(
    "s", "k INT, v INT, w DOUBLE, name STRING, t TIMESTAMP", "ORDER BY t", "SLACK INTERVAL 2 SECONDS"
)
MORE = ("FILTER", "DISTINCT", "OVER", "steps(", "halved(", "previous", "(*", "WITHIN")
"""What makes a query worth its time on Spark."""

Drawn = TypeVar("Drawn")


def richest(
    strategy: st.SearchStrategy[Drawn], case_of: Callable[[Drawn], Case], among: int, wanted: int
) -> list[Drawn]:
    """Draw deterministically, and return the cases with the most matches: most patterns never match."""
    found: list[tuple[tuple[int, int], int, Drawn]] = []

    @given(strategy)
    @settings(
        max_examples=among,
        deadline=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    def look(drawn: Drawn) -> None:
        case = case_of(drawn)
        rows = expected(case)
        if rows:
            written = sum(word in case.queries[0] for word in MORE)
            found.append(((min(len(set(map(str, rows["q1"]))), 4), written), len(found), drawn))

    look()
    found.sort(key=lambda one: (one[0], one[1]), reverse=True)
    different = {str(case_of(drawn).queries): drawn for _, _, drawn in reversed(found)}
    return list(different.values())[-wanted:]


def expected(case: Case) -> Mapping[str, Rows]:
    """Return the matches of the oracle; nothing if it refuses the query, or the query cannot be run."""
    try:
        found = answers(case.script, without_heartbeats(case))
    except (Failure, NotInterpreted):
        return {}
    return {} if why_not(planned(case.script)) else {name: answer.values for name, answer in found.items()}


def check(spark: SparkSession, case: Case, cuts: list[int]) -> None:
    directory = Path(tempfile.mkdtemp())
    mill = ms.connect(spark)
    try:
        found = run(case, mill, directory, cuts)
    finally:
        mill.stop()
        shutil.rmtree(directory)
    for name, rows in expected(case).items():
        same(found[name], rows)


@pytest.mark.parametrize("kind", ["pattern chain", "pattern join", "pattern table"])
def test_random_patterns(spark: SparkSession, kind: str) -> None:
    drawn = script_and_inputs(kinds=[kind], max_partitions=1, max_rows=16, everything=True)
    for case in richest(drawn, lambda case: case, among=150, wanted=2):
        check(spark, case, [5])


def _stream(chance: random.Random) -> Arrivals:
    """Values that repeat and rise and fall a little, now and then none, a little out of order."""
    rows = [
        {
            "k": chance.choice([1, 1, 1, 2, 2, 3, None]),
            "v": chance.choice([None, -1, 0, 1, 1, 2, 3]),
            "w": chance.choice([None, -1.5, 0.0, 0.25, 0.25, 2.5]),
            "name": chance.choice([None, "p", "q", "q", "r"]),
            "t": NOON + timedelta(seconds=number // 2 - chance.choice([0, 0, 0, 1, 3])),
        }
        for number in range(40)
    ]
    return Arrivals([[Row(row) for row in rows]])


def test_several_random_patterns_over_one_stream(spark: SparkSession) -> None:
    """They share the reading, and those with the same partitions also a stage."""
    stream = _stream(random.Random(7))

    def case_of(*queries: str) -> Case:
        return Case((DECLARED,), (AGGREGATES,), queries, {"s": stream})

    drawn = pattern_query(SOURCE, "", everything=True).map(lambda query: query[0])
    together: list[int] = []

    def noted(plans: Sequence[Output]) -> SharedPlan:
        made = share(plans)
        together.extend(len(stage.members) for stage in made.stages)
        return made

    with mock.patch("millstream.spark.lowering.lowered_queries.share", noted):
        check(spark, case_of(*richest(drawn, case_of, among=300, wanted=5)), [4, 9])
    assert len(together) > 1
    assert max(together) > 1
