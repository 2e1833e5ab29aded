"""Queries over the contents of windows, drawn at random, give what the oracle gives.

They are planned, optimized or not, and lowered as on Spark; micro-batches, tasks, shards, and state that is
written and read back are drawn too. A few of them run on Spark.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine import on_spark, simulated
from tests.engine.relational import drawn
from tests.engine.test_invariants import same
from tests.reference.generate import Case, StreamDeclaration

import millstream as ms
from millstream.analysis.statements import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.errors import AnalysisError
from millstream.kernels import chunks
from millstream.plan import nodes
from millstream.plan.builder import build
from millstream.plan.executable import why_not
from millstream.plan.optimize import optimize
from millstream.reference import Arrivals, Row, answers
from millstream.reference import run as interpreted
from millstream.syntax import parse_script

SEEDS = range(160)


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "SPARE", 1)


def planned(script: str) -> nodes.Node:
    """The plan of the query that a script ends with, as it is written."""
    catalog = Catalog()
    query = None
    for statement in parse_script(script):
        meaning = analyse(statement, catalog).meaning
        query = meaning.query if isinstance(meaning, RunQuery) else query
    assert query is not None
    return build(query)


@cache
def runnable(seed: int) -> tuple[Case, nodes.Node] | None:
    """What a seed draws, if it makes sense and can be run."""
    one = drawn(random.Random(seed))
    try:
        plan = planned(one.script)
    except AnalysisError:
        return None
    return None if why_not(plan) or why_not(optimize(plan)) else (one, plan)


def test_most_of_what_is_drawn_is_run() -> None:
    assert sum(runnable(seed) is not None for seed in SEEDS) > 0.65 * len(SEEDS)


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if runnable(seed) is not None])
def test_drawn_queries(seed: int) -> None:
    found = runnable(seed)
    assert found is not None
    compare(*found, random.Random(seed))


def compare(case: Case, plan: nodes.Node, chance: random.Random) -> None:
    expected = [(row.time, *row.values) for row in interpreted(plan, case.inputs).rows]
    better = optimize(plan) if chance.random() < 0.6 else plan
    same(simulated.run(better, case.inputs, chance), expected)


# ---------------------------------------------------------------- what was wrong once

STREAMS = (
    StreamDeclaration("a", "k INT, v INT, t INT", "ORDER BY t", "SLACK 2"),
    StreamDeclaration("b", "k BIGINT, v INT, w INT, t INT", "ORDER BY t", "SLACK 2"),
)
FOUND = (
    # An aggregate alone over a landmark window took in what was before it.
    "SELECT CHANGES k, count(*) AS n, sum(v) AS s FROM a [LANDMARK START AT 3 END AT 8] GROUP BY k",
    "SELECT k, count(*) AS n FROM a [LANDMARK START AT 3] GROUP BY k EXCEPT SELECT k, w FROM b [RANGE 2]",
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("query", FOUND)
def test_found(query: str, seed: int) -> None:
    chance = random.Random(seed)
    case = Case(STREAMS, (), (query,), {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")})
    compare(case, planned(case.script), chance)


def arrivals(chance: random.Random, names: str) -> Arrivals:
    rows = []
    for i in range(20):
        values = {"k": chance.choice([1, 1, 2, None]), "t": max(i // 2 - chance.randint(0, 2), 0)}
        rows.append(Row({name: values.get(name, chance.choice([0, 1, 2, 3, None])) for name in names}))
    return Arrivals([rows])


# ---------------------------------------------------------------- on Spark

ON_SPARK = 3


@pytest.mark.spark
@pytest.mark.slow
def test_some_of_them_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Of two windows, as stages take seconds, and of streams with one source partition, as files are."""
    found = [one[0] for seed in SEEDS if (one := runnable(seed)) is not None]
    single = [case for case in found if all(_partitions(case, name) == 1 for name in "ab")]
    chosen = [case for case in single if case.queries[0].count("[") == 2][:ON_SPARK]
    assert len(chosen) == ON_SPARK
    for number, case in enumerate(chosen):
        directory = tmp_path / str(number)
        directory.mkdir()
        expected = answers(case.script, case.inputs)
        with ms.connect(spark) as mill:
            results = on_spark.run(case, mill, directory, (4, 8))
        for name, answer in expected.items():
            same(results[name], answer.values)


def _partitions(case: Case, name: str) -> int:
    given = case.inputs[name]
    assert isinstance(given, Arrivals)
    return len(given.partitions)
