"""Views on the local engine: their results at the end of the input."""

from pathlib import Path

from millstream.testing import LocalEngine, Streams, table


def test_a_view_is_as_of_the_newest_tuple(tmp_path: Path) -> None:
    for batches, shards in ((1, 1), (2, 3)):
        directory = tmp_path / f"{batches}"
        directory.mkdir()
        streams = Streams(LocalEngine(batches=batches, shards=shards), directory)
        streams.add(
            "CREATE STREAM Bid (item INT, price INT, t INT) ORDER BY t",
            "item | price | t \n 1 | 10 | 1 \n 2 | 20 | 4 \n 1 | 30 | 7",
            "item | price | t \n 3 | 40 | 12 \n 2 | 50 | 14",
        )
        assert streams.run_all("""
            CREATE VIEW latest AS SELECT item, price, t FROM Bid [RANGE 10];
            CREATE STREAM dearest AS SELECT item, max(price) AS price FROM Bid [TUMBLE 10] GROUP BY item;
            CREATE VIEW best AS SELECT item, max(price) AS price FROM dearest GROUP BY item;
            CREATE VIEW total AS
                SELECT item, sum(price) AS total FROM Bid GROUP BY item ORDER BY total DESC LIMIT 2;
            CREATE VIEW large AS SELECT item AS what FROM total WHERE total > 50;
            CREATE TABLE kept (item INT, total BIGINT);
            INSERT INTO kept SELECT item, total + 1 FROM total;
            SELECT item, t FROM latest ORDER BY t;
            SELECT * FROM best ORDER BY item;
            SELECT b.t, total FROM Bid b JOIN total m ON b.item = m.item;
            SELECT * FROM large;
            SELECT * FROM kept ORDER BY total;
        """) == [
            table("item | t \n 1 | 7 \n 3 | 12 \n 2 | 14"),
            table("item | price \n 1 | 30 \n 2 | 50 \n 3 | 40"),
            table("t | total \n 1 | 40 \n 4 | 70 \n 7 | 40 \n 14 | 70"),
            table("what \n 2"),
            table("item | total \n 1 | 41 \n 2 | 71"),
        ]
