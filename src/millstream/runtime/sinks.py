"""Sinks: where INSERT INTO puts its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.catalog.entries import FILE_FORMATS, Sink
from millstream.errors import ExecutionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def stream_writer(frame: DataFrame, sink: Sink) -> DataStreamWriter:
    return frame.writeStream.format(sink.format).options(**dict(sink.options))


def write_batch(frame: DataFrame, sink: Sink) -> None:
    frame.write.format(sink.format).options(**dict(sink.options)).mode("append").save()


def check_sink(sink: Sink, spark: SparkSession) -> None:
    """Refuse a directory that has something in it.

    Spark keeps a list of finished batches in the directory of a file sink, and would take the first
    batches of a new run for repeated ones: it would write nothing, and say nothing.
    """
    from millstream.spark.paths import is_occupied

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
