"""Table functions, UNNEST and VALUES on Spark: streams, tables and views, in one script."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millstream.testing import Rows, Streams, table
from tests.runtime.conftest import Together

ROWS = """
    id | k  | t
    1  | 2  | 1
    2  |    | 2
    3  | 3  | 3
"""
SETUP = f"""
CREATE FUNCTION upto(n INT) : TABLE (i INT, w STRING) LANGUAGE PYTHON AS '{__name__}:upto';
CREATE FUNCTION near(a INT) : TABLE (x INT) AS SELECT v FROM UNNEST(array(a, a + 1)) AS q(v) WHERE v > 2;
CREATE AGGREGATE both(x INT) : (y INT, z INT) {{
    INITIALIZE : {{ INSERT INTO RETURN VALUES (x, 1); INSERT INTO RETURN VALUES (x, 2); }}
    ITERATE    : {{ }}
}};
"""
SAME = {
    "SELECT id, i, w FROM {}, TABLE(upto(k)) AS q WHERE i > 0": "id i w\n1 1 a\n3 1 a\n3 2 aa",
    "SELECT id, x FROM {}, TABLE(near(k)) AS q": "id x\n1 3\n3 3\n3 4",
    "SELECT id, y, z FROM {}, TABLE(both(k)) AS q WHERE id = 1": "id y z\n1 2 1\n1 2 2",
    "SELECT id, x, n FROM {}, UNNEST(array(k)) WITH ORDINALITY q(x, n) WHERE id = 1": "id x n\n1 2 1",
    "SELECT id, key, value FROM {}, explode(map(k, id)) AS q WHERE k > 2": "id key value\n3 3 3",
    "SELECT id, q.a FROM {}, UNNEST(array(named_struct('a', k, 'b', 1))) AS q WHERE id = 1": "id a\n1 2",
    "SELECT id, n FROM {} LEFT JOIN (VALUES (2, 'two')) AS v(k, n) USING (k) WHERE id < 3": "id n\n1 two\n2 ",
}
ON_TABLES = {
    "SELECT id, posexplode(array(k)) AS (p, x) FROM T WHERE id = 1": "id p x\n1 0 2",
    "SELECT id, x FROM T LEFT JOIN UNNEST(array(k)) AS x ON true ORDER BY id DESC LIMIT 1": "id x\n3 3",
}


def upto(n: int | None) -> Iterator[tuple[int, str]]:
    """Yield numbers, and texts of this length."""
    yield from ((i, "a" * i) for i in range(n or 0))


def rows(text: str) -> Rows:
    return [tuple(line.split(" ")) for line in text.splitlines()]


def add(streams: Streams) -> None:
    streams.add("CREATE STREAM S (id INT, k INT, t INT) ORDER BY t", ROWS)
    streams.add("CREATE TABLE T (id INT, k INT, t INT)", ROWS)
    streams.engine.execute(SETUP)


@pytest.fixture(scope="module")
def answers(together: Together) -> Together:
    add(together)
    together.ask([*(query.format(name) for query in SAME for name in ("S", "T")), *ON_TABLES])
    return together


@pytest.mark.spark
@pytest.mark.parametrize("query", SAME)
@pytest.mark.parametrize("name", ["S", "T"])
def test_streams_and_tables_give_the_same_rows(answers: Together, query: str, name: str) -> None:
    assert sorted(answers.answer(query.format(name))) == sorted(rows(SAME[query]))


@pytest.mark.spark
@pytest.mark.parametrize("query", ON_TABLES)
def test_on_tables(answers: Together, query: str) -> None:
    assert answers.answer(query) == rows(ON_TABLES[query])


def test_without_spark(local: Streams) -> None:
    add(local)
    local.engine.execute("CREATE STREAM D AS SELECT id, i FROM S, TABLE(upto(k)) AS q")
    assert local.run("SELECT id, count(*) AS n FROM D [UNBOUNDED] GROUP BY id") == table("""
        id | n
        1  | 2
        3  | 3
    """)
