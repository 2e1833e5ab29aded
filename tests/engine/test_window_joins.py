"""Joins of windows on Spark agree with the oracle, which recomputes them at every instant."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from oracle import Arrivals, Row, answers
from tests.engine.on_spark import run
from tests.engine.test_invariants import same
from tests.oracle.generate import Case, StreamDeclaration

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAIRS = """CREATE STREAM pairs AS
    SELECT a.k AS k, a.v + b.w AS total FROM a [RANGE 4] JOIN b [RANGE 2] ON a.k = b.k"""
QUERIES = (
    "SELECT a.k, a.v, b.w, b.t FROM a [RANGE 3] JOIN b [RANGE 3] ON a.k = b.k AND a.v < b.w",
    "SELECT a.v, b.w FROM a [NOW], b [UNBOUNDED] WHERE a.k = b.k AND b.v IS NOT NULL AND a.v + b.w > 3",
    "SELECT x.v, y.v AS other FROM a [RANGE 5] AS x JOIN a [LANDMARK START AT 4 END AT 12] AS y USING (k)",
    "SELECT a.t, b.t AS bt FROM a [RANGE 2] JOIN b [RANGE 3] ON a.t <= b.t",
    "SELECT k, count(*) AS n, sum(total) AS s, window_end FROM pairs [TUMBLE 4] GROUP BY k",
)


def arrivals(seed: int, names: str) -> Arrivals:
    """In order but for a slack of 2, with NULLs among keys and values."""
    chance = random.Random(seed)
    rows = []
    for i in range(30):
        values = {"k": chance.choice([1, 1, 2, None]), "t": max(i // 2 - chance.randint(0, 2), 0)}
        values |= {name: chance.choice([*range(6), None]) for name in names}
        rows.append(Row(values))
    return Arrivals([rows])


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_all_pairs(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    declarations = (
        StreamDeclaration("a", "k INT, v INT, t INT", "ORDER BY t", "SLACK 2"),
        StreamDeclaration("b", "k BIGINT, w INT, v INT, t INT", "ORDER BY t", "SLACK 2"),
    )
    inputs = {"a": arrivals(seed, "v"), "b": arrivals(seed + 100, "vw")}
    case = Case(declarations, (PAIRS,), QUERIES, inputs)
    expected = answers(case.script, inputs)
    with ms.connect(spark) as mill:
        found = run(case, mill, tmp_path, (11, 19))
    assert sum(len(answer.values) for answer in expected.values()) > 40
    for name, answer in expected.items():
        same(found[name], answer.values)
