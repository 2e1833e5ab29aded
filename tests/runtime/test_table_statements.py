"""INSERT, UPDATE and DELETE on Spark: with all of its SQL, beside streams, and across sessions."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import MillstreamError
from millstream.testing import Streams, table
from tests.runtime.growing import Growing, until

pytestmark = pytest.mark.spark

SCRIPT = """
    CREATE TABLE names (item INT, name STRING, since TIMESTAMP);
    INSERT INTO names VALUES (1, 'one', '2026-01-01 10:00:00' :: TIMESTAMP), (2, upper('two'), NULL);
    INSERT INTO names (name, item) SELECT concat(name, '+'), max(item) + 2 FROM names GROUP BY name;
    UPDATE names SET name = lower(name) WHERE item IN (SELECT max(item) FROM names);
    DELETE FROM names AS n WHERE n.since IS NULL AND n.item < 3;
"""


def test_statements_are_sparks_sql(streams: Streams) -> None:
    streams.add(
        "CREATE STREAM Bid (item INT, price INT, t INT) ORDER BY t",
        "item | price | t \n 1 | 5 | 1 \n 4 | 6 | 2",
    )
    assert streams.run_all(f"""
        {SCRIPT}
        CREATE FUNCTION twice(x INT) : INT AS 2 * x;
        CREATE VIEW dear AS SELECT item, max(price) AS price FROM Bid GROUP BY item;
        CREATE TABLE kept AS SELECT item, twice(price) AS price, (SELECT count(*) FROM dear) AS n FROM dear;
        CREATE VIEW known AS SELECT name, price FROM kept JOIN names USING (item);
        INSERT INTO kept VALUES ((SELECT max(item) FROM names), twice(7), 1);
        SELECT * FROM names ORDER BY item;
        SELECT * FROM kept ORDER BY item, price;
        SELECT name, price FROM known ORDER BY name, price;
        SELECT b.item, n.name, k.price FROM Bid b JOIN known k ON b.price + b.price = k.price
            JOIN names n ON b.item = n.item;
    """) == [
        table("""
            item | name | since
            1    | one  | 2026-01-01 10:00:00
            3    | one+ |
            4    | two+ |
        """),
        table("item | price | n \n 1 | 10 | 2 \n 4 | 12 | 2 \n 4 | 14 | 1"),
        table("name | price \n one | 10 \n two+ | 12 \n two+ | 14"),
        table("item | name | price \n 1 | one | 10 \n 4 | two+ | 12"),
    ]


def test_a_session_goes_on_with_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    rows = [(1, "one"), (3, "one+"), (4, "two+")]
    for _ in range(2):
        with ms.connect(spark, checkpoint=checkpoint) as mill:
            mill.execute(SCRIPT)
            found = mill.table("names").select(["item", "name"]).to_pylist()
            assert sorted(tuple(row.values()) for row in found) == rows
    with ms.connect(spark, checkpoint=checkpoint) as mill:
        mill.execute(SCRIPT + "INSERT INTO names (item) VALUES (9)")
        mill.execute("DELETE FROM names WHERE item < 9", once=False)
        assert mill.table("names")["item"].to_pylist() == [9]
    with ms.connect(spark, checkpoint=checkpoint) as mill:
        with pytest.raises(MillstreamError, match="statement 1 on tables is not that of the run before"):
            mill.execute("CREATE TABLE names (item INT)")
        mill.execute("CREATE TABLE few (a INT)", once=False)
        with pytest.raises(MillstreamError, match="the query has 3 columns, and the table takes 1"):
            mill.execute("INSERT INTO few SELECT * FROM VALUES (1, 2, 3)", once=False)


def test_a_stream_meets_a_table_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    mill = ms.connect(spark)
    growing = Growing(mill, tmp_path / "bids")
    mill.execute("CREATE TABLE names (item INT, name STRING); INSERT INTO names VALUES (1, 'one')")
    query = mill.start("SELECT b.item, name FROM Bid b LEFT JOIN names n ON b.item = n.item")
    growing.write("1,10,1", "2,20,2")
    until(lambda: query.progress.rows_out == 2, query)
    mill.execute("INSERT INTO names VALUES (2, 'two'); UPDATE names SET name = 'eins' WHERE item = 1")
    growing.write("1,10,3", "2,20,4")
    until(lambda: query.progress.rows_out == 4, query)
    query.stop()
    assert query.collect().to_pydict() == {"item": [1, 2, 1, 2], "name": ["one", None, "eins", "two"]}
    mill.stop()
