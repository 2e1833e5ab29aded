"""Programs of user-defined aggregates: shown, compiled before the query, with tables of the catalog."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millstream.errors import AnalysisError, ExecutionError, MillstreamError
from millstream.kernels.udas import precompile_program
from millstream.runtime.connection import Mill
from millstream.spark.lowering import stage_runner
from millstream.testing import Streams, table

pytestmark = pytest.mark.spark

WORTH = """
CREATE AGGREGATE worth(name STRING) : INT {
    TABLE state(total INT);
    INITIALIZE : { INSERT INTO state SELECT price FROM Prices WHERE item = name;
                   INSERT INTO RETURN SELECT total FROM state; }
    ITERATE    : { UPDATE state SET total = total + (SELECT price FROM Prices WHERE item = name);
                   INSERT INTO RETURN SELECT total FROM state; }
};
"""


@pytest.fixture
def sales(streams: Streams) -> Streams:
    streams.add(
        "CREATE TABLE Prices (item STRING, price INT)",
        """
        item | price
        pen  | 2
        book | 20
        ''   | 0
        """,
    )
    streams.add(
        "CREATE STREAM Sale (shop INT, item STRING, t INT) ORDER BY t",
        """
        shop | item | t
        1    | pen  | 1
        2    | book | 2
        1    | book | 3
        1    | pen  | 4
        2    | pen  | 5
        """,
    )
    streams.engine.execute(WORTH)
    return streams


def test_a_body_reads_a_table_of_the_catalog(sales: Streams) -> None:
    assert sales.run("SELECT shop, t, worth(item) AS so_far FROM Sale GROUP BY shop") == table("""
        shop | t | so_far
        1    | 1 | 2
        2    | 2 | 20
        1    | 3 | 22
        1    | 4 | 24
        2    | 5 | 22
    """)


def test_a_table_that_is_too_large_is_refused(sales: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_runner, "MOST_GIVEN", 2)
    with pytest.raises(ExecutionError, match="'prices' has more than 2 rows"):
        sales.engine.start("SELECT worth(item) FROM Sale")


def test_the_code_of_a_query_can_be_read(sales: Streams) -> None:
    code = sales.engine.explain("SELECT shop, worth(item) FROM Sale GROUP BY shop", "code")
    assert "# aggregate  worth(name string) : (worth int)" in code
    assert "# runs       INITIALIZE or ITERATE for each tuple" in code
    assert "# compiled   by Numba" in code
    assert "prices(item string (c0), price int (c1)), of the catalog, hash index on item" in code
    assert "# INSERT INTO RETURN SELECT total FROM state" in code
    assert max(map(len, code.splitlines())) <= 110
    compile(code, "<code>", "exec")
    assert "neither aggregates of your own nor patterns" in sales.engine.explain(
        "SELECT shop FROM Sale", "code"
    )


def test_the_stages_of_a_query_can_be_read(sales: Streams) -> None:
    plan = sales.engine.explain("SELECT shop, worth(item) FROM Sale GROUP BY shop", "physical")
    assert "Stage 1  partition by Sale.shop (INT, the value itself)" in plan
    assert "BaseAggregate  worth" in plan
    assert "Scan  Sale from " in plan


def test_explain_is_a_statement_too(sales: Streams, capsys: pytest.CaptureFixture[str]) -> None:
    sales.engine.execute("EXPLAIN CODE SELECT worth(item) FROM Sale; EXPLAIN SELECT item FROM Sale;")
    said = capsys.readouterr().out
    assert "def run(" in said
    assert "StreamScan Sale" in said
    with pytest.raises(MillstreamError, match="unknown mode EXPLAIN COSTS"):
        sales.engine.explain("SELECT item FROM Sale", "costs")


def test_compiling_is_told_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(precompile_program, "_prepared", set())
    # What was compiled for kernels is where it always was.
    monkeypatch.setattr("millstream.stage.precompile_stages.warm_up", lambda: None)
    told: list[tuple[str, bool]] = []
    with Mill(spark, compiling=lambda name, seconds: told.append((name, seconds is None))) as mill:
        streams = Streams(mill, tmp_path)
        streams.add("CREATE STREAM S (x INT, t INT) ORDER BY t", "x | t\n1 | 1\n2 | 2")
        mill.execute("""CREATE AGGREGATE same(x INT) : INT {
            INITIALIZE : { INSERT INTO RETURN VALUES (x); } ITERATE : { INSERT INTO RETURN VALUES (x + 0); }
        };""")
        for _ in range(2):
            assert streams.run("SELECT same(x) AS x FROM S") == table("x\n1\n2")
    assert told == [("same", True), ("same", False)]


def test_a_row_without_a_place_in_the_order_is_an_error(streams: Streams) -> None:
    streams.add("CREATE TABLE T (x INT, t INT)", "x | t\n1 | 1\n2 |")
    streams.engine.execute(
        "CREATE WINDOW AGGREGATE same(x INT) : INT { TABLE inwindow(v INT); INITIALIZE : "
        "{ INSERT INTO RETURN VALUES (x); } ITERATE : { INSERT INTO RETURN VALUES (x); } EXPIRE : { } };"
    )
    with pytest.raises(MillstreamError, match="no place in the order of 't'"):
        streams.run("SELECT same(x) OVER (ORDER BY t ROWS 1 PRECEDING) FROM T")


def test_a_blocking_aggregate_on_a_bare_stream_is_refused(sales: Streams) -> None:
    sales.engine.execute("""CREATE AGGREGATE last_one(x INT) : INT { TABLE s(x INT);
        INITIALIZE : { INSERT INTO s VALUES (x); } ITERATE : { UPDATE s SET x = x + 0; }
        TERMINATE : { INSERT INTO RETURN SELECT x FROM s; } };""")
    with pytest.raises(AnalysisError, match="'last_one' is blocking"):
        sales.engine.start("SELECT last_one(t) FROM Sale")
