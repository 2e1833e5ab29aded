"""Queries over the contents of windows, drawn at random, agree with the oracle.

They are planned, optimized or not, and lowered as on Spark; micro-batches, tasks, shards, and state that is
written and read back are drawn too. A few of them run on Spark.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.errors import AnalysisError
from millstream.kernels.core import state_chunks
from millstream.plan import nodes
from millstream.plan.builder import build
from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from millstream.syntax import parse_script
from oracle import Arrivals, Row, answers
from oracle import run as interpreted
from tests.engine import on_spark, simulated
from tests.engine.relational import drawn
from tests.engine.test_invariants import same
from tests.oracle.generate import Case, StreamDeclaration, TableDeclaration

SEEDS = range(160)


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_chunks, "SPARE", 1)


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
    """Return the case of a seed, if it is valid and can be run."""
    one = drawn(random.Random(seed))
    try:
        plan = planned(one.script)
    except AnalysisError:
        return None
    if why_not(plan) is not None:
        return None
    assert why_not(optimize(plan)) is None, "rules keep plans executable"
    return one, plan


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


# ---------------------------------------------------------------- former errors

STREAMS = (
    StreamDeclaration("a", "k INT, v INT, t INT", "ORDER BY t", "SLACK 2"),
    StreamDeclaration("b", "k BIGINT, v INT, w INT, t INT", "ORDER BY t", "SLACK 2"),
)
FOUND = (
    # Of two columns of one name the first was shown twice.
    "SELECT CHANGES a.v, b.v FROM a [RANGE 3] JOIN b [RANGE 3] ON a.k = b.k",
    "SELECT DISTINCT a.v, b.v FROM a [RANGE 3] LEFT JOIN b [RANGE 3] ON a.k = b.k",
    "SELECT v, v + 1 AS v FROM a [RANGE 3] UNION ALL SELECT v, w FROM b [RANGE 3]",
    "SELECT CHANGES count(*) AS n FROM (SELECT DISTINCT a.v, b.v FROM a [RANGE 3] JOIN b [NOW] ON a.k = b.k)",
    # An aggregate alone over a landmark window included tuples before it.
    "SELECT CHANGES k, count(*) AS n, sum(v) AS s FROM a [LANDMARK START AT 3 END AT 8] GROUP BY k",
    "SELECT k, count(*) AS n FROM a [LANDMARK START AT 3] GROUP BY k EXCEPT SELECT k, w FROM b [RANGE 2]",
    # A Boolean literal as the whole of ON was skipped.
    "SELECT a.v, b.w FROM a [RANGE 3] JOIN b [RANGE 3] ON false",
    "SELECT CHANGES a.v, b.w FROM a [RANGE 3] LEFT JOIN b [RANGE 3] ON false",
    "SELECT CHANGES a.v, b.w FROM a [RANGE 3] FULL JOIN b [ROWS 2] ON (false)",
    "SELECT CHANGES a.v FROM a [RANGE 3] LEFT SEMI JOIN b [RANGE 3] ON false",
    "SELECT CHANGES a.v FROM a [RANGE 3] LEFT ANTI JOIN b [RANGE 3] ON false",
    "SELECT CHANGES a.v FROM a [RANGE 3] LEFT ANTI JOIN b [RANGE 3] ON true",
    # Pairs without required columns had no rows when they were written.
    "SELECT CHANGES count(*) FROM a [RANGE 3] JOIN b [RANGE 3] ON a.k = b.k",
    "SELECT CHANGES count(*) FROM a [UNBOUNDED], b [LANDMARK START AT 2]",
    "SELECT count(*) FROM a [RANGE 4 SLIDE 2], b [RANGE 3]",
    "SELECT CHANGES 1 FROM (SELECT a.k FROM a [RANGE 3] JOIN b [RANGE 3] ON a.k = b.k), a [ROWS 2]",
    # PATTR without GROUP BY was no group.
    "SELECT k, sum(v) AS s FROM a [RANGE 3 PATTR k]",
    "SELECT CHANGES k, sum(v) FROM a [ROWS 2 PATTR k]",
    "SELECT CHANGES sum(v) FROM a [LANDMARK START AT 2 PATTR K] HAVING count(*) > 1",
    "SELECT CHANGES v, K, count(*) FROM a [NOW PATTR k] GROUP BY v",
    "SELECT n, w FROM (SELECT k, count(*) AS n FROM a [RANGE 3 PATTR k]) d JOIN b [RANGE 3] ON b.k = d.k",
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("query", FOUND)
def test_found(query: str, seed: int) -> None:
    chance = random.Random(seed)
    case = Case(STREAMS, (), (query,), {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")})
    compare(case, planned(case.script), chance)


def test_pattr_is_a_group() -> None:
    """The interpreter has the plan's groups: the rows are worked out by hand."""
    given = [("x", 10, 1), ("y", 5, 3), ("x", 20, 11), ("y", 2, 12), ("x", 7, 25)]
    rows = [Row(dict(zip("kvt", row, strict=True))) for row in given]
    stream = StreamDeclaration("a", "k STRING, v INT, t INT", "ORDER BY t", "")
    case = Case((stream,), (), ("SELECT k, sum(v) AS s FROM a [RANGE 10 PATTR k]",), {"a": Arrivals([rows])})
    expected = [("x", 10), ("y", 5), ("x", 20), ("y", 7), ("y", 2), ("x", 7)]
    found = simulated.run(planned(case.script), case.inputs, random.Random(0))
    assert [row[1:] for row in sorted(found)] == expected
    assert [row.values for row in interpreted(planned(case.script), case.inputs).rows] == expected


LOOKUPS = (
    # Conditions were lost where a window ends with the input.
    "SELECT b.k, b.v FROM b [UNBOUNDED] LEFT JOIN names ON b.k = names.k WHERE b.v <> 0",
    # Changes of a window of rows are looked up in several shards.
    "SELECT CHANGES collect_list(b.w) FROM b [ROWS 4] LEFT ANTI JOIN names ON b.v = names.k",
)


@pytest.mark.parametrize("query", LOOKUPS)
def test_lookups(query: str) -> None:
    table = TableDeclaration("names", "k INT, name STRING")
    names = [{"k": 1, "name": "x"}, {"k": 1, "name": "y"}]
    for seed in range(2):
        chance = random.Random(seed)
        given = {"b": arrivals(chance, "kvwt"), "names": names}
        case = Case((STREAMS[1], table), (), (query,), given)
        compare(case, planned(case.script), chance)


AGGREGATES = (
    "count(*), sum(v), avg(v), min(v), max(v), var_pop(v), bit_or(v)",
    "first(v), last(v), max_by(v, t), collect_list(v), collect_set(v)",
    "count(DISTINCT v), sum(DISTINCT v), median(v), count(v) FILTER (WHERE v > 1)",
)


@pytest.mark.parametrize("window", ["RANGE 3", "RANGE 4 SLIDE 2", "ROWS 3", "NOW", "UNBOUNDED"])
@pytest.mark.parametrize("aggregates", AGGREGATES)
def test_aggregates_see_contents_in_the_order_of_the_stream(aggregates: str, window: str) -> None:
    """They did so the other way round."""
    for seed in range(3):
        chance = random.Random(seed)
        query = f"SELECT CHANGES k, {aggregates} FROM a [{window}] GROUP BY k"
        case = Case(STREAMS[:1], (), (query,), {"a": arrivals(chance, "kvt")})
        compare(case, planned(case.script), chance)


GROWING = (
    *(f"SELECT CHANGES k, {aggregates} FROM {{}} GROUP BY k" for aggregates in AGGREGATES),
    "SELECT CHANGES max_by(v, t), collect_set(v) FROM {}",
    "SELECT CHANGES x.k, count(*), max(b.w) FROM {} JOIN b [UNBOUNDED] ON x.k = b.k GROUP BY x.k",
    "SELECT CHANGES count(*), sum(v) FROM (SELECT DISTINCT k, v FROM {})",
    "SELECT CHANGES count(*), min(v) FROM (SELECT k, v FROM {} UNION ALL SELECT k, w FROM b [UNBOUNDED])",
    "SELECT CHANGES count(*) FROM {} LEFT SEMI JOIN b [UNBOUNDED] ON x.k = b.k",
    "SELECT CHANGES k, count(*) AS n FROM {} GROUP BY k EXCEPT SELECT k, w FROM b [RANGE 3 SLIDE 2]",
)
LANDMARKS = (
    "UNBOUNDED",
    "LANDMARK START AT 2",
    "LANDMARK START AT 2 END AT 6",
    "LANDMARK START AT 1 SLIDE 3",
    "LANDMARK START AT 1 END AT 7 SLIDE 3",
)


@pytest.mark.parametrize("window", LANDMARKS)
@pytest.mark.parametrize("query", GROWING)
def test_groups_that_nothing_leaves(query: str, window: str) -> None:
    for seed in range(3):
        chance = random.Random(seed)
        given = {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")}
        case = Case(STREAMS, (), (query.format(f"a [{window}] AS x"),), given)
        compare(case, planned(case.script), chance)


MATCHES = (
    "{0} [{1}] LEFT SEMI JOIN b [{2}] ON {0}.k = b.k",
    "{0} [{1}] LEFT ANTI JOIN b [{2}] ON {0}.k = b.k",
    "{0} [{1}] LEFT SEMI JOIN b [{2}] ON {0}.k = b.k AND b.w > 1 AND {0}.v < 3",
    "{0} [{1}] LEFT ANTI JOIN b [{2}] ON {0}.k = b.k AND b.w > 1",
    "{0} [{1}] LEFT ANTI JOIN b [{2}] ON {0}.k = b.k AND {0}.v < 3",
    "{0} [{1}] LEFT ANTI JOIN b [{2}] ON {0}.k = b.k AND {0}.v < b.w",
    "{0} [{1}] LEFT SEMI JOIN b [{2}] ON b.w = 1",
)


@pytest.mark.parametrize(
    "windows", [("RANGE 3", "UNBOUNDED"), ("UNBOUNDED", "ROWS 2"), ("NOW", "RANGE 4 SLIDE 2")]
)
@pytest.mark.parametrize("query", MATCHES)
def test_semi_and_anti_joins(query: str, windows: tuple[str, str]) -> None:
    for seed in range(3):
        chance = random.Random(seed)
        given = {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")}
        case = Case(STREAMS, (), (f"SELECT CHANGES k, v FROM {query.format('a', *windows)}",), given)
        compare(case, planned(case.script), chance)


OWN = """
CREATE AGGREGATE mixed(v BIGINT) : BIGINT {
    TABLE st(s BIGINT);
    INITIALIZE : { INSERT INTO st VALUES (coalesce(v, 0)); }
    ITERATE : { UPDATE st SET s = s * 3 + coalesce(v, 0); }
    TERMINATE : { INSERT INTO RETURN SELECT s FROM st; }
};
CREATE AGGREGATE all_of(v BIGINT) : BIGINT {
    TABLE st(s BIGINT);
    INITIALIZE : { INSERT INTO st VALUES (v); }
    ITERATE : { INSERT INTO st VALUES (v); }
    TERMINATE : { INSERT INTO RETURN SELECT s FROM st; }
};
"""
UNORDERED = (
    "SELECT CHANGES mixed(n) FROM (SELECT k, count(*) AS n FROM a [RANGE 5] GROUP BY k)",
    "SELECT m, all_of(n) FROM (SELECT k, count(*) AS n, max(v) AS m FROM a [RANGE 5] GROUP BY k) GROUP BY m",
    "SELECT mixed(n) FROM (SELECT x.v, count(*) n FROM a [TUMBLE 2] x, b [NOW] y WHERE x.k=y.k GROUP BY x.v)",
    "SELECT CHANGES mixed(s) FROM (SELECT k, mixed(v) AS s FROM a [RANGE 5] GROUP BY k)",
    "SELECT k, mixed(v) FROM (SELECT k, v FROM a [RANGE 5] EXCEPT SELECT k, w FROM b [NOW]) GROUP BY k",
    "SELECT CHANGES mixed(v) FROM a [RANGE 5]",
    "SELECT collect_list(x.v), max_by(x.v, y.w) FROM a [RANGE 5] x LEFT JOIN b [RANGE 4] y ON x.k = y.k",
    "SELECT CHANGES first(x.v), last(y.w), sum(y.w) FROM a [UNBOUNDED] x JOIN b [UNBOUNDED] y ON x.k = y.k",
)


@pytest.mark.parametrize("query", UNORDERED)
def test_rows_without_an_order(query: str) -> None:
    """Each aggregate takes them in the order of its arguments."""
    for seed in range(2):
        chance = random.Random(seed)
        case = Case(STREAMS, (), (query,), {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")})
        compare(case, planned(OWN + case.script), chance)


LASTING = (
    "SELECT RSTREAM k, v FROM a [UNBOUNDED SLIDE 3] WHERE v > 1",
    "SELECT RSTREAM DISTINCT k, v FROM a [LANDMARK START AT 2 END AT 7 SLIDE 3]",
    "SELECT RSTREAM a.k, b.v FROM a [LANDMARK START AT 1 END AT 7 SLIDE 2] JOIN b [RANGE 3] ON a.k = b.k",
    "SELECT RSTREAM a.k, b.v FROM a [ROWS 2] LEFT JOIN b [RANGE 3 SLIDE 2] ON a.k = b.k",
    "SELECT k, count(*) AS n FROM a [UNBOUNDED SLIDE 5] GROUP BY k UNION ALL SELECT k, w FROM b [ROWS 2]",
)
ROWS_THAT_SLIDE = (
    "SELECT RSTREAM k, v FROM a [ROWS 3 SLIDE 2] WHERE v > 1",
    "SELECT CHANGES k, v FROM a [ROWS 1 SLIDE 3]",
    "SELECT RSTREAM DISTINCT k FROM a [ROWS 3 SLIDE 2 PATTR k]",
    "SELECT CHANGES a.k, b.v FROM a [ROWS 3 SLIDE 2] JOIN b [RANGE 3] ON a.k = b.k",
    "SELECT CHANGES a.k, b.v FROM a [ROWS 3 SLIDE 2] FULL JOIN b [ROWS 2] ON a.k = b.k",
    "SELECT CHANGES a.k, b.v FROM a [ROWS 3 SLIDE 2] FULL JOIN b [UNBOUNDED] ON a.k = b.k",
    "SELECT RSTREAM a.k, b.v FROM a [ROWS 3 SLIDE 2] JOIN b [RANGE 4 SLIDE 3] ON a.k = b.k",
    "SELECT DSTREAM a.k, b.v FROM a [ROWS 3 SLIDE 2] JOIN b [ROWS 4 SLIDE 3] ON a.k = b.k",
    "SELECT a.k, count(*), sum(b.w) FROM a [ROWS 2 SLIDE 2] JOIN b [NOW] ON a.k = b.k GROUP BY a.k",
    "SELECT CHANGES k, v FROM a [ROWS 2 SLIDE 2] UNION ALL SELECT k, v FROM b [RANGE 5 SLIDE 2]",
    "SELECT k, v FROM a [ROWS 2 SLIDE 2] EXCEPT SELECT k, count(*) AS n FROM b [RANGE 5] GROUP BY k",
)


ALONG = (
    "SELECT CHANGES a.k, b.v FROM a [RANGE 3 WATTR v] JOIN b [RANGE 3] ON a.k = b.k",
    "SELECT CHANGES DISTINCT k FROM a [RANGE 4 SLIDE 2 WATTR v]",
    "SELECT k, v FROM a [RANGE 1 WATTR v] EXCEPT SELECT k, w FROM b [RANGE 2 WATTR w]",
    "SELECT CHANGES count(*), sum(w) FROM b [RANGE 2 WATTR w]",
    "SELECT DISTINCT k FROM a [LANDMARK START AT 1 END AT 3 WATTR v]",
    "SELECT DSTREAM k, v FROM a [RANGE 3 WATTR v] WHERE k = 1",
    "SELECT CHANGES k, v FROM (SELECT k, v, t FROM a WHERE v > 0) [RANGE 3 WATTR v]",
)
PROMISING = (
    StreamDeclaration("a", "k INT, v INT, t INT", "ORDER BY t", "SLACK 2 SLACK 1 ON v"),
    StreamDeclaration("b", "k INT, v INT, w INT, t INT", "ORDER BY t", "SLACK 2 SLACK 2 ON w"),
)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("query", ALONG)
def test_windows_along_another_attribute(query: str, seed: int) -> None:
    chance = random.Random(seed)
    given = {"a": rising(chance, "kvt"), "b": rising(chance, "kvwt")}
    case = Case(PROMISING, (), (query,), given)
    compare(case, planned(case.script), chance)


def rising(chance: random.Random, names: str) -> Arrivals:
    """Attributes that rise as the timestamp does, almost."""
    rows = []
    for i in range(20):
        values = {"k": chance.choice([1, 1, 2, None]), "t": max(i // 2 - chance.randint(0, 2), 0)}
        values |= {name: chance.choice([i // 3, i // 3 + 1, max(i // 3 - 1, 0), None]) for name in "vw"}
        rows.append(Row({name: values[name] for name in names}))
    return Arrivals([rows])


OF_A_DAY = (
    "SELECT CHANGES a.k, b.v FROM a [LANDMARK START AT '9:30'] JOIN b [RANGE 3 HOURS] ON a.k = b.k",
    "SELECT CHANGES DISTINCT k FROM a [LANDMARK START AT '9:30' END AT '16:00']",
    "SELECT k, v FROM a [LANDMARK END AT '16:00'] WHERE v > 1 EXCEPT SELECT k, v FROM b [ROWS 2]",
    "SELECT CHANGES count(*), sum(v) FROM a [LANDMARK START AT '9:30'] WHERE v > 1",
    "SELECT a.k, b.v FROM a [LANDMARK START AT '9:30'] JOIN b [NOW] ON a.k = b.k",
)


@pytest.mark.parametrize("query", OF_A_DAY)
def test_landmarks_by_time_of_day(query: str) -> None:
    streams = tuple(
        StreamDeclaration(name, "k INT, v INT, t TIMESTAMP", "ORDER BY t", "SLACK 2 HOURS") for name in "ab"
    )
    five = datetime(2026, 1, 1, 5, tzinfo=UTC)
    for seed in range(2):
        chance = random.Random(seed)
        given = {}
        for name in "ab":
            times = [five + timedelta(minutes=90 * max(i - chance.randint(0, 2), 0)) for i in range(20)]
            rows = [Row({"k": chance.choice([1, 2]), "v": chance.randint(0, 3), "t": t}) for t in times]
            given[name] = Arrivals([rows])
        case = Case(streams, (), (query,), given)
        compare(case, planned(case.script), chance)


SCALARS = (
    "SELECT CHANGES count(*), sum(v), collect_list(v) FROM a [RANGE 2] WHERE v > 1",
    "SELECT count(*) FROM a [RANGE 2] WHERE v > 100 GROUP BY ()",
    "SELECT CHANGES count(*) > 2 AS big FROM a [LANDMARK START AT 3] HAVING count(*) < 4",
    "SELECT CHANGES count(*), sum(v) FROM a [RANGE 4 SLIDE 3] WHERE v > 1",
    "SELECT count(*), sum(x.v) FROM a [RANGE 4 SLIDE 2] x JOIN b [ROWS 2] y ON x.k = y.k AND y.w = 2",
    "SELECT CHANGES c, y.v FROM b [ROWS 3] y JOIN (SELECT count(*) AS c FROM a [RANGE 2]) x ON y.w > x.c",
    "SELECT CHANGES c, y.v FROM b [NOW] y FULL JOIN (SELECT max(v) AS c FROM a [RANGE 2]) x ON y.w > x.c",
    "SELECT CHANGES count(*) FROM a [NOW] WHERE v > 2 UNION ALL SELECT count(*) FROM b [RANGE 2] WHERE w > 3",
    "SELECT RSTREAM count(*) FROM a [NOW] WHERE v > 2 UNION SELECT count(*) FROM b [TUMBLE 3] WHERE w > 3",
    "SELECT CHANGES max(c), count(*) FROM (SELECT count(*) AS c FROM a [RANGE 2] WHERE v > 2) x",
    "SELECT CHANGES c FROM (SELECT count(*) AS c FROM a [RANGE 2]) x LEFT ANTI JOIN b [NOW] y ON x.c = y.w",
)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("query", [*LASTING, *ROWS_THAT_SLIDE, *SCALARS])
def test_slides(query: str, seed: int) -> None:
    chance = random.Random(seed)
    case = Case(STREAMS, (), (query,), {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")})
    compare(case, planned(case.script), chance)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "SELECT RSTREAM id FROM a [UNBOUNDED SLIDE 10]",
            [(10, 1), (10, 2), *((20, i) for i in (1, 2, 3, 4)), *((30, i) for i in (1, 2, 3, 4, 5))],
        ),
        (
            "SELECT CHANGES x.id, y.id AS other FROM a [ROWS 2 SLIDE 2] x JOIN b [RANGE 10] y ON x.k = y.k",
            [(3, "+", 1, 11), (12, "+", 4, 12), (12, "-", 1, 11)],
        ),
        ("SELECT RSTREAM id FROM a [ROWS 2 SLIDE 2] WHERE v < 8", [(3, 2), (12, 4)]),
        (
            "SELECT CHANGES count(*) FROM a [RANGE 2] WHERE v > 5",
            [
                (1, "+", 1),
                *((3, "+", 0), (3, "-", 1), (11, "+", 1), (11, "-", 0)),
                *((13, "+", 0), (13, "-", 1), (25, "+", 1), (25, "-", 0), (27, "+", 0), (27, "-", 1)),
            ],
        ),
        (
            "SELECT y.id, c FROM b [NOW] y, (SELECT count(*) AS c FROM a [RANGE 4] WHERE v > 8) x",
            [(2, 11, 1), (9, 12, 0), (14, 13, 1), (21, 14, 0)],
        ),
    ],
)
def test_slides_by_hand(query: str, rows: list[tuple[int, ...]]) -> None:
    tuples = {
        "a": [(1, "x", 10, 1), (2, "y", 5, 3), (3, "x", 20, 11), (4, "y", 2, 12), (5, "x", 7, 25)],
        "b": [(11, "x", 1, 2), (12, "y", 3, 9), (13, "x", 4, 14), (14, "z", 9, 21)],
    }
    names = ("id", "k", "v", "t")
    given = {n: Arrivals([[Row(dict(zip(names, r, strict=True))) for r in t]]) for n, t in tuples.items()}
    streams = [StreamDeclaration(name, "id INT, k STRING, v INT, t INT", "ORDER BY t", "") for name in "ab"]
    case = Case(tuple(streams), (), (query,), given)
    assert sorted(simulated.run(planned(case.script), case.inputs, random.Random(0))) == rows


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
