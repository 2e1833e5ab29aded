"""Maintained relations on Spark against the oracle, which recomputes them at every instant."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from oracle import Arrivals, Row, answers
from tests.engine.on_spark import run
from tests.engine.test_invariants import same
from tests.oracle.generate import Case, StreamDeclaration

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOINS = (
    "SELECT ISTREAM a.k, a.v, b.w FROM a [RANGE 4 SLIDE 2] JOIN b [RANGE 3] ON a.k = b.k",
    "SELECT DSTREAM a.k, a.v, b.w FROM a [RANGE 3] JOIN b [RANGE 2] ON a.k = b.k AND a.v < b.w",
    "SELECT CHANGES a.k, a.v, b.w FROM a [ROWS 3] JOIN b [RANGE 2] ON a.k = b.k",
    "SELECT RSTREAM a.k, a.v, b.w FROM a [RANGE 4 SLIDE 2] JOIN b [RANGE 6 SLIDE 3] ON a.k = b.k",
    "SELECT RSTREAM a.k, a.v, b.w FROM a [RANGE 2] JOIN b [RANGE 2] ON a.k = b.k",
    "SELECT CHANGES a.k, a.v, b.w FROM a [RANGE 3] LEFT JOIN b [RANGE 2] ON a.k = b.k AND a.v < b.w",
    "SELECT CHANGES a.k, a.v, b.w FROM a [ROWS 3] FULL JOIN b [RANGE 2] ON a.k = b.k",
    "SELECT CHANGES a.k, a.v FROM a [RANGE 3] LEFT ANTI JOIN b [RANGE 2] ON a.k = b.k",
    "SELECT a.k, a.v FROM a [RANGE 3] LEFT SEMI JOIN b [ROWS 2] ON a.k = b.k",
    "SELECT a.k, count(*) AS n, sum(a.v) AS s FROM a [RANGE 3] JOIN b [RANGE 2] ON a.k = b.k GROUP BY a.k",
    (
        "SELECT a.k, max(a.v) AS s, avg(b.w) AS m FROM a [UNBOUNDED], b [RANGE 4 SLIDE 2] WHERE a.k ="
        " b.k AND b.w > 1 GROUP BY a.k"
    ),
    (
        "SELECT x.v, y.v AS v2, z.w FROM a [RANGE 3] x, a [ROWS 2] y, b [RANGE 4] z WHERE x.k = y.k AND"
        " y.k = z.k"
    ),
    "SELECT CHANGES x.t, y.t AS yt FROM a [RANGE 2] x JOIN b [ROWS 2] y ON x.t < y.t",
    (
        "SELECT CHANGES count(*) AS n, max(d.v) AS m FROM (SELECT a.k, a.v FROM a [RANGE 3] JOIN b [ROWS"
        " 3] ON a.k = b.k) d"
    ),
    "SELECT d.k, b.w FROM (SELECT DISTINCT k FROM a [RANGE 3]) d JOIN b [RANGE 2] ON d.k = b.k",
    "SELECT DISTINCT a.k FROM a [RANGE 3] JOIN b [RANGE 2] ON a.k = b.k",
    (
        "SELECT a.k, count(*) AS n FROM a [RANGE 3] LEFT JOIN b [RANGE 2] ON a.k = b.k GROUP BY a.k"
        " HAVING count(*) > 1"
    ),
    "SELECT a.v, b.w FROM a [LANDMARK START AT 3 END AT 8 SLIDE 2] JOIN b [RANGE 2] ON a.k = b.k",
)
OTHERS = (
    "SELECT CHANGES DISTINCT k FROM a [RANGE 3]",
    "SELECT DISTINCT k, v FROM a [ROWS 4 PATTR k]",
    "SELECT CHANGES DISTINCT k FROM a [RANGE 4 SLIDE 2]",
    "SELECT k, v FROM a [RANGE 3] EXCEPT ALL SELECT k, w FROM b [RANGE 3]",
    "SELECT k FROM a [RANGE 3] EXCEPT SELECT k FROM b [ROWS 2]",
    "SELECT k, v FROM a [RANGE 5] INTERSECT ALL SELECT k, w FROM b [RANGE 3]",
    "SELECT k FROM a [RANGE 3] INTERSECT SELECT k FROM b [UNBOUNDED]",
    "SELECT k FROM a [RANGE 3] UNION ALL SELECT k FROM b [ROWS 2]",
    "SELECT k, v FROM a [RANGE 3] UNION SELECT k, w FROM b [RANGE 1]",
    "SELECT CHANGES k, count(*) AS n, max(v) AS s, avg(v) AS m FROM a [RANGE 3] GROUP BY k",
    "SELECT CHANGES sum(v) AS s FROM a [RANGE 3]",
    "SELECT DSTREAM k, v FROM a [ROWS 5 SLIDE 2]",
    "SELECT DSTREAM k, v FROM a [NOW]",
    "SELECT CHANGES k, v FROM a [ROWS 2 PATTR k] WHERE v > 2",
    "SELECT k, v FROM a [RANGE 4 SLIDE 2]",
    "SELECT CHANGES k, v FROM a [ROWS 3] UNION ALL SELECT k, w FROM b [RANGE 4 SLIDE 2]",
    "SELECT CHANGES k, v FROM a [ROWS 3] UNION ALL SELECT k, w FROM b [RANGE 4 SLIDE 2]",
    "SELECT k, count(*) AS n FROM (SELECT DISTINCT k, v FROM a [RANGE 3]) d GROUP BY k",
    "SELECT RSTREAM k, v FROM a [RANGE 4 SLIDE 2] EXCEPT SELECT k, w FROM b [RANGE 2]",
    "SELECT CHANGES k FROM a [RANGE 3] WHERE v > 1 UNION ALL SELECT k FROM b [RANGE 3] WHERE w > 2",
    (
        "SELECT CHANGES k, stddev(v) AS s, percentile(v, 0.5) AS p, count(DISTINCT v) AS n FROM a [RANGE"
        " 3] GROUP BY k"
    ),
)
STREAMS = (
    StreamDeclaration("a", "k INT, v INT, t INT", "ORDER BY t", "SLACK 2"),
    StreamDeclaration("b", "k BIGINT, w INT, v INT, t INT", "ORDER BY t", "SLACK 2"),
)


def arrivals(seed: int, names: str) -> Arrivals:
    """In order but for a slack of 2, with NULLs among keys and values."""
    chance = random.Random(seed)
    rows = []
    for i in range(24):
        values = {"k": chance.choice([1, 1, 2, None]), "t": max(i // 2 - chance.randint(0, 2), 0)}
        values |= {name: chance.choice([*range(6), None]) for name in names}
        rows.append(Row(values))
    return Arrivals([rows])


def in_threes(queries: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(queries[i : i + 3]) for i in range(0, len(queries), 3)]


@pytest.mark.parametrize(
    "queries",
    [
        # All of them run without Spark too (test_maintained_queries.py): some suffice here.
        pytest.param(three, id=three[0], marks=[] if number in (0, 2, 3, 7, 9) else pytest.mark.soak)
        for number, three in enumerate([*in_threes(JOINS), *in_threes(OTHERS)])
    ],
)
def test_what_is_maintained(spark: SparkSession, tmp_path: Path, queries: tuple[str, ...]) -> None:
    seed = len(queries[0])
    inputs = {"a": arrivals(seed, "v"), "b": arrivals(seed + 100, "vw")}
    case = Case(STREAMS, (), queries, inputs)
    expected = answers(case.script, inputs)
    with ms.connect(spark) as mill:
        found = run(case, mill, tmp_path, (9, 17))
    for name, answer in expected.items():
        same(found[name], answer.values)
