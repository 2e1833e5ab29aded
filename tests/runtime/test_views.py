"""Views: the current result of a windowed query, to be read like a table at any time (semantics, 9)."""

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import MillstreamError
from millstream.runtime.queries.running_query import RunningQuery
from millstream.testing import Streams, table
from tests.runtime.growing import Growing, appear, until

pytestmark = pytest.mark.spark

BIDS = """
    item | price | t
    1    | 10    | 1
    2    | 20    | 4
    1    | 30    | 7
    3    | 40    | 12
    2    | 50    | 14
"""


rare = partial(pytest.param, marks=pytest.mark.soak)
"""Maintained results on Spark; tests/engine compares them with the oracle without it."""


@pytest.fixture
def bids(streams: Streams) -> Streams:
    streams.add("CREATE STREAM Bid (item INT, price INT, t INT) ORDER BY t", BIDS)
    streams.add("CREATE STREAM Sale (item INT, t INT) ORDER BY t", "item | t \n 1 | 8 \n 3 | 13")
    return streams


@pytest.fixture
def growing(spark: SparkSession, tmp_path: Path) -> Growing:
    return Growing(ms.connect(spark), tmp_path / "bids")


def _rows(query: RunningQuery) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in query.snapshot().to_pylist())


def test_at_the_end_of_the_input_a_view_is_as_of_the_newest_tuple(bids: Streams) -> None:
    # At 14 there is what is younger than 10: the bids at 7, 12 and 14.
    assert bids.run_all("""
        CREATE VIEW latest AS SELECT item, price, t FROM Bid [RANGE 10];
        SELECT item, price FROM latest ORDER BY t;
        SELECT count(*) AS n, sum(price) AS total, max(t) - min(t) AS span FROM latest;
        SELECT item FROM latest WHERE price = (SELECT max(price) FROM latest);
    """) == [
        table("item | price \n 1 | 30 \n 3 | 40 \n 2 | 50"),
        table("n | total | span \n 3 | 120 | 7"),
        table("item \n 2"),
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # 1: 30 at 7; 2: 50 at 14, 20 has left; 3: 40.
        ("SELECT item, sum(price) AS total FROM Bid [RANGE 10] GROUP BY item", [(1, 30), (2, 50), (3, 40)]),
        # The extent that ends at 10 is [2, 10) until 15; of a group that is gone nothing is shown.
        ("SELECT item, count(*) AS n FROM Bid [RANGE 8 SLIDE 5] GROUP BY item", [(1, 1), (2, 1)]),
        rare("SELECT count(*) AS n, max(price) AS most FROM Bid [UNBOUNDED]", [(5, 50)]),
        rare("SELECT item, price FROM Bid [ROWS 2]", [(2, 50), (3, 40)]),
        ("SELECT item, price FROM Bid [ROWS 1 PARTITION BY item] WHERE price > 35", [(2, 50), (3, 40)]),
        rare("SELECT DISTINCT item FROM Bid [UNBOUNDED]", [(1,), (2,), (3,)]),
        ("SELECT b.item, price FROM Bid [RANGE 10] b JOIN Sale [RANGE 10] USING (item)", [(1, 30), (3, 40)]),
        rare("SELECT price FROM Bid [RANGE 10] b ANTI JOIN Sale [RANGE 2] s USING (item)", [(30,), (50,)]),
        ("SELECT item FROM Bid [UNBOUNDED] EXCEPT ALL SELECT item FROM Sale [UNBOUNDED]", [(1,), (2,), (2,)]),
        rare("SELECT item FROM Bid [NOW] UNION ALL SELECT item FROM Sale [RANGE 7]", [(1,), (2,), (3,)]),
    ],
)  # fmt: skip
def test_what_a_view_shows(bids: Streams, query: str, expected: list[tuple[object, ...]]) -> None:
    bids.engine.execute(f"CREATE VIEW v AS {query}")
    view = bids.engine.view("v")
    view.wait()
    assert _rows(view) == expected


def test_reports_of_windows_are_the_newest_tuples_of_their_stream(bids: Streams) -> None:
    # The last report has the time 20, after the newest bid.
    bids.engine.execute("""
        CREATE STREAM dearest AS SELECT item, max(price) AS price FROM Bid [TUMBLE 10] GROUP BY item;
        CREATE VIEW v AS SELECT item, max(price) AS price FROM dearest [UNBOUNDED] GROUP BY item;
        CREATE VIEW w AS SELECT d.item, d.price, b.t
            FROM dearest [RANGE 10] d JOIN Bid [RANGE 8] b USING (item);
    """)
    shown = {name: bids.engine.view(name) for name in "vw"}
    for view in shown.values():
        view.wait()
    assert _rows(shown["v"]) == [(1, 30), (2, 50), (3, 40)]
    # At 20 there are the reports of 20, and of the bids those at 14.
    assert _rows(shown["w"]) == [(2, 50, 14)]


def test_a_view_can_be_looked_at_while_it_runs(growing: Growing, capsys: pytest.CaptureFixture[str]) -> None:
    mill = growing.mill
    mill.execute("CREATE VIEW total AS SELECT item, sum(price) AS total FROM Bid [RANGE 10] GROUP BY item")
    view = mill.view("total")
    assert view.snapshot().to_pydict() == {"item": [], "total": []}
    growing.write("1,10,1", "2,20,3", "1,5,4")
    # At 4 there may be more to come, so that everything is known up to 3.
    until(lambda: _rows(view) == [(1, 10), (2, 20)], view)
    assert mill.start("SELECT total FROM total ORDER BY total DESC").collect().to_pydict() == {
        "total": [20, 10]
    }
    growing.write("3,7,12", "3,1,13")
    until(lambda: _rows(view) == [(1, 5), (2, 20), (3, 7)], view)
    assert mill.sql("SELECT sum(total) AS s FROM total").collect()[0].s == 32
    assert mill.view("TOTAL").progress.rows_out == 3
    mill.execute("SHOW VIEWS; EXPLAIN PHYSICAL SELECT total FROM total")
    said = capsys.readouterr().out
    assert said.startswith("total (item int, total bigint): running, 3 rows\nOutput")
    mill.execute("DROP VIEW total")
    assert not view.is_active
    with pytest.raises(MillstreamError, match="unknown stream or table 'total'"):
        mill.start("SELECT * FROM total")
    mill.stop()


def test_a_view_goes_on_after_an_interruption(spark: SparkSession, tmp_path: Path) -> None:
    view = "CREATE VIEW best AS SELECT item, max(price) AS best FROM Bid [RANGE 10] GROUP BY item"
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint") as mill:
        growing = Growing(mill, tmp_path / "bids")
        mill.execute(view)
        growing.write("1,10,1", "2,20,3", "1,5,4")
        until(lambda: _rows(mill.view("best")) == [(1, 10), (2, 20)], mill.view("best"))
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint") as mill:
        growing = Growing(mill, tmp_path / "bids")
        mill.execute(view)
        assert _rows(mill.view("best")) == [(1, 10), (2, 20)]
        growing.write("2,7,12", "3,1,13")
        until(lambda: _rows(mill.view("best")) == [(1, 5), (2, 20)], mill.view("best"))


def test_a_view_of_a_run_that_has_ended_is_there_again(spark: SparkSession, tmp_path: Path) -> None:
    # Values of many types come back as they were.
    (tmp_path / "sent.csv").write_text(
        "letter,1.10,2026-01-01 10:00:00\nparcel,11.99,2026-01-01 10:00:50\n,0.55,2026-01-01 10:01:10\n"
    )
    for _ in range(2):
        with ms.connect(spark, checkpoint=tmp_path / "checkpoint") as mill:
            mill.execute(f"""
                CREATE STREAM Sent (what STRING, price DECIMAL(8, 2), t TIMESTAMP) ORDER BY t
                USING csv OPTIONS (path '{tmp_path / "sent.csv"}');
                CREATE VIEW lately AS SELECT *, array(what) AS all_of FROM Sent [RANGE 1 MINUTE];
            """)
            lately = "SELECT what, price, t, size(all_of) AS n FROM lately ORDER BY t"
            assert Streams(mill, tmp_path).run(lately) == table("""
                what   | price | t                   | n
                parcel | 11.99 | 2026-01-01 10:00:50 | 1
                       | 0.55  | 2026-01-01 10:01:10 | 1
            """)


def test_a_query_may_keep_its_current_result_beside_its_rows(bids: Streams) -> None:
    query = bids.engine.start("SELECT DISTINCT item FROM Bid [RANGE 8]", snapshot=True)
    plain = bids.engine.start("SELECT DISTINCT item FROM Bid [RANGE 8]")
    assert query.collect() == plain.collect()
    assert _rows(query) == [(1,), (2,), (3,)]
    changes = "SELECT CHANGES item, price FROM Bid [RANGE 8]"
    kept, alone = bids.engine.start(changes, snapshot=True), bids.engine.start(changes)
    assert kept.collect().to_pydict() == alone.collect().to_pydict()
    with pytest.raises(MillstreamError, match="the current result of 'q2' is not materialized"):
        plain.snapshot()
    with pytest.raises(MillstreamError, match="cannot be materialized beside its rows"):
        bids.engine.start("SELECT item FROM Bid", snapshot=True)


def test_views_of_views_are_evaluated_when_they_are_read(bids: Streams) -> None:
    assert bids.run_all("""
        CREATE TABLE names AS SELECT * FROM VALUES (1, 'one'), (2, 'two'), (3, 'three') AS n (item, name);
        CREATE VIEW dear AS
            SELECT item, sum(price) AS total FROM Bid GROUP BY item ORDER BY total DESC LIMIT 2;
        CREATE VIEW named AS SELECT name, total FROM dear JOIN names USING (item);
        CREATE VIEW most AS SELECT max(total) AS most FROM named;
        CREATE VIEW counts AS
            SELECT n, count(*) AS items FROM (SELECT item, count(*) AS n FROM Bid GROUP BY item) GROUP BY n;
        SELECT total, item FROM dear;
        SELECT name FROM named ORDER BY name;
        SELECT n, items FROM counts ORDER BY n;
        SELECT b.item, d.name, m.most FROM Bid b JOIN named d ON b.price = d.total - 30 CROSS JOIN most m;
    """) == [
        table("total | item \n 70 | 2 \n 40 | 1"),
        table("name \n one \n two"),
        table("n | items \n 1 | 1 \n 2 | 2"),
        table("item | name | most \n 1 | one | 70 \n 3 | two | 70"),
    ]


def test_a_stream_meets_a_view_as_it_is(growing: Growing, tmp_path: Path) -> None:
    mill = growing.mill
    mill.execute(f"""
        CREATE STREAM Visit (item INT, t INT) ORDER BY t
        USING csv OPTIONS (path '{tmp_path / "visits"}', follow 'true');
    """)
    (tmp_path / "visits").mkdir()
    mill.execute("CREATE VIEW prices AS SELECT item, max(price) AS best FROM Bid GROUP BY item")
    mill.execute("CREATE VIEW best AS SELECT item, best FROM prices WHERE best >= 0")
    growing.write("1,10,1", "2,20,2", "1,0,3")
    until(lambda: mill.view("prices").snapshot().num_rows == 2, mill.view("prices"))
    visits = mill.start("SELECT v.item, best FROM Visit v LEFT JOIN best b ON v.item = b.item")
    appear(tmp_path / "visits" / "1.csv", "1,1", "3,2")
    until(lambda: visits.progress.rows_out == 2, visits)
    growing.write("3,7,12", "1,15,12", "1,0,13")
    until(lambda: (3, 7) in _rows(mill.view("prices")), mill.view("prices"))
    appear(tmp_path / "visits" / "2.csv", "3,10", "1,11")
    until(lambda: visits.progress.rows_out == 4, visits)
    visits.stop()
    assert visits.collect().to_pydict() == {"item": [1, 3, 3, 1], "best": [10, None, 7, 15]}
    mill.stop()


def test_a_view_may_be_replaced(bids: Streams) -> None:
    bids.engine.execute("CREATE VIEW v AS SELECT item FROM Bid [RANGE 1]")
    before = bids.engine.view("v")
    bids.engine.execute("CREATE OR REPLACE VIEW v AS SELECT price FROM Bid [RANGE 1]")
    assert not before.is_active
    assert bids.run("SELECT * FROM v") == table("price \n 50")
    with pytest.raises(MillstreamError, match="view 'v' has only a current result, no stream of rows"):
        bids.engine.view("v").collect()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT ISTREAM item FROM Bid [RANGE 5]", "but ISTREAM makes a stream"),
        ("SELECT count(*) AS n FROM Bid [SESSION GAP 5]", "SESSION GAP 5 WATTR t. cannot be run"),
        ("SELECT window_end, count(*) AS n FROM Bid [TUMBLE 5]", "'window_end' of the window .* cannot be"),
        ("SELECT item, item FROM Bid [RANGE 5]", "two columns of 'v' are called 'item'"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_view(bids: Streams, query: str, message: str) -> None:
    with pytest.raises(MillstreamError, match=message):
        bids.engine.execute(f"CREATE VIEW v AS {query}")
    with pytest.raises(MillstreamError, match="no view 'v' is running"):
        bids.engine.view("v")
