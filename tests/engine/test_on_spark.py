"""A sample of the invariants end to end: generated scripts on Spark agree with the oracle."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import millstream as ms
from oracle import Failure, answers
from tests.engine.on_spark import run, without_heartbeats
from tests.engine.test_invariants import same
from tests.engine.test_user_aggregates import arrivals, bracket_scripts, flat, over_scripts
from tests.oracle.generate import Case, StreamDeclaration, script_and_inputs

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@given(
    script_and_inputs(max_partitions=1, max_rows=16, everything=True),
    st.lists(st.integers(0, 16), max_size=2),
)
@settings(
    max_examples=6,
    deadline=None,
    # A failure on Spark is better looked at than made smaller: each try takes seconds.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_generated_scripts(spark: SparkSession, case: Case, cuts: list[int]) -> None:
    directory = Path(tempfile.mkdtemp())
    mill = ms.connect(spark)
    try:
        expected = answers(case.script, without_heartbeats(case))
    except Failure:
        with pytest.raises(ms.MillstreamError):
            run(case, mill, directory, cuts)
        return
    try:
        found = run(case, mill, directory, cuts)
    except ms.NotExecutableError:
        assume(False)
    finally:
        mill.stop()
        shutil.rmtree(directory)
    for name, answer in expected.items():
        same(found[name], answer.values)


def _case(script: str, clause: str, seed: int) -> Case:
    """A script that creates aggregates and ends with a query, on a stream."""
    columns = "k INT, x INT, y DOUBLE, z STRING, t TIMESTAMP, p BOOLEAN"
    *created, asked = script.rstrip(";").split(";\n")
    stream = StreamDeclaration("s", columns, "ORDER BY t", clause)
    return Case((stream,), ("\n;".join(created),), (asked,), {"s": arrivals(clause, random.Random(seed))})


@given(
    st.one_of(over_scripts(), bracket_scripts()),
    st.sampled_from(["", "SLACK INTERVAL 3 SECONDS", "PUNCTUATED BY (p)"]),
    st.integers(),
    st.lists(st.integers(0, 14), max_size=2),
)
@settings(
    max_examples=3,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_users_aggregates(spark: SparkSession, script: str, clause: str, seed: int, cuts: list[int]) -> None:
    case = _case(script, clause, seed)
    directory = Path(tempfile.mkdtemp())
    mill = ms.connect(spark)
    try:
        expected = answers(case.script, case.inputs)
    except Failure:
        assume(False)
    try:
        found = run(case, mill, directory, cuts)
    finally:
        mill.stop()
        shutil.rmtree(directory)
    for name, answer in expected.items():
        same(flat(list(map(_plain, found[name]))), flat(answer.values))


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(value.values()) if isinstance(value, dict) else value for value in row)
