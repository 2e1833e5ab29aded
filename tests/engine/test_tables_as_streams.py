"""Windows on tables give what they give on the rows as a stream, to its end."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import ExecutionError
from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

QUERIES = (
    "SELECT k, count(*) AS n FROM s [TUMBLE 5] GROUP BY k",
    "SELECT window_end, count(*) AS n, complete FROM s [RANGE 5 SLIDE 2 EMIT EVERY 1]",
    "SELECT k, sum(v) AS n FROM s [RANGE 3] GROUP BY k",
    "SELECT DISTINCT k FROM s [RANGE 3]",
    "SELECT CHANGES k, sum(v) AS n FROM s [RANGE 3] GROUP BY k",
    "SELECT a.v, b.v FROM s [RANGE 3] a JOIN o [RANGE 2] b ON a.k = b.k",
    "SELECT CHANGES a.v, b.v FROM s [RANGE 3] a FULL JOIN o [RANGE 2] b ON a.k = b.k",
    "SELECT a.v, n.name FROM s [ROWS 3] a JOIN o [NOW] b ON a.k = b.k JOIN names n ON a.k = n.k",
    "SELECT CHANGES k FROM s [RANGE 3] EXCEPT SELECT k FROM o [RANGE 4]",
    "SELECT k, v FROM s [RANGE 3] UNION ALL SELECT k, v FROM o [RANGE 4]",
    "SELECT k, sum(v) AS n FROM s [SESSION GAP 1 PATTR k]",
    "SELECT sum(v) AS n FROM s [START WHEN v > 2 END WHEN v < 1]",
    "SELECT count(*) AS n FROM s [UNBOUNDED]",
    "SELECT k, count(*) AS n FROM s [UNBOUNDED SLIDE 2] GROUP BY k",
    "SELECT k, count(*) AS n FROM s [LANDMARK START AT 3 SLIDE 2] GROUP BY k",
    "SELECT count(*) AS n FROM s [RANGE 4 RATTR t SLIDE 2 ROWS SATTR rank(t)]",
    "SELECT k, count(*) AS n FROM s [ROWS 3 SLIDE 2] GROUP BY k",
    "SELECT k, n FROM (SELECT k, count(*) AS n FROM s [TUMBLE 4] GROUP BY k) [TUMBLE 8]",
    "SELECT k, count(*) OVER (ROWS 2 PRECEDING) AS n FROM (SELECT DISTINCT k FROM s [RANGE 3])",
    "SELECT k, v FROM s [TUMBLE 4] ORDER BY v DESC, k LIMIT 2",
    "SELECT k, total(v) AS n FROM s [TUMBLE 5] GROUP BY k",
    "SELECT RSTREAM k, v FROM s [RANGE 4 SLIDE 2]",
    "SELECT k, sum(v) OVER (PARTITION BY k ROWS 3 PRECEDING SLIDE 2) AS n FROM s",
    "SELECT k, sum(v) OVER (RANGE 4 PRECEDING ACTIVE EXPIRATION) AS n FROM s",
    "SELECT k, total(v) OVER (PARTITION BY k ROWS 2 PRECEDING) AS n FROM s",
    "SELECT X.k, X.v, count(*Y) AS n FROM s PARTITION BY k AS (X, *Y) WHERE Y.v > X.v",
)
pytestmark = pytest.mark.usefixtures("uncompiled")

COLUMNS = "(k INT, v INT, t INT)"
NAMES = """
CREATE TABLE names (k INT, name STRING);
CREATE AGGREGATE total(x INT) : INT {
  TABLE st(m INT);
  INITIALIZE : { INSERT INTO st VALUES (x); }
  ITERATE : { UPDATE st SET m = m + x; }
  TERMINATE : { INSERT INTO RETURN SELECT m FROM st; }
};
"""


def declared(kind: str, clauses: str = "ORDER BY t") -> str:
    return "".join(f"CREATE {kind} {name} {COLUMNS} {clauses};\n" for name in "so") + NAMES


def rows(chance: random.Random, count: int) -> list[dict[str, int]]:
    times = chance.sample(range(20), count)  # ties of a table have no order
    return [{"k": chance.choice([1, 2, 3]), "v": chance.randint(0, 4), "t": time} for time in times]


def by_time(table: list[dict[str, int]]) -> Arrivals:
    return Arrivals([[Row(dict(row)) for row in sorted(table, key=lambda row: row["t"])]])


@pytest.mark.parametrize("query", QUERIES)
def test_a_table_gives_what_a_stream_gives(query: str) -> None:
    on_tables, on_streams = (planned(f"{declared(kind)}{query};") for kind in ("TABLE", "STREAM"))
    assert why_not(on_tables) is None
    for seed in range(2):
        chance = random.Random(seed)
        s, o = rows(chance, 12), rows(chance, 9)
        names = [{"k": 1, "name": "x"}, {"k": 2, "name": "y"}]
        tables = {"s": s, "o": o, "names": names}
        streams = {"s": by_time(s), "o": by_time(o), "names": names}
        expected = [(row.time, *row.values) for row in interpreted(on_streams, streams).rows]
        assert [(row.time, *row.values) for row in interpreted(on_tables, tables).rows] == expected
        for plan in (on_tables, optimize(on_tables)):
            same(simulated.run(plan, tables, chance), expected)


def test_a_window_names_the_order_of_a_table_that_has_none() -> None:
    plan = planned(f"{declared('TABLE', '')}SELECT count(*) AS n FROM s [TUMBLE 5 WATTR t];")
    given = {"s": [{"k": 1, "v": 1, "t": t} for t in (7, 1, 3)], "o": [], "names": []}
    assert simulated.run(plan, given, random.Random(0)) == [(5, 2), (10, 1)]


def test_a_window_on_another_attribute_than_the_order() -> None:
    plan = planned(f"{declared('TABLE')}SELECT count(*) AS n FROM s [TUMBLE 2 WATTR v];")
    given = {"s": [{"k": 1, "v": v, "t": t} for v, t in ((0, 7), (3, 1), (1, 3))], "o": [], "names": []}
    assert [row[-1] for row in simulated.run(plan, given, random.Random(0))] == [2, 1]


def test_a_row_without_a_place_in_the_order_is_an_error() -> None:
    plan = planned(f"{declared('TABLE')}SELECT count(*) AS n FROM s [TUMBLE 5];")
    given = {"s": [{"k": 1, "v": 1, "t": None}], "o": [], "names": []}
    with pytest.raises(ExecutionError, match="a row has no place in the order of 't', where it is NULL"):
        simulated.run(plan, given, random.Random(0))


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], str]:
    """Write the same rows for tables, in no order, and for streams; return their declarations."""
    chance = random.Random(7)
    for name in "so":
        table = rows(chance, 18)
        for kind, ordered in (("TABLE", table), ("STREAM", sorted(table, key=lambda row: row["t"]))):
            lines = [f"{row['k']},{row['v']},{row['t']}\n" for row in ordered]
            (tmp_path / f"{kind}{name}.csv").write_text("".join(lines))

    def script(kind: str) -> str:
        source = "CREATE {0} {1} {2} ORDER BY t USING csv OPTIONS (path '{3}');\n"
        return "".join(source.format(kind, name, COLUMNS, tmp_path / f"{kind}{name}.csv") for name in "so")

    return script


@pytest.mark.parametrize("number", [6, 17])
def test_on_spark(number: int, files: Callable[[str], str], spark: SparkSession) -> None:
    found = []
    for kind in ("TABLE", "STREAM"):
        with ms.connect(spark.newSession()) as mill:
            mill.execute(files(kind))
            query = mill.start(QUERIES[number])
            query.wait(60)
            found.append([tuple(row) for row in query.results()])
    assert found[0] == found[1]
    assert found[0]
