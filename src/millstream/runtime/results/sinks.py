"""Sinks of INSERT INTO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.definitions.statement_analyzer import AnalysedStatement
from millstream.catalog.entries import FILE_FORMATS, Sink
from millstream.errors import AnalysisError, ExecutionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def stream_writer(frame: DataFrame, sink: Sink) -> DataStreamWriter:
    return frame.writeStream.format(sink.format).options(**dict(sink.options))


def write_batch(frame: DataFrame, sink: Sink) -> None:
    frame.write.format(sink.format).options(**dict(sink.options)).mode("append").save()


def remove_leftovers(sink: Sink, spark: SparkSession, since: float) -> None:
    """Remove part files that killed batches have left: readers that ignore Spark's list fail on them.

    Files made ``since`` the query first started are its own. With the option ``retention`` Spark takes old
    files off its list, so they cannot be distinguished from leftovers.
    """
    from millstream.spark.sources.file_paths import remove_uncommitted

    options = {key.lower(): value for key, value in sink.options}
    if sink.format.lower() in FILE_FORMATS and "path" in options and "retention" not in options:
        remove_uncommitted(options["path"], spark, since)


def check_sink(sink: Sink, spark: SparkSession) -> None:
    """Refuse a directory that is not empty.

    Spark stores a list of finished batches in the directory of a file sink, and would take the first batches
    of a new run for repetitions: it would write nothing and report nothing.
    """
    from millstream.spark.sources.file_paths import is_occupied

    path = {key.lower(): value for key, value in sink.options}.get("path")
    if sink.format.lower() not in FILE_FORMATS or path is None:
        return
    if is_occupied(path, spark):
        error = ExecutionError(
            f"the directory '{path}' of sink '{sink.name}' is not empty",
            hint="remove it, or give the sink another path",
        )
        error.place = sink.place
        raise error


def write_once(sink: Sink, written: set[str], statement: AnalysedStatement) -> None:
    """Refuse a second query into one directory: each would take the other's files for its own."""
    if sink.format.lower() in FILE_FORMATS and sink.name.lower() in written:
        raise AnalysisError(
            f"two queries write into sink '{sink.name}'",
            span=statement.span,
            hint="unite them with UNION ALL, or make a sink for each",
        ).locate(statement.source)
    written.add(sink.name.lower())
