"""Windows on streams, end to end: OVER and brackets (semantics, sections 1 to 3)."""

import os
import socket
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import MillstreamError, NotExecutableError
from millstream.testing import Streams, table

BIDS = """
    item | price | t
    1    | 10    | 1
    2    | 5     | 2
    1    | 20    | 3
    2    |       | 4
    1    | 30    | 6
"""

CASES = {
    "a result for every tuple about it and those before it": (
        """
        SELECT item, t,
               sum(price) OVER (PARTITION BY item ROWS 1 PRECEDING) AS last_two,
               count(price) OVER (PARTITION BY item RANGE 3 PRECEDING) AS recent,
               max(price) OVER (PARTITION BY item ROWS UNBOUNDED PRECEDING) AS highest
        FROM Bid
        """,
        """
        item | t | last_two | recent | highest
        1    | 1 | 10.0     | 1      | 10.0
        2    | 2 | 5.0      | 1      | 5.0
        1    | 3 | 30.0     | 2      | 20.0
        2    | 4 | 5.0      | 1      | 5.0
        1    | 6 | 50.0     | 2      | 30.0
        """,
    ),
    "windows with different partitions in one select": (
        """
        SELECT item, sum(price) OVER (PARTITION BY item ROWS UNBOUNDED PRECEDING) AS mine,
               count(*) OVER (ROWS UNBOUNDED PRECEDING) AS all_so_far
        FROM Bid WHERE price IS NOT NULL
        """,
        """
        item | mine | all_so_far
        1    | 10.0 | 1
        2    | 5.0  | 2
        1    | 30.0 | 3
        1    | 60.0 | 4
        """,
    ),
    "the first rows of each window in an order of their own": (
        """
        SELECT item, count(*) AS n, window_end, rank() OVER (ORDER BY count(*) DESC) AS place
        FROM Bid [RANGE 4 SLIDE 4] GROUP BY item ORDER BY n DESC, item DESC LIMIT 1
        """,
        """
        item | n | window_end | place
        1    | 2 | 4          | 1
        2    | 1 | 8          | 1
        """,
    ),
    # Windows of 4, every 2: one that holds nothing gives no row.
    "a window is complete when time has passed its end and the last one at the end": (
        """
        SELECT window_start, window_end, wid, count(*) AS n, avg(price) AS mean FROM Bid [RANGE 4 SLIDE 2]
        """,
        """
        window_start | window_end | wid | n | mean
        -2           | 2          | 0   | 1 | 10.0
        0            | 4          | 1   | 3 | 11.666666666666666
        2            | 6          | 2   | 3 | 12.5
        4            | 8          | 3   | 2 | 30.0
        6            | 10         | 4   | 1 | 30.0
        """,
    ),
    "groups of a window with having and expressions over aggregates": (
        """
        SELECT item % 2 AS odd, max(price) - min(price) AS spread, window_end
        FROM Bid [TUMBLE 4] GROUP BY item % 2 HAVING count(price) > 0
        """,
        """
        odd | spread | window_end
        0   | 0.0    | 4
        1   | 10.0   | 4
        1   | 0.0    | 8
        """,
    ),
    **{
        f"nulls may be ignored: {call}": (
            f"""
            SELECT t, {call} OVER (ROWS 1 PRECEDING) AS known,
                   first(price, false) OVER (ROWS 1 PRECEDING) AS any FROM Bid WHERE t > 2
            """,
            """
            t | known | any
            3 | 20.0  | 20.0
            4 | 20.0  | 20.0
            6 | 30.0  |
            """,
        )
        for call in ("first(price) IGNORE NULLS", "first(price IGNORE NULLS)", "first(price, true)")
    },
}


BID = "CREATE STREAM Bid (item INT, price DOUBLE, t INT) ORDER BY t"


@pytest.mark.parametrize("case", CASES)
def test_a_window(local: Streams, case: str) -> None:
    query, expected = CASES[case]
    local.add(BID, BIDS)
    assert local.run(query) == table(expected)


@pytest.fixture
def bids(streams: Streams) -> Streams:
    streams.add(BID, BIDS)
    return streams


def test_results_of_windows_are_a_stream_again(bids: Streams) -> None:
    bids.engine.execute("""
        CREATE STREAM Busy AS
            SELECT item, count(*) AS n, window_end AS e FROM Bid [TUMBLE 2] GROUP BY item;
    """)
    assert bids.run("""
        SELECT item, e, sum(n) OVER (PARTITION BY item ROWS UNBOUNDED PRECEDING) AS so_far FROM Busy
    """) == table("""
        item | e | so_far
        1    | 2 | 1
        1    | 4 | 2
        2    | 4 | 1
        2    | 6 | 2
        1    | 8 | 3
    """)


def test_state_above_a_semi_join_sees_the_tuples_that_have_a_match(local: Streams) -> None:
    local.add(BID, BIDS)
    local.add("CREATE TABLE Wanted (item INT, least DOUBLE)", "item | least \n 1 | 15 \n 1 | 5")
    semi = "LEFT SEMI JOIN Wanted w ON b.item = w.item"
    query = f"SELECT b.t, sum(price) OVER (ROWS 1 PRECEDING) AS total FROM Bid b {semi}"
    assert local.run(query) == table("t | total \n 1 | 10.0 \n 3 | 30.0 \n 6 | 50.0")
    tumbling = f"SELECT window_end, count(*) AS n FROM Bid [TUMBLE 4] b {semi} AND b.price > w.least"
    assert local.run(tumbling) == table("window_end | n \n 4 | 2 \n 8 | 1")
    nothing = f"SELECT b.t, sum(price) OVER (ROWS 1 PRECEDING) AS total FROM Bid b {semi} AND w.least > 99"
    assert local.run(nothing) == [("t", "total")]


def test_a_union_counts_equal_tuples_of_one_instant_once(local: Streams) -> None:
    local.add("CREATE STREAM a (x INT, t INT) ORDER BY t", "x | t \n 1 | 1 \n 1 | 1 \n 2 | 5")
    local.add("CREATE STREAM b (x INT, t INT) ORDER BY t", "x | t \n 1 | 1 \n 1 | 2 \n 2 | 5")
    assert local.run("SELECT x, t FROM a UNION SELECT x, t FROM b") == table("""
        x | t
        1 | 1
        1 | 2
        2 | 5
    """)
    assert local.run("""
        SELECT x, count(*) OVER (ROWS UNBOUNDED PRECEDING) AS n
        FROM (SELECT x, t FROM a UNION ALL SELECT x, t FROM b) AS both
    """) == table("""
        x | n
        1 | 1
        1 | 2
        1 | 3
        1 | 4
        2 | 5
        2 | 6
    """)


def test_late_tuples_are_a_stream_of_their_own(streams: Streams) -> None:
    streams.add(
        "CREATE STREAM s (a STRING, t INT) ORDER BY t",
        "a | t \n x | 10 \n y | 9 \n z | 7 \n w | 12",
        clauses="SLACK 2 LATE INTO too_late",
    )
    assert streams.run_all("SELECT a FROM s; SELECT a, t FROM too_late") == [
        table("a \n y \n x \n w"),
        table("a | t \n z | 7"),
    ]
    assert streams.run("SELECT count(*) OVER (ROWS UNBOUNDED PRECEDING) AS n FROM too_late") == table(
        "n \n 1"
    )
    query = streams.engine.start("SELECT a FROM s WHERE a = 'w'")
    query.wait()
    # Counted, although the query does not want it.
    assert query.progress.late == {"s": 1}


def test_generous_windows_count_a_late_tuple_where_they_still_can(local: Streams) -> None:
    rows = "a | t \n 1 | 10 \n 2 | 4 \n 3 | 12"
    for name, mode in (("strict", "CONSISTENT"), ("kind", "GENEROUS")):
        local.add(f"CREATE STREAM {name} (a INT, t INT) ORDER BY t", rows, clauses=f"SLACK 3 {mode}")
    query = "SELECT sum(a) AS s, window_end AS e FROM {} [RANGE 10 SLIDE 5]"
    strict, kind = local.run_all(f"{query.format('strict')}; {query.format('kind')}")
    assert strict == table("s | e \n 4 | 15 \n 4 | 20")
    # 4 is late after 10 (7 is promised), but the window that ends at 10 was not.
    assert kind == table("s | e \n 2 | 10 \n 4 | 15 \n 4 | 20")


def test_promises_in_the_stream_itself(streams: Streams) -> None:
    streams.add(
        "CREATE STREAM s (sensor STRING, v INT, t INT, done BOOLEAN) ORDER BY t",
        """
        sensor | v | t | done
        a      | 1 | 5 | false
        b      | 2 | 3 | false
        a      |   | 6 | true
        b      | 4 | 4 | false
        a      | 8 | 5 | false
        b      |   |   | true
        """,
        clauses="PUNCTUATED BY (done) PER (sensor) LATE INTO s_late",
    )
    sums = streams.engine.start("SELECT sum(v) AS s, window_end FROM s [TUMBLE 10]")
    assert sums.collect().to_pydict() == {"s": [7], "window_end": [10]}
    assert sums.progress.bad == {}, "a promise without a time is the last word of its sensor"
    assert streams.run("SELECT sensor, v FROM s_late") == table("sensor | v \n a | 8")


def test_one_row_then_silence(streams: Streams) -> None:
    """The clock goes on although nothing arrives, and the window is completed."""
    port = streams.engine.listen()
    streams.engine.execute(f"""
        CREATE STREAM s (a INT, current_time TIMESTAMP) ORDER BY current_time SOURCE 'port{port}'
    """)
    with socket.create_connection(("127.0.0.1", port)) as sender:
        sender.sendall(b"41\n")
        query = streams.engine.start("SELECT count(*) AS n FROM s [TUMBLE 1 SECOND]")
        try:
            row = next(query.results())
        finally:
            query.stop()
    assert row.n == 1


def test_tuples_of_a_silent_latent_stream_expire(streams: Streams) -> None:
    port = streams.engine.listen()
    streams.engine.execute(f"CREATE STREAM s (a INT) SOURCE 'port{port}'")
    with socket.create_connection(("127.0.0.1", port)) as sender:
        sender.sendall(b"41\n")
        query = streams.engine.start(
            "SELECT count(*) OVER (RANGE INTERVAL 1 SECOND PRECEDING ACTIVE EXPIRATION) AS n FROM s"
        )
        try:
            results = query.results()
            assert [next(results).n for _ in range(2)] == [1, 0]
        finally:
            query.stop()


def test_history_that_ends_holds_up_nobody(streams: Streams) -> None:
    """A stream over files ends while the other goes on: its end is sent at once."""
    port = streams.engine.listen()
    streams.add("CREATE STREAM past (a INT, t INT) ORDER BY t", "a | t \n 1 | 1 \n 2 | 12")
    streams.engine.execute(f"CREATE STREAM now (a INT, t INT) ORDER BY t SOURCE 'port{port}'")
    with socket.create_connection(("127.0.0.1", port)) as sender:
        sender.sendall(b"3,13\n4,25\n")
        query = streams.engine.start("""
            SELECT window_end, sum(a) AS total
            FROM (SELECT a, t FROM past UNION ALL SELECT a, t FROM now) [TUMBLE 10] AS both
        """)
        try:
            results = query.results()
            assert [tuple(next(results)) for _ in range(2)] == [(10, 1), (20, 5)]
        finally:
            query.stop()


def test_queries_of_a_script_read_a_stream_once(bids: Streams) -> None:
    queries = bids.engine.execute("""
        SELECT item, price FROM Bid WHERE price > 5;
        SELECT item, sum(price) OVER (PARTITION BY item ROWS 1 PRECEDING) AS s FROM Bid;
        SELECT count(*) AS n FROM Bid [TUMBLE 10];
    """)
    try:
        assert len({query.streaming.id for query in queries}) == 1  # type: ignore[union-attr]
        assert [query.collect().num_rows for query in queries] == [3, 5, 1]
        assert [query.progress.rows_in for query in queries] == [5, 5, 5]
    finally:
        for query in queries:
            query.close()


def test_what_is_measured(bids: Streams) -> None:
    sums = "sum(price) OVER (PARTITION BY item ROWS 1 PRECEDING)"
    query = bids.engine.start(f"SELECT item, {sums} AS s FROM Bid")
    query.wait()
    progress = query.progress
    assert (progress.rows_in, progress.rows_out) == (5, 5)
    assert set(progress.timings) == {"spark", "pack", "kernel", "state"}
    assert progress.frontier is not None


def test_an_overflow_stops_the_query_and_names_the_aggregate(streams: Streams) -> None:
    streams.add("CREATE STREAM s (a BIGINT, t INT) ORDER BY t", f"a | t \n {2**62} | 1 \n {2**62} | 2")
    with pytest.raises(ms.ExecutionError, match=r"sum\(.*\) does not fit"):
        streams.run("SELECT sum(a) OVER (ROWS 1 PRECEDING) AS s FROM s")


def test_a_query_goes_on_after_an_interruption(spark: SparkSession, tmp_path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.csv").write_text("1,1\n2,2\n")
    script = f"""
        CREATE STREAM s (a INT, t INT) ORDER BY t USING csv OPTIONS (path '{source}', follow 'true');
        SELECT a, sum(a) OVER (ROWS UNBOUNDED PRECEDING) AS s FROM s;
    """
    for expected in ([1, 3], [1, 3, 6]):
        mill = ms.connect(spark, checkpoint=tmp_path / "checkpoint")
        [query] = mill.execute(script)
        query.streaming.processAllAvailable()  # type: ignore[union-attr]
        query.stop()
        assert query.collect().column("s").to_pylist() == expected
        mill.stop()
        (source / "2.csv").write_text("3,3\n")
    mill = ms.connect(spark, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(ms.ExecutionError, match="is not the one whose checkpoint is in"):
        mill.execute(script.replace("UNBOUNDED", "1"))
    mill.stop()


def test_rows_without_a_time_are_bad_records_in_every_format(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    rows = pa.table({"v": pa.array([4, 0, 2], pa.int32()), "t": pa.array([1, None, 3], pa.int64())})
    (tmp_path / "rows").mkdir()
    pq.write_table(rows, tmp_path / "rows" / "part.parquet")
    streams.engine.execute(f"""
        CREATE STREAM s (v INT, t BIGINT) ORDER BY t
        USING parquet OPTIONS (path '{tmp_path / "rows"}') BAD INTO s_bad
    """)
    # What would fail on the bad row is not evaluated there.
    for query, expected in (
        ("SELECT 8 / v AS q FROM s", [2.0, 4.0]),
        ("SELECT v + 0.0D AS q FROM s WHERE 8 / v > 1", [4.0, 2.0]),
        ("SELECT sum(8 / v) OVER (ROWS UNBOUNDED PRECEDING) AS q FROM s", [2.0, 6.0]),
    ):
        running = streams.engine.start(query)
        assert running.collect().to_pydict() == {"q": expected}
        assert running.progress.bad == {"s": 1}
        assert running.progress.rows == {"s": 3}
        assert running.progress.newest == "3"
    assert streams.run("SELECT record, reason FROM s_bad") == table("""
        record  | reason
        {"v":0} | the timestamp is NULL
    """)


def test_what_kernels_cannot_remember_is_refused_before_anything_runs(streams: Streams) -> None:
    streams.engine.execute("CREATE STREAM s (a ARRAY<VARIANT>, t INT) ORDER BY t")
    with pytest.raises(NotExecutableError, match="first of values of type array<variant> over a window"):
        streams.engine.start("SELECT first(a) OVER (ROWS 1 PRECEDING) AS m FROM s")


@pytest.mark.parametrize("queries", [1, 2])
def test_a_query_that_cannot_be_told_of_the_end_does_not_wait_for_it(
    bids: Streams, monkeypatch: pytest.MonkeyPatch, queries: int
) -> None:
    def full(self: object, sources: list[str]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("millstream.spark.host.control_stream.ControlStream.end", full)
    for query in bids.engine.execute("SELECT count(*) AS n FROM Bid [TUMBLE 10];" * queries):
        with pytest.raises(MillstreamError, match="No space left on device"):
            query.wait(60)


def test_windows_begin_where_their_origin_says(local: Streams) -> None:
    local.add(
        "CREATE STREAM s (v INT, t TIMESTAMP) ORDER BY t",
        "v | t \n 1 | 2026-01-01 10:00:01 \n 2 | 2026-01-01 10:00:04 \n 4 | 2026-01-01 10:00:06",
    )
    assert local.run("""
        SELECT sum(v) AS total, window_end
        FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS ORIGIN '2026-01-01 00:00:03']
    """) == table("""
        total | window_end
        1     | 2026-01-01 10:00:03
        6     | 2026-01-01 10:00:08
    """)


def test_files_of_one_moment_arrive_in_the_order_of_their_names(streams: Streams, tmp_path: Path) -> None:
    parts = [
        "v | t \n 1 | 7",
        "v | t \n 2 | 7 \n 3 | 7",
        "v | t \n" + "\n".join(f"{i} | 7" for i in range(4, 40)),
    ]
    streams.add("CREATE STREAM s (v INT, t INT) ORDER BY t", *parts)
    for file in tmp_path.rglob("*.csv"):
        os.utime(file, (1_800_000_000, 1_800_000_000))
    assert streams.run("SELECT v FROM s") == [("v",), *((str(i),) for i in range(1, 40))]


def test_files_are_read_in_portions(spark: SparkSession, tmp_path: Path) -> None:
    small = spark.newSession()
    small.conf.set("spark.sql.files.maxPartitionBytes", "10")
    with ms.connect(small) as mill:
        streams = Streams(mill, tmp_path)
        parts = [f"v | t \n {i} | {i} \n {i} | {i}" for i in range(3)]
        streams.add("CREATE STREAM s (v INT, t INT) ORDER BY t", *parts)
        query = mill.start("SELECT sum(v) AS total FROM s [TUMBLE 10]")
        assert query.collect().to_pydict() == {"total": [6]}
        assert query.progress.batches == 4, "one for each file, and the end"


def test_windows_run_in_a_session_that_was_not_made_for_them(spark: SparkSession, tmp_path: Path) -> None:
    plain = spark.newSession()
    ours = ("spark.sql.streaming.stateStore.providerClass", "spark.sql.shuffle.partitions")
    for key in ours:
        plain.conf.unset(key)
    with ms.connect(plain) as mill:
        streams = Streams(mill, tmp_path)
        streams.add(BID, BIDS)
        query = "SELECT item, count(*) AS n FROM Bid [RANGE 10 SLIDE 10] GROUP BY item"
        assert streams.run(query) == table("item | n \n 1 | 3 \n 2 | 2")
    assert not set(ours) & set(plain.conf.getAll)
