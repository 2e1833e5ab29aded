"""Streams and tables from frames of Spark, pandas and Arrow, and checks of a caller's session."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.catalog import Catalog
from millstream.catalog.entries import Registered, Stream
from millstream.errors import AnalysisError, ExecutionError, RejectedTuplesWarning
from millstream.runtime.connection import Mill
from millstream.runtime.frame_registration import Clauses, _entries, _slack, _with_watermark
from millstream.spark.session.external_session import check_session
from millstream.types import INT, STRING, TIMESTAMP, Field

FIELDS = (Field("at", TIMESTAMP), Field("v", INT))


def entries(**clauses: Any) -> tuple[Stream, ...]:
    return _entries("d", FIELDS, Registered(), Clauses(**clauses))


@pytest.mark.parametrize(
    ("slack", "written"),
    [
        ("10 seconds", "INTERVAL 10 seconds"),
        ("INTERVAL 1 MINUTE", "INTERVAL 1 MINUTE"),
        (timedelta(seconds=1, milliseconds=500), "INTERVAL 1500000 MICROSECONDS"),
        ("100 rows", "100 rows"),
        (2.5, "2.5"),
        ("3", "3"),
    ],
)
def test_slack_as_people_write_it_in_python(slack: Any, written: str) -> None:
    assert _slack(slack) == written


def test_a_registered_stream_has_the_clauses_of_create_stream() -> None:
    stream, late, bad = entries(order_by="AT", slack="1 minute", late_into="tardy", bad_into="broken")
    assert [str(p.amount) for p in stream.promises] == ["1 MINUTE"]  # type: ignore[union-attr]
    assert (stream.timestamp.column, stream.schema) == ("at", FIELDS)
    assert (late.name, late.schema) == ("tardy", FIELDS)
    assert (bad.name, [f.name for f in bad.schema]) == ("broken", ["record", "reason"])
    catalog = Catalog()
    for entry in (stream, late, bad):
        catalog.add(entry)


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ({"order_by": "att"}, "unknown column 'att' in order_by"),
        ({"order_by": "at", "slack": "soon"}, "stream 'd': "),
        ({"order_by": "v", "slack": "1 minute"}, "stream 'd': "),
        ({"late_into": "l"}, "stream 'd': a stream without a timestamp has no late tuples"),
    ],
)
def test_clauses_that_do_not_fit(clauses: dict[str, Any], message: str) -> None:
    with pytest.raises(AnalysisError, match=message) as raised:
        entries(**clauses)
    assert raised.value.place is None, "the text that was made of the clauses is not the user's"


def test_a_text_as_timestamp_is_to_be_converted() -> None:
    with pytest.raises(
        AnalysisError, match="cannot be ordered by 'date_time', which is of type string"
    ) as raised:
        _entries("d", (Field("date_time", STRING),), Registered(), Clauses(order_by="date_time"))
    assert raised.value.hint == (
        "convert it first: pd.to_datetime(frame['date_time']) in pandas, pc.strptime in Arrow, "
        "to_timestamp('date_time') in Spark"
    )


TIMES = pd.to_datetime(["2026-01-01 00:00:00", "2026-01-01 00:00:07"])


def test_the_library_is_known_from_the_beginning() -> None:
    with ms.connect() as mill:
        mill.register_stream("s", pd.DataFrame({"k": [1, 2], "v": [3, 4], "t": TIMES}), order_by="t")
        assert "top_k" in mill.explain("SELECT top_k(k, v, 2) FROM s [UNBOUNDED]")


def test_a_column_of_pandas_with_several_types() -> None:
    with ms.connect() as mill:
        with pytest.raises(
            ExecutionError, match="column 'v' of 's' has values of several types: int, str"
        ) as e:
            mill.register_stream("s", pd.DataFrame({"k": [1, 2, 3], "v": [1, "two", None]}))
        assert e.value.hint == "give it one type, as with frame['v'].astype(str) or pd.to_numeric"
        with pytest.raises(ExecutionError, match="column 'v' of 's' has values of type object that Spark"):
            mill.register_stream("s", pd.DataFrame({"v": [object()]}))
        twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
        with pytest.raises(ExecutionError, match="'s' cannot be made of this DataFrame of pandas: Duplicate"):
            mill.register_stream("s", twice)


def test_a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced() -> None:
    one, two = (pd.DataFrame({"t": TIMES, name: [1, 2]}) for name in ("one", "two"))
    with ms.connect() as mill:
        mill.register_stream("s", one, order_by="t", late_into="tardy")
        with pytest.raises(AnalysisError, match="the name 's' is taken by a stream") as raised:
            mill.register_stream("S", two)
        assert raised.value.hint == "choose another name, or pass replace=True"
        with pytest.raises(AnalysisError, match="the name 'tardy' is taken by a stream"):
            mill.register_stream("u", two, order_by="t", late_into="tardy")
        assert mill.catalog.named("u") is None
        mill.register_stream("S", two, replace=True)
        assert "two" in mill.explain("SELECT two FROM s")


@pytest.mark.spark
def test_a_table_takes_no_name_that_is_taken_unless_it_is_to_be_replaced(mill: Mill) -> None:
    mill.register_table("taken", pa.table({"one": [1]}))
    with pytest.raises(AnalysisError, match="the name 'taken' is taken by a table") as raised:
        mill.register_table("Taken", pa.table({"two": [2]}))
    assert raised.value.hint == "choose another name, or pass replace=True"
    assert mill.start("SELECT one FROM taken").collect().column("one").to_pylist() == [1]
    mill.register_table("Taken", pa.table({"two": [2]}), replace=True)
    assert mill.start("SELECT two FROM taken").collect().column("two").to_pylist() == [2]


def test_a_watermark_on_another_column_than_that_of_order_by() -> None:
    watermarks = {"timestamp": 60_000}
    with pytest.raises(
        AnalysisError,
        match="stream 's': the watermark of the DataFrame is on 'timestamp', but order_by is 'value'",
    ) as raised:
        _with_watermark("s", watermarks, Clauses(order_by="value"))
    assert raised.value.hint is not None
    assert _with_watermark("s", watermarks, Clauses()) == Clauses("timestamp", timedelta(minutes=1))
    assert _with_watermark("s", watermarks, Clauses("Timestamp", "1 s")) == Clauses("Timestamp", "1 s")
    assert _with_watermark("s", {}, Clauses("value")) == Clauses("value")


def session_with(python: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]", pythonExec=python))


def test_workers_with_another_python_are_refused_when_the_session_is_connected(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="'no-such-python', which cannot be found") as raised:
        check_session(session_with("no-such-python"))
    assert "PYSPARK_PYTHON" in str(raised.value.hint)
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\necho 3.8\n")
    old.chmod(0o755)
    with pytest.raises(ExecutionError, match=r"Python 3\.8, and this is Python 3"):
        check_session(session_with(str(old)))
    old.write_text("#!/bin/sh\npython3 -c \"import sys; print('%d.%d' % sys.version_info[:2], 'numba')\"\n")
    with pytest.raises(ExecutionError, match="which has no numba"):
        check_session(session_with(str(old)))


def test_a_closed_connection_says_so() -> None:
    mill = Mill()
    mill.stop()
    with pytest.raises(ExecutionError, match="this connection is closed"):
        mill.start("SELECT 1")


# ---------------------------------------------------------------- on Spark


@pytest.fixture
def mill(spark: SparkSession) -> Any:
    with ms.connect(spark) as mill:
        yield mill


@pytest.mark.spark
def test_the_watermark_of_a_dataframe_is_its_timestamp_and_slack(mill: Mill, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text(
        "2026-01-01 00:00:10,1\n2026-01-01 00:00:05,2\n2026-01-01 00:02:00,3\n2026-01-01 00:00:30,4\n"
    )
    frame = mill.spark.readStream.schema("at timestamp, v int").csv(str(tmp_path))
    frame = frame.withWatermark("at", "1 minute")
    mill.register_stream("d", frame, late_into="tardy", ends=True)
    rows, late, total = mill.execute(
        "SELECT v FROM d; SELECT v FROM tardy; SELECT sum(v) AS s FROM d [TUMBLE 1 MINUTE];"
    )
    assert rows.collect().column("v").to_pylist() == [2, 1, 3]
    assert late.collect().column("v").to_pylist() == [4]
    assert total.collect().column("s").to_pylist() == [3, 3], "the last window too: the input ends"


@pytest.mark.spark
def test_rows_of_pandas_and_arrow_as_streams_and_tables(mill: Mill) -> None:
    times = pd.to_datetime(["2026-01-01 00:00:00", "2026-01-01 00:00:07", "2026-01-01 00:00:12"])
    mill.register_stream("p", pd.DataFrame({"k": [1, 2, 1], "at": times}), order_by="at")
    mill.register_table("names", pa.table({"k": [1, 2], "name": ["one", "two"]}))
    mill.register_table("more", pd.DataFrame({"k": [3]}))
    counts = mill.start("SELECT count(*) AS n FROM p [TUMBLE 10 SECONDS]").collect()
    assert counts.column("n").to_pylist() == [2, 1]
    joined = mill.start("SELECT p.k, name FROM p JOIN names ON p.k = names.k").collect()
    assert joined.column("name").to_pylist() == ["one", "two", "one"]
    assert mill.start("SELECT k FROM more").collect().column("k").to_pylist() == [3]
    with pytest.raises(ExecutionError, match="'x' cannot be made of a list"):
        mill.register_table("x", [1, 2])


@pytest.mark.spark
def test_late_tuples_and_bad_records_are_warned_about_in_python(mill: Mill, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("1,10\n2,5\nx,11\n3,12\n")
    mill.execute(
        f"CREATE STREAM s (v INT, t INT) ORDER BY t USING csv OPTIONS (path '{tmp_path}/s.csv');"
        f"CREATE STREAM quiet (v INT, t INT) ORDER BY t USING csv OPTIONS (path '{tmp_path}/s.csv')"
        " LATE DROP BAD INTO broken;"
    )
    query = mill.start("SELECT v FROM s")
    with pytest.warns(RejectedTuplesWarning) as warned:
        query.collect()
    bad, late = (str(one.message) for one in warned)
    assert bad == (
        "1 bad record in stream s (BAD INTO makes a stream of them)\n"
        "  'x,11': column 'v' int cannot be read from 'x'; declare it STRING"
    )
    assert late == ("1 late tuple in stream s (SLACK allows some disorder, LATE INTO makes a stream of them)")
    quiet = mill.start("SELECT v FROM quiet")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", RejectedTuplesWarning)
        query.collect()  # once is enough
        quiet.collect()  # the stream has clauses for them


@pytest.mark.spark
def test_a_dataframe_of_a_query_brings_its_settings(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("1,1\n2,2\n3,13\n")
    store = "spark.sql.streaming.stateStore.providerClass"
    partitions = "spark.sql.shuffle.partitions"
    before = {key: spark.conf.get(key) for key in (store, partitions)}
    for key in before:
        spark.conf.unset(key)
    try:
        with ms.connect(spark) as mill:
            frame = spark.readStream.schema("v int, t int").csv(str(tmp_path))
            mill.register_stream("s", frame, order_by="t")
            result = mill.sql("SELECT count(*) AS n FROM s [TUMBLE 10]")
            assert "RocksDB" in str(result.sparkSession.conf.get(store))
            assert result.sparkSession.conf.get(partitions) == str(spark.sparkContext.defaultParallelism)
            assert spark.conf.get(partitions) == "200", "the caller's session stays as it is"
            rows: list[int] = []
            running = (
                result.writeStream.foreachBatch(lambda batch, _: rows.extend(r.n for r in batch.collect()))
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .start()
            )
            running.processAllAvailable()
            running.stop()
            assert rows == [2]
    finally:
        for key, value in before.items():
            spark.conf.set(key, str(value))
