"""Aggregates of the user's on tables: the same answer as on a stream to its end (semantics, section 1)."""

import pytest

from millstream.errors import AnalysisError
from millstream.testing import Streams, table
from tests.runtime.conftest import Together

AGGREGATES = """
CREATE AGGREGATE myavg(Next INT) : DOUBLE {
    TABLE state(tsum INT, cnt INT);
    INITIALIZE : { INSERT INTO state VALUES (Next, 1); }
    ITERATE    : { UPDATE state SET tsum = tsum + Next, cnt = cnt + 1; }
    TERMINATE  : { INSERT INTO RETURN SELECT tsum / cnt FROM state; }
};
CREATE AGGREGATE running(Next INT) : INT {
    TABLE state(total INT);
    INITIALIZE : { INSERT INTO state VALUES (Next); INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { UPDATE state SET total = total + Next; INSERT INTO RETURN SELECT total FROM state; }
    TERMINATE  : { }
};
CREATE AGGREGATE twice(Next INT) : (number INT, what STRING) {
    TABLE seen(n INT);
    INITIALIZE : { INSERT INTO seen VALUES (Next); }
    ITERATE    : { INSERT INTO RETURN SELECT Next, 'again' WHERE Next IN (SELECT n FROM seen);
                   INSERT INTO seen VALUES (Next); }
    TERMINATE  : { INSERT INTO RETURN SELECT CAST(count(*) AS INT), 'rows' FROM seen; }
};
CREATE AGGREGATE ticks() : INT {
    TABLE state(n INT);
    INITIALIZE : { INSERT INTO state VALUES (1); INSERT INTO RETURN VALUES (1); }
    ITERATE    : { UPDATE state SET n = n + 1; INSERT INTO RETURN SELECT n FROM state; }
    TERMINATE  : { }
};
CREATE WINDOW AGGREGATE recent(Next INT) : INT {
    TABLE inwindow(v INT);
    INITIALIZE : { INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { INSERT INTO RETURN SELECT CAST(sum(v) AS INT) FROM inwindow; }
    EXPIRE     : { }
};
"""
ROWS = """
    k | x | t
    a | 4 | 1
    b | 1 | 2
    a | 2 | 3
    b | 7 | 5
    a | 4 | 6
    b | 1 | 9
"""


def add(streams: Streams) -> None:
    streams.add("CREATE TABLE T (k STRING, x INT, t INT)", ROWS)
    streams.add("CREATE STREAM S (k STRING, x INT, t INT) ORDER BY t", ROWS)
    streams.add("CREATE TABLE Nothing (k STRING, x INT, t INT)", "k | x | t")
    streams.engine.execute(AGGREGATES)


@pytest.fixture
def tables(streams: Streams) -> Streams:
    add(streams)
    return streams


def test_a_blocking_aggregate_has_a_row_for_each_group(tables: Streams) -> None:
    assert tables.run("SELECT k, myavg(x) AS m, max(x) AS most FROM T WHERE t < 9 GROUP BY k") == table("""
        k | m                  | most
        a | 3.3333333333333335 | 4
        b | 4.0                | 7
    """)
    assert tables.run("SELECT myavg(x) + 1 AS m, count(*) AS n FROM T HAVING myavg(x) > 3") == table("""
        m                 | n
        4.166666666666666 | 6
    """)


def test_a_table_that_is_empty_makes_no_instance_and_so_no_row(tables: Streams) -> None:
    assert tables.run("SELECT myavg(x) AS m FROM Nothing") == [("m",)]
    assert tables.run("SELECT k, myavg(x) AS m FROM Nothing GROUP BY k") == [("k", "m")]


def test_all_rows_that_an_aggregate_returns_come_out(tables: Streams) -> None:
    assert tables.run("SELECT k, twice(x) FROM T GROUP BY k") == table("""
        k | number | what
        a | 4      | again
        a | 3      | rows
        b | 1      | again
        b | 3      | rows
    """)


SAME = (
    "SELECT t, running(x) AS r FROM {0}",
    "SELECT k, t, running(x) AS r FROM {0} WHERE x > 1 GROUP BY k",
    "SELECT k, t, running(x) FILTER (WHERE x > 1) AS r FROM {0} GROUP BY k",
    "SELECT t, ticks() AS n, running(x) AS r FROM {0}",
    "SELECT k, t, recent(x) OVER (PARTITION BY k ORDER BY t ROWS 1 PRECEDING) AS r FROM {0}",
    "SELECT k, t, recent(x) OVER (ORDER BY t RANGE 3 PRECEDING) AS r FROM {0}",
    "SELECT t, myavg(x) OVER (ORDER BY t ROWS 2 PRECEDING) AS r FROM {0}",
    "SELECT t, myavg(x) FILTER (WHERE k = 'a') OVER (ORDER BY t ROWS 2 PRECEDING) AS r FROM {0}",
    "SELECT t, myavg(DISTINCT x) OVER (ORDER BY t ROWS 4 PRECEDING) AS r FROM {0}",
    """SELECT t, myavg(x) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING) AS r,
                 running(x) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS q FROM {0}""",
)
"""Queries for the table and for the stream."""


@pytest.fixture(scope="module")
def answers(together: Together) -> Together:
    add(together)
    together.ask(query.format(name) for name in ("T", "S") for query in SAME)
    return together


@pytest.mark.parametrize("query", SAME)
def test_a_table_gives_what_a_stream_gives(answers: Together, query: str) -> None:
    on_table, on_stream = (answers.answer(query.format(name)) for name in ("T", "S"))
    assert sorted(on_table[1:]) == sorted(on_stream[1:])
    assert len(on_table) > 3


def test_results_can_be_sorted_cut_and_made_distinct(tables: Streams) -> None:
    assert tables.run("SELECT k, myavg(x) AS m FROM T GROUP BY k ORDER BY m, k DESC LIMIT 1") == table("""
        k | m
        b | 3.0
    """)
    assert tables.run("SELECT t, running(x) AS r FROM T ORDER BY t DESC LIMIT 2 OFFSET 1") == table("""
        t | r
        6 | 18
        5 | 14
    """)
    assert tables.run("SELECT DISTINCT running(x) - x AS r FROM T ORDER BY 1 DESC LIMIT 2") == table("""
        r
        18
        14
    """)
    assert tables.run("SELECT myavg(x) AS m FROM T UNION ALL SELECT 1 FROM T WHERE t = 1") == table("""
        m
        3.1666666666666665
        1.0
    """)


def test_a_query_may_read_the_result_of_an_aggregate(tables: Streams) -> None:
    assert tables.run("""
        SELECT count(*) AS n, max(m) AS m FROM (SELECT k, myavg(x) AS m FROM T GROUP BY k)
    """) == table("""
        n | m
        2 | 3.3333333333333335
    """)
    assert tables.run("SELECT count(*) AS n FROM (SELECT myavg(x) AS m FROM Nothing)") == table("""
        n
        0
    """)
    tables.engine.execute("CREATE TABLE Means AS SELECT k, myavg(x) AS m FROM T GROUP BY k")
    assert tables.run("SELECT T.t, Means.m FROM T JOIN Means ON T.k = Means.k WHERE T.t = 9") == table("""
        t | m
        9 | 3.0
    """)


def test_aggregates_take_distinct_and_filtered_values(tables: Streams) -> None:
    assert tables.run("""
        SELECT k, myavg(DISTINCT x) AS d, myavg(x) FILTER (WHERE x < 4) AS f FROM T GROUP BY k
    """) == table("""
        k | d   | f
        a | 3.0 | 2.0
        b | 4.0 | 1.0
    """)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT myavg(x) OVER (ROWS 2 PRECEDING) FROM T", "a table has none"),
        ("SELECT myavg(x) OVER (ORDER BY t DESC ROWS 2 PRECEDING) FROM T", "one column, upwards"),
        ("SELECT myavg(x) OVER (ORDER BY k ROWS 2 PRECEDING) FROM T", "which is of type string"),
        (
            "SELECT myavg(x) OVER (ORDER BY t ROWS 2 PRECEDING), sum(x) OVER (ORDER BY t) FROM T",
            "a built-in beside",
        ),
        ("SELECT x FROM T WHERE x > (SELECT myavg(x) FROM T)", "Spark runs the queries in expressions"),
        ("SELECT recent(x) FROM T", "only a window version"),
        ("SELECT t, myavg(x) FROM T", "neither grouped nor aggregated"),
        ("SELECT k, myavg(x) AS m FROM T GROUP BY k ORDER BY x", "names a column of SELECT"),
        ("SELECT k, myavg(x) AS m FROM T GROUP BY k SORT BY k", "SORT BY does not go"),
        ("SELECT running(DISTINCT x) FROM S", "DISTINCT"),
    ],
)
def test_what_cannot_be_done_is_said(tables: Streams, query: str, message: str) -> None:
    with pytest.raises(AnalysisError, match=message):
        tables.engine.start(query)
