"""The smallest stateful micro-batch of Spark: tiny files, one at a time, and how long each batch takes."""

from __future__ import annotations

import statistics
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.engine.contract import TINY_FILES, TINY_ROWS, TINY_WARM_UP, answer, arguments
from benchmarks.engine.peers.spark import PROVIDERS, SCHEMA, counted, session, totals_of


def count(stream: DataFrame) -> DataFrame:
    return stream.groupBy("k").agg(sf.count(sf.lit(1)).alias("total"))


def window(stream: DataFrame) -> DataFrame:
    windows = stream.withWatermark("ts", "0 seconds").groupBy("k", sf.window("ts", "1 second"))
    return windows.agg(sf.count(sf.lit(1)).alias("total"))


WAYS = {"count": (count, "update"), "window": (window, "append")}


def tiny_file(number: int) -> pa.Table:
    """A row for each of ten keys, a minute after those of the file before."""
    ts = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    columns = {"k": range(TINY_ROWS), "ts": [ts] * TINY_ROWS, "v": [1.0] * TINY_ROWS}
    types = {"k": pa.int32(), "ts": pa.timestamp("us", "UTC"), "v": pa.float64()}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def main() -> None:
    parser = arguments()
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--provider", choices=PROVIDERS, default="rocksdb")
    options = parser.parse_args()
    query, mode = WAYS[options.way]
    spark = session(options, options.provider)
    incoming = options.scratch / "incoming"
    incoming.mkdir()
    writer = counted(query(spark.readStream.schema(SCHEMA).parquet(str(incoming)))).writeStream.format("noop")
    running = (
        writer.outputMode(mode).option("checkpointLocation", str(options.scratch / "checkpoint")).start()
    )
    measure(running, incoming, options.scratch)
    spark.stop()


def measure(running: StreamingQuery, incoming: Path, scratch: Path) -> None:
    """Give a running query its files one by one, and answer."""
    start = time.perf_counter()
    for number in range(TINY_FILES):
        if number == TINY_WARM_UP:
            start = time.perf_counter()
        unfinished = scratch / "unfinished.parquet"
        parquet.write_table(tiny_file(number), unfinished)
        unfinished.rename(incoming / f"{number:03}.parquet")
        running.processAllAvailable()
    seconds = time.perf_counter() - start
    progress = running.recentProgress
    running.stop()
    # A watermark that advances makes for an empty batch after each: it closes windows, and is not counted.
    durations = [batch.durationMs["triggerExecution"] for batch in progress if batch.numInputRows]
    measured = durations[TINY_WARM_UP:]
    rows = TINY_ROWS * len(measured)
    answer(rows, seconds, totals_of(progress), batch_ms=statistics.median(measured), batches=len(measured))


if __name__ == "__main__":
    main()
