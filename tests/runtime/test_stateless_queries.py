"""Transducers: selection, projection, derived streams, functions, joins with tables (ESL, section 2)."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

import millstream as ms
from millstream.testing import Streams, table
from tests.runtime.conftest import Together

OPEN_AUCTION = """
    CREATE STREAM OpenAuction (itemID INT, sellerID STRING, start_price DOUBLE, start_time TIMESTAMP)
    ORDER BY start_time
"""
AUCTIONS = """
    itemID | sellerID | start_price | start_time
    1      | ada      | 500         | 2026-01-01 10:00:00
    2      | bob      | 1500.5      | 2026-01-01 10:00:01
    3      | eve, jr  | 2500        | 2026-01-01 10:00:05
    4      | bob      | 1200        | 2026-01-01 10:00:03.25
    5      |          | 1300        | 2026-01-01 10:00:09
"""

DEFINITIONS = """
    CREATE STREAM expensiveItems AS
        SELECT itemID AS item, start_price * 2 AS price FROM OpenAuction WHERE start_price > 1000;
    CREATE STREAM dear AS SELECT item FROM expensiveItems e WHERE e.price > 2500;
    CREATE FUNCTION with_tax(x DOUBLE) : DOUBLE AS round(x * 1.25, 2);
    CREATE FUNCTION shout(s STRING) : STRING LANGUAGE PYTHON AS 'textwrap:dedent';
    SPLIT STREAM OpenAuction INTO
        cheap AS (SELECT * FROM OpenAuction WHERE start_price < 1400),
        bobs AS (SELECT itemID FROM OpenAuction WHERE sellerID = 'bob');
"""
SELLERS = """
    id  | city
    bob | Oslo
    ada | Rome
"""
CASES = {
    # In the order of timestamps, although 4 was read after 3.
    "example 2: selection on a stream": (
        "SELECT itemID, sellerID, start_price, start_time FROM OpenAuction WHERE start_price > 1000",
        """
        itemID | sellerID | start_price | start_time
        2      | bob      | 1500.5      | 2026-01-01 10:00:01
        4      | bob      | 1200.0      | 2026-01-01 10:00:03.25
        3      | eve, jr  | 2500.0      | 2026-01-01 10:00:05
        5      |          | 1300.0      | 2026-01-01 10:00:09
        """,
    ),
    "ORDER BY the timestamp changes nothing": (
        "SELECT itemID FROM OpenAuction WHERE start_price < 1400 ORDER BY start_time",
        "itemID \n 1 \n 4 \n 5",
    ),
    "example 3: a derived stream keeps the timestamp that it does not show": (
        "SELECT item + 100 AS n FROM dear",
        "n \n 102 \n 103 \n 105",
    ),
    "a column may use one before it": (
        "SELECT upper(sellerID) AS name, length(name) AS n FROM OpenAuction WHERE itemID IN (1, 3)",
        """
        name    | n
        ADA     | 3
        EVE, JR | 7
        """,
    ),
    "functions in SQL and in Python": (
        """
        SELECT with_tax(start_price) AS p, shout(sellerID) AS s FROM OpenAuction
        WHERE with_tax(start_price) > 3000
        """,
        "p | s \n 3125.0 | eve, jr",
    ),
    "SPLIT sends a tuple to every branch that it satisfies": (
        "SELECT itemID FROM cheap",
        "itemID \n 1 \n 4 \n 5",
    ),
    "and to each other one": (
        "SELECT itemID FROM bobs",
        "itemID \n 2 \n 4",
    ),
    "an empty result has its columns": (
        "SELECT itemID, sellerID FROM OpenAuction WHERE itemID > 99",
        "itemID | sellerID",
    ),
}
WITH_A_TABLE = {
    "join": (
        "SELECT s.city, itemID FROM OpenAuction a JOIN sellers s ON sellerID = s.id WHERE s.city <> 'Bonn'",
        """
        city | itemID
        Rome | 1
        Oslo | 2
        Oslo | 4
        """,
    ),
    "left join": (
        "SELECT itemID, city FROM OpenAuction a LEFT JOIN sellers s ON sellerID = id",
        """
        itemID | city
        1      | Rome
        2      | Oslo
        4      | Oslo
        3      |
        5      |
        """,
    ),
    "not in": (
        "SELECT itemID FROM OpenAuction WHERE sellerID NOT IN (SELECT id FROM sellers WHERE city = 'Oslo')",
        "itemID \n 1 \n 3",
    ),
    "exists": (
        "SELECT itemID FROM OpenAuction a WHERE EXISTS (SELECT 1 FROM sellers s WHERE s.id = a.sellerID)",
        "itemID \n 1 \n 2 \n 4",
    ),
}


@pytest.fixture(scope="module")
def answers(together: Together) -> Together:
    together.add(OPEN_AUCTION, AUCTIONS, clauses="SLACK INTERVAL 5 SECONDS")
    together.add("CREATE TABLE sellers (id STRING, city STRING)", SELLERS)
    together.engine.execute(DEFINITIONS)
    for cases in (CASES, WITH_A_TABLE):
        together.ask(query for query, _ in cases.values())
    return together


@pytest.mark.parametrize("case", CASES)
def test_a_transducer(answers: Together, case: str) -> None:
    query, expected = CASES[case]
    assert answers.answer(query) == table(expected)


@pytest.mark.parametrize("case", WITH_A_TABLE)
def test_a_stream_with_a_table(answers: Together, case: str) -> None:
    query, expected = WITH_A_TABLE[case]
    assert answers.answer(query) == table(expected)


@pytest.fixture
def auctions(streams: Streams) -> Streams:
    streams.add(OPEN_AUCTION, AUCTIONS, clauses="SLACK INTERVAL 5 SECONDS")
    return streams


def test_equal_timestamps_keep_the_order_of_arrival(local: Streams) -> None:
    local.add(
        "CREATE STREAM s (a INT, t INT) ORDER BY t",
        "a | t \n 3 | 7 \n 1 | 7 \n 2 | 6",
        "a | t \n 0 | 7 \n 9 | 6",
        clauses="SLACK 1",
    )
    assert local.run("SELECT a FROM s") == table("a \n 2 \n 9 \n 3 \n 1 \n 0")


def test_join_using_shows_the_common_column_once(local: Streams) -> None:
    local.add("CREATE STREAM s (k INT, a STRING)", "k | a \n 1 | x \n 2 | y")
    local.add("CREATE TABLE t (k INT, b STRING)", "k | b \n 2 | z")
    assert local.run("SELECT * FROM s JOIN t USING (k)") == table("k | a | b \n 2 | y | z")


def test_a_python_function_gets_arguments_of_the_declared_types(streams: Streams) -> None:
    streams.add("CREATE STREAM s (a INT, b STRING)", "a | b \n 3 | 16 \n | 25")
    streams.engine.execute("CREATE FUNCTION root(x DOUBLE) : DOUBLE LANGUAGE PYTHON AS 'math:sqrt'")
    assert streams.run("SELECT root(b) AS r, root(a + 1) AS q FROM s WHERE a IS NOT NULL") == table(
        "r | q \n 4.0 | 2.0"
    )


def test_what_cannot_be_read_is_a_bad_record(streams: Streams) -> None:
    streams.add(
        "CREATE STREAM s (a INT, t TIMESTAMP) ORDER BY t",
        "a | t \n 1 | 2026-01-01 10:00:00 \n x | 2026-01-01 10:00:01 \n 2 | \n 3 | yesterday",
        clauses="BAD INTO s_bad",
    )
    query = streams.engine.start("SELECT a FROM s")
    assert query.collect().to_pydict() == {"a": [1]}
    assert query.progress.bad == {"s": 3}
    assert query.progress.rows_in == 4
    assert streams.run("SELECT record, reason FROM s_bad") == table("""
        record                  | reason
        x,2026-01-01 10:00:01   | it cannot be read in the stream's schema
        {"a":2}                 | the timestamp is NULL
        3,yesterday             | it cannot be read in the stream's schema
    """)


def test_a_query_over_tables_is_sparks(streams: Streams) -> None:
    streams.add("CREATE TABLE t (k STRING, v INT)", "k | v \n a | 1 \n b | 5 \n a | 3")
    streams.engine.execute("CREATE TABLE sums AS SELECT k, sum(v) AS total FROM t GROUP BY k")
    assert streams.run(
        "SELECT k, total, rank() OVER (ORDER BY total) AS r FROM sums ORDER BY k DESC"
    ) == table("""
        k | total | r
        b | 5     | 2
        a | 4     | 1
    """)


def test_sql_gives_a_dataframe_and_a_stream_of_the_callers_can_be_registered(
    spark: SparkSession, tmp_path: Path
) -> None:
    with ms.connect(spark) as mill:
        rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
        mill.register_stream("ticks", rate.select("timestamp", col("value").alias("n")), order_by="timestamp")
        frame = mill.sql("SELECT n * 10 AS m FROM ticks WHERE n % 2 = 0")
        assert frame.isStreaming
        assert frame.columns == ["m"]
        spark.range(3).createOrReplaceTempView("numbers")
        assert [row.id for row in mill.sql("SELECT id FROM numbers WHERE id > 0 ORDER BY id").collect()] == [
            1,
            2,
        ]
        query = mill.start("SELECT n FROM ticks JOIN numbers ON n = id")
        rows = query.results()
        assert sorted(next(rows).n for _ in range(3)) == [0, 1, 2]
        query.stop()
        assert not query.is_active


def test_sinks_are_sparks_own(auctions: Streams, spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = f"""
        CREATE SINK dear USING parquet OPTIONS (path '{out}');
        INSERT INTO dear SELECT itemID, start_price FROM OpenAuction WHERE start_price > 1400;
    """
    (query,) = auctions.engine.execute(script)
    query.wait()
    assert sorted(row.itemID for row in spark.read.parquet(str(out)).collect()) == [2, 3]
    with pytest.raises(ms.ExecutionError, match="is not empty"):
        auctions.engine.execute("INSERT INTO dear SELECT itemID FROM OpenAuction")


def test_a_missing_file_is_named_where_the_stream_was_defined(streams: Streams) -> None:
    streams.engine.execute("CREATE STREAM s (a INT) USING csv OPTIONS (path 'nowhere/at.csv')", "here.esl")
    with pytest.raises(ms.ExecutionError, match=r"here.esl:1:1: stream 's' reads 'nowhere/at.csv'"):
        streams.engine.start("SELECT a FROM s")


def test_a_header_without_a_column_is_an_error(streams: Streams) -> None:
    streams.add("CREATE STREAM s (a INT, b INT)", "b | c \n 1 | 2")
    with pytest.raises(ms.ExecutionError, match="header"):
        streams.run("SELECT a FROM s")


def test_an_error_in_a_tuple_stops_the_query_and_says_where(streams: Streams) -> None:
    streams.add("CREATE STREAM s (a INT, b INT)", "a | b \n 1 | 0")
    with pytest.raises(ms.ExecutionError, match=r"<query>:1:8: division by zero in a / b"):
        streams.run("SELECT a / b AS q FROM s")


def test_what_cannot_run_yet_says_so_by_name(auctions: Streams) -> None:
    with pytest.raises(
        ms.NotExecutableError, match="the aggregate 'hll_sketch_agg' over a window cannot be run"
    ):
        auctions.engine.start("SELECT hll_sketch_agg(sellerID) AS s FROM OpenAuction [TUMBLE 5 SECONDS]")


def test_example_6_the_history_of_prices_is_two_streams_merged_by_time(local: Streams) -> None:
    local.add(OPEN_AUCTION, AUCTIONS, clauses="SLACK INTERVAL 5 SECONDS")
    local.add(
        "CREATE STREAM ClosedAuction (itemID INT, final_price DECIMAL(10, 2), closed DATE) ORDER BY closed",
        "itemID | final_price | closed \n 9 | 5 | 2025-12-31 \n 1 | 650.50 | 2026-01-02",
    )
    assert local.run("""
        SELECT itemID, start_price AS price, start_time AS t FROM OpenAuction WHERE itemID < 3
        UNION ALL SELECT itemID, final_price, closed FROM ClosedAuction
    """) == table("""
        itemID | price  | t
        9      | 5.0    | 2025-12-31 00:00:00
        1      | 500.0  | 2026-01-01 10:00:00
        2      | 1500.5 | 2026-01-01 10:00:01
        1      | 650.5  | 2026-01-02 00:00:00
    """)


def test_a_union_can_be_queried_and_united_again(local: Streams) -> None:
    local.add("CREATE STREAM a (x INT, t INT) ORDER BY t", "x | t \n 1 | 10 \n 2 | 20")
    local.add("CREATE STREAM b (y INT, u BIGINT) ORDER BY u", "y | u \n 3 | 15 \n 4 | 20")
    local.add("CREATE STREAM c (z STRING)", "z \n 7")
    local.engine.execute("CREATE STREAM both AS SELECT x, t FROM a UNION ALL SELECT y, u FROM b")
    assert local.run("SELECT x * 10 AS v, t FROM both WHERE x <> 2") == table("""
        v  | t
        10 | 10
        30 | 15
        40 | 20
    """)
    rows = local.run("SELECT CAST(x AS STRING) AS v FROM both UNION ALL SELECT z FROM c")
    assert sorted(rows[1:]) == [("1",), ("2",), ("3",), ("4",), ("7",)]
    assert local.run("SELECT x FROM a UNION SELECT y FROM b") == table("x \n 1 \n 3 \n 2 \n 4")


@pytest.mark.parametrize("columns", ["a, b", "b", "1 AS one"])
def test_which_records_are_bad_does_not_depend_on_the_columns_of_the_query(
    streams: Streams, columns: str
) -> None:
    streams.add("CREATE STREAM s (a INT, b INT)", "a | b \n 1 | 10 \n x | 20 \n 2 |")
    query = streams.engine.start(f"SELECT {columns} FROM s")
    assert query.collect().num_rows == 2
    assert query.progress.bad == {"s": 1}


def test_our_own_csv_can_be_read_again(streams: Streams, tmp_path: Path) -> None:
    path = tmp_path / "odd [1] {x}.csv"
    path.write_text('a,b\n1,"say ""hi"", you"\n2,"plain ""q"" x"\n')
    streams.engine.execute(
        f"CREATE STREAM s (a INT, b STRING) USING csv OPTIONS (path '{path}', header 'true')"
    )
    assert streams.engine.start("SELECT b FROM s").collect().to_pydict() == {
        "b": ['say "hi", you', 'plain "q" x']
    }


def test_only_queries_can_be_started(streams: Streams) -> None:
    with pytest.raises(ms.AnalysisError, match="expected a query"):
        streams.engine.start("CREATE TABLE t AS SELECT 7 AS a")
    with pytest.raises(ms.AnalysisError, match="two queries write into sink 'k'"):
        streams.engine.execute("""
            CREATE STREAM s (a INT) USING rate;
            CREATE SINK k USING csv OPTIONS (path 'k');
            INSERT INTO k SELECT a FROM s;
            INSERT INTO k SELECT a + 1 AS a FROM s;
        """)
    assert streams.engine.start("SELECT id FROM range(3) WHERE id > 1").collect().to_pydict() == {"id": [2]}
