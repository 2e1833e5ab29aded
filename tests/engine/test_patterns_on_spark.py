"""Random sequence patterns end to end, on streams and tables: Spark gives what the oracle gives."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.engine.on_spark import Rows, run, without_heartbeats
from tests.engine.test_invariants import same
from tests.reference.generate import Case, script_and_inputs
from tests.reference.queries import PATTERN_KINDS

import millstream as ms
from millstream.reference import Failure, NotInterpreted, answers

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _expected(case: Case) -> Mapping[str, Rows] | None:
    """What the oracle finds, if it finds anything: most patterns that are drawn never match."""
    try:
        found = answers(case.script, without_heartbeats(case))
    except (Failure, NotInterpreted):
        return None
    return {name: answer.values for name, answer in found.items()} if found["q1"].rows else None


@pytest.mark.parametrize("kind", PATTERN_KINDS)
def test_random_patterns(spark: SparkSession, kind: str) -> None:
    compared = 0

    @given(
        script_and_inputs(kinds=[kind], max_partitions=1, max_rows=16, everything=True),
        st.lists(st.integers(0, 16), max_size=2),
    )
    @settings(
        max_examples=2,
        deadline=None,
        derandomize=True,
        # A failure on Spark is better looked at than made smaller: each try takes seconds.
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Case, cuts: list[int]) -> None:
        expected = _expected(case)
        assume(expected is not None)
        assert expected is not None
        found = _on_spark(spark, case, cuts)
        assume(found is not None)
        assert found is not None
        for name, rows in expected.items():
            same(found[name], rows)
        nonlocal compared
        compared += 1

    check()
    assert compared


def _on_spark(spark: SparkSession, case: Case, cuts: list[int]) -> dict[str, list[tuple[Any, ...]]] | None:
    """The results, or None if something in the script cannot be run yet."""
    directory = Path(tempfile.mkdtemp())
    mill = ms.connect(spark)
    try:
        return run(case, mill, directory, cuts)
    except ms.NotExecutableError:
        return None
    finally:
        mill.stop()
        shutil.rmtree(directory)
