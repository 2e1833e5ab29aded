"""Table functions, UNNEST and VALUES in FROM: the engine against the definitions, on random streams."""

from __future__ import annotations

import random
from typing import Any

import pytest

from oracle import Arrivals, Row, run
from tests.engine import simulated
from tests.physical.planning import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

SCRIPT = """
CREATE STREAM s (id INT, k INT, xs ARRAY<INT>, t INT) ORDER BY t{clause};
CREATE TABLE names (k INT, name STRING) USING csv OPTIONS (path 'names.csv');
CREATE AGGREGATE both(x INT) : (y INT, z INT) {{
    TABLE st(n INT);
    INITIALIZE : {{ INSERT INTO st VALUES (x); INSERT INTO RETURN VALUES (x, 1); }}
    ITERATE    : {{ INSERT INTO RETURN VALUES (x, 2); }}
    TERMINATE  : {{ INSERT INTO RETURN SELECT n + 1, 3 FROM st WHERE n > 1; }}
}};
CREATE FUNCTION near(a INT) : TABLE (x INT, y INT)
    AS SELECT v, v * 10 FROM UNNEST(array(a, a + 1)) AS q(v) WHERE v > 1;
CREATE FUNCTION named(a INT) : TABLE (name STRING) AS SELECT name FROM names WHERE k = a;
"""
QUERIES = [
    "SELECT id, x FROM s, UNNEST(xs) AS q(x)",
    "SELECT id, x, n FROM s, UNNEST(s.xs) WITH ORDINALITY AS q(x, n) WHERE x > n",
    "SELECT id, x, n FROM s CROSS JOIN UNNEST(xs) AS x WITH OFFSET AS n",
    "SELECT id, x FROM s LEFT JOIN UNNEST(xs) AS q(x) ON true",
    "SELECT id, a, b FROM s, UNNEST(xs) AS q(a), UNNEST(xs) AS r(b) WHERE a < b",
    "SELECT id, pos, x FROM s LATERAL VIEW OUTER posexplode(xs) v AS pos, x",
    "SELECT id, x, y FROM s, TABLE(near(k)) AS q",
    "SELECT id, p.x, q.y FROM s, TABLE(near(k)) AS p, TABLE(near(p.x)) AS q WHERE p.y < q.y",
    "SELECT id, q.name, r.name FROM s, TABLE(named(k)) AS q LEFT JOIN LATERAL named(k + 1) AS r ON true",
    "SELECT id, y, z FROM s, TABLE(both(k)) AS q",
    "SELECT id, x, y, z FROM s, UNNEST(xs) AS p(x), TABLE(both(x)) AS q WHERE x > 0",
    "SELECT id, w FROM s, LATERAL (SELECT k + v AS w FROM explode(array(1, 2)) AS u(v) WHERE v <= s.k) AS q",
    "SELECT window_end, x, count(*), sum(id) FROM s [RANGE 10 SLIDE 5], UNNEST(xs) AS q(x) GROUP BY x",
    "SELECT count(*), max(x) FROM s [TUMBLE 8], UNNEST(xs) AS q(x)",
    "SELECT id, x, count(*) OVER (PARTITION BY x ROWS 1 PRECEDING) AS n FROM s, UNNEST(xs) AS q(x)",
    (
        "SELECT x, n FROM (SELECT id, x FROM s, UNNEST(xs) AS q(x)) [ROWS 3] AS w"
        " JOIN LATERAL (SELECT 1 AS n) AS r ON true"
    ),
    (
        "SELECT a.id, b.id FROM s [RANGE 6] a, UNNEST(a.xs) AS q(x), s [RANGE 4] b, UNNEST(b.xs) AS r(y)"
        " WHERE q.x = r.y AND a.id <> b.id"
    ),
    "SELECT DISTINCT x FROM s [RANGE 7], UNNEST(xs) AS q(x)",
]
NOT_ROW_WINDOWS = [query for query in QUERIES if "[ROWS 3]" not in query]


def drawn(chance: random.Random, slack: int) -> list[Row]:
    tuples, time = [], 0
    for number in range(chance.randint(0, 20)):
        time += chance.choice((0, 1, 1, 2, 9))
        xs = None if chance.random() < 0.1 else [chance.randint(0, 3) for _ in range(chance.randint(0, 3))]
        t = max(time - chance.randint(0, slack), 0)
        tuples.append(Row({"id": number, "k": chance.randint(0, 3), "xs": xs, "t": t}))
    return tuples


@pytest.mark.parametrize("query", NOT_ROW_WINDOWS)
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_the_definition(query: str, seed: int) -> None:
    chance = random.Random(f"{query} {seed}")
    slack = chance.choice((0, 0, 3))
    plan = planned(SCRIPT.format(clause=f" SLACK {slack}" if slack else "") + query)
    names: list[dict[str, Any]] = [{"k": k, "name": name} for k, name in ((1, "a"), (2, "b"), (2, "c"))]
    given = {"s": Arrivals([drawn(chance, slack)]), "names": names}
    expected = [(row.time, *row.values) for row in run(plan, given).rows]
    assert sorted(simulated.run(plan, given, chance), key=str) == sorted(expected, key=str)
