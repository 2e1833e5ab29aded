"""Messages for failures of Spark: real failures of real queries, and a few that are hard to cause."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.errors import ExecutionError, MillstreamError
from millstream.spark.errors.error_chain import translate
from millstream.spark.errors.error_messages import Failure, explain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession


def failure(action: Callable[[], object], **options: Any) -> MillstreamError:
    """The translation of what an action raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 (whatever it is, it has to be translated)
        action()
    return translate(caught.value, **options)


def run(stream: DataFrame) -> None:
    stream.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()


def run_in_callback(stream: DataFrame) -> None:
    """Run a query as results are fetched: a failure reaches the query as text only."""

    def fetch(batch: DataFrame, batch_id: int) -> None:
        batch.toArrow()

    stream.writeStream.foreachBatch(fetch).trigger(availableNow=True).start().awaitTermination()


@pytest.fixture
def numbers(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of a and b."""
    (tmp_path / "numbers.csv").write_text("a,b\n1,2\n3,x\n")
    return spark.readStream.schema("a INT, b STRING").option("header", True).csv(str(tmp_path))


@pytest.mark.spark
class TestArithmetic:
    @pytest.mark.parametrize(
        ("expression", "message", "advice"),
        [
            ("id / 0", "division by zero in id / 0 (DIVIDE_BY_ZERO)", "try_divide"),
            ("id % 0", "remainder by zero in id % 0 (REMAINDER_BY_ZERO)", "try_mod"),
            ("id + 9223372036854775807", "arithmetic overflow in id + 92233720368", "try_add"),
            ("CAST('x' || id AS INT)", "'x1' of type STRING cannot be cast to INT", "try_cast"),
            ("array(1, 2)[id + 5]", "the index 6 is out of bounds", "get()"),
        ],
    )
    def test_message_and_hint(self, spark: SparkSession, expression: str, message: str, advice: str) -> None:
        error = failure(spark.range(1, 2).selectExpr(expression).collect)
        assert isinstance(error, ExecutionError)
        assert error.message.startswith(message)
        assert advice in (error.hint or "")
        assert "\n" not in error.message

    def test_in_a_stream(self, numbers: DataFrame) -> None:
        error = failure(lambda: run(numbers.selectExpr("a / (a - a)")))
        assert error.message == "division by zero in a / (a - a) (DIVIDE_BY_ZERO)"

    def test_in_a_callback(self, numbers: DataFrame) -> None:
        error = failure(lambda: run_in_callback(numbers.selectExpr("a / (a - a)")))
        assert error.message == "division by zero (DIVIDE_BY_ZERO)"


@pytest.mark.spark
class TestPlace:
    def test_without_the_text_it_is_what_spark_says(self, spark: SparkSession) -> None:
        statement = "SELECT 1 + id / 0 FROM range(3)"
        error = failure(spark.sql(statement).collect)
        assert error.span == (11, 16)

    def test_with_the_text_of_which_spark_saw_a_part(self, spark: SparkSession) -> None:
        text = "SELECT id % (id - 1) FROM s"
        error = failure(spark.range(3).selectExpr("id % (id - 1) AS z").collect, text=text)
        assert error.span is not None
        assert text[error.span[0] : error.span[1] + 1] == "id % (id - 1)"

    def test_a_part_that_is_there_twice_has_no_place(self, spark: SparkSession) -> None:
        error = failure(spark.range(3).selectExpr("id % 0").collect, text="SELECT id % 0, id % 0 FROM s")
        assert error.span is None


@pytest.mark.spark
class TestNames:
    def test_column(self, spark: SparkSession) -> None:
        error = failure(lambda: spark.range(3).selectExpr("ix"))
        assert (error.message, error.hint) == ("there is no column 'ix'", "there are id")
        assert error.span == (0, 1)

    def test_table(self, spark: SparkSession) -> None:
        error = failure(lambda: spark.sql("SELECT * FROM nobody_made_it"))
        assert error.message == "there is no stream or table 'nobody_made_it'"

    def test_function(self, spark: SparkSession) -> None:
        assert failure(lambda: spark.sql("SELECT nothing(1)")).message == "there is no function 'nothing'"

    def test_static_setting(self, spark: SparkSession) -> None:
        error = failure(lambda: spark.conf.set("spark.driver.memory", "1g"))
        assert error.message == "spark.driver.memory cannot be changed while Spark is running"


@pytest.mark.spark
class TestSources:
    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("kafka", "spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:4.3"),
            ("avro", "spark.jars.packages=org.apache.spark:spark-avro_2.13:4.3"),
            ("delta", "spark.jars.packages=io.delta:delta-spark_2.13"),
            ("iceberg", "spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-4.3_2.13"),
            ("jsom", "did you mean 'json'?"),
            ("nothing", "Spark itself has csv, json, parquet"),
        ],
    )
    def test_unknown_format(self, spark: SparkSession, name: str, hint: str) -> None:
        error = failure(lambda: spark.read.format(name).load("/tmp"))
        assert error.message == f"there is no data source '{name}'"
        assert hint in (error.hint or "")

    def test_missing_path(self, spark: SparkSession) -> None:
        error = failure(lambda: spark.readStream.schema("a INT").csv("/nowhere/x.csv").isStreaming or None)
        assert error.message == "there is no file or directory /nowhere/x.csv"

    @pytest.mark.parametrize("query", [run, run_in_callback])
    def test_header(self, spark: SparkSession, tmp_path: Path, query: Callable[[DataFrame], None]) -> None:
        file = tmp_path / "a.csv"
        file.write_text("z,y\n1,2\n")
        reader = spark.readStream.schema("a INT, b INT").options(header=True, enforceSchema=False)
        error = failure(lambda: query(reader.csv(str(tmp_path))))
        assert error.message == f"{file} has the header (z, y), and not (a, b)"

    def test_header_of_other_length(self, spark: SparkSession, tmp_path: Path) -> None:
        file = tmp_path / "a.csv"
        file.write_text("z,y\n1,2\n")
        reader = spark.readStream.schema("a INT, b INT, c INT").options(header=True, enforceSchema=False)
        error = failure(lambda: run(reader.csv(str(tmp_path))))
        assert error.message == f"{file} has the header (z, y), and not 3 columns"

    def test_pattern_of_weeks(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("2026/01/31\n")
        reader = spark.readStream.schema("t TIMESTAMP").option("timestampFormat", "YYYY/MM/DD")
        error = failure(lambda: run(reader.csv(str(tmp_path))))
        assert error.message == "'Y' in a pattern of dates stands for weeks, which Spark does not read"
        assert error.hint == "write yyyy for the year, MM for the month and dd for the day"

    def test_malformed_record(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("1,2\n3,x\n")
        reader = spark.readStream.schema("a INT, b INT").option("mode", "FAILFAST")
        error = failure(lambda: run(reader.csv(str(tmp_path))))
        assert error.message == "a record is not in the schema: [3,null]"

    def test_connection_refused(self, spark: SparkSession) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            free = server.getsockname()[1]
        source = spark.readStream.format("socket").options(host="127.0.0.1", port=free)
        error = failure(lambda: source.load().writeStream.format("noop").start().awaitTermination())
        assert error.message == "no connection: Connection refused"

    def test_option(self, numbers: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
        reader = spark.readStream.schema("a INT").option("maxFilesPerTrigger", "x")
        error = failure(lambda: run(reader.csv(str(tmp_path))))
        assert error.message.startswith("invalid value 'x' for option 'maxFilesPerTrigger'")

    def test_disk_full(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        error = failure(lambda: jvm.java.io.FileOutputStream("/dev/full").write(1))
        assert (error.message, error.hint) == ("No space left on device", "free some space on that disk")


@pytest.mark.spark
class TestPython:
    def test_a_worker_raises(self, numbers: DataFrame) -> None:
        def bad(batches: Iterator[object]) -> Iterator[object]:
            raise ValueError("one\ntwo")

        error = failure(lambda: run(numbers.mapInArrow(bad, "a INT")))
        assert error.message == "Python code failed with ValueError: one two"
        assert (error.hint or "").startswith(f"raised at {__file__}:")

    @pytest.mark.parametrize("query", [run, run_in_callback])
    def test_a_worker_raises_an_error_of_ours(
        self, numbers: DataFrame, query: Callable[[DataFrame], None]
    ) -> None:
        def bad(batches: Iterator[object]) -> Iterator[object]:
            raise ExecutionError("the state is too large", hint="use a smaller window")

        error = failure(lambda: query(numbers.mapInArrow(bad, "a INT")))
        assert isinstance(error, ExecutionError)
        assert (error.message, error.hint) == ("the state is too large", "use a smaller window")

    def test_a_callback_raises(self, numbers: DataFrame) -> None:
        def bad(batch: DataFrame, batch_id: int) -> None:
            raise KeyError("abc")

        error = failure(lambda: numbers.writeStream.foreachBatch(bad).start().awaitTermination())
        assert error.message == "Python code failed with KeyError: 'abc'"

    def test_a_worker_dies(self, numbers: DataFrame) -> None:
        def bad(batches: Iterator[object]) -> Iterator[object]:
            os._exit(3)

        error = failure(lambda: run(numbers.mapInArrow(bad, "a INT")))
        assert error.message == "a Python worker crashed or was killed"


class TestWithoutSpark:
    def test_our_own_errors_stay_as_they_are(self) -> None:
        error = ExecutionError("x", hint="y")
        assert translate(error) is error

    def test_the_log_is_named_if_there_is_no_better_hint(self) -> None:
        error = translate(RuntimeError("boom"), log=lambda: None)
        assert error.hint == "details are in the log of the Spark session"
        error = translate(RuntimeError("boom"), log=lambda: Path("/tmp/spark.log"))
        assert (error.message, error.hint) == ("boom", "details are in /tmp/spark.log")

    def test_files_of_python(self) -> None:
        error = translate(FileNotFoundError(2, "No such file or directory", "/a/b"))
        assert error.message == "there is no file or directory /a/b"
        error = translate(PermissionError(13, "Permission denied", "/a/b"))
        assert error.message == "/a/b (Permission denied)"
        assert "check the owner" in (error.hint or "")

    @pytest.mark.parametrize(
        ("chain", "message"),
        [
            (
                [Failure("java.io.FileNotFoundException", "/a/b (Permission denied)")],
                "/a/b (Permission denied)",
            ),
            (
                [Failure("java.io.FileNotFoundException", "File file:/a/b does not exist")],
                "there is no file or directory /a/b",
            ),
            (
                [Failure("java.lang.OutOfMemoryError", "Java heap space")],
                "Spark ran out of memory (Java heap space)",
            ),
            (
                [Failure("org.apache.arrow.vector.util.OversizedAllocationException", "Memory required")],
                "a micro-batch is too large: a shard got more than 2 GB of it",
            ),
            ([Failure("java.net.UnknownHostException", "nowhere")], "no connection: nowhere"),
            ([Failure("JvmDied", "")], "Spark's JVM has ended unexpectedly"),
            ([Failure("a.b.StrangeException", "")], "StrangeException"),
            (
                [
                    Failure(
                        "x", "[FAILED_READ_FILE.NO_HINT] Cannot read file:///a.", "FAILED_READ_FILE.NO_HINT"
                    ),
                    Failure("y", "it is\nbroken"),
                ],
                "cannot read /a (FAILED_READ_FILE.NO_HINT): it is broken",
            ),
            (
                [
                    Failure("x", "[STREAM_FAILED] Query terminated.", "STREAM_FAILED"),
                    Failure("y", "the reason"),
                ],
                "the reason",
            ),
        ],
    )
    def test_chains(self, chain: list[Failure], message: str) -> None:
        assert explain(chain)[0] == message

    def test_long_texts_are_cut(self) -> None:
        assert len(explain([Failure("x", "word " * 1000)])[0]) <= 300
