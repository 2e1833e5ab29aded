"""Common parts of the contestants in plain Spark: the session, and running a query to its end."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.listener import StreamingQueryProgress

from benchmarks.engine.contract import FILES, OTHER, Totals, answer

SCHEMA = "k INT, ts TIMESTAMP, v DOUBLE"

PROVIDERS = {
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "default": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The same that Millstream sets. These two
    # take about 100 ms off a stateful micro-batch.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Otherwise Spark adds up the size of a batch for Python again with every row, which is half of the work.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # Throughput before short pauses, and no compression of data in memory.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:MaxNewSize=512m",
    "spark.shuffle.compress": "false",
    # Only contestants with Python workers notice this one.
    "spark.python.unix.domain.socket.enabled": "true",
    # All batches are looked at after the end.
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}


def session(options: argparse.Namespace, provider: str = "rocksdb") -> SparkSession:
    builder = (
        SparkSession.builder.appName("peer").master(f"local[{options.parallelism}]").config(map=SETTINGS)
    )
    spark = (
        builder.config("spark.driver.memory", f"{options.memory}m")
        .config("spark.local.dir", str(options.scratch))
        .config("spark.sql.warehouse.dir", str(options.scratch / "warehouse"))
        .config("spark.sql.shuffle.partitions", str(options.parallelism))
        .config("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def by_row() -> Sequence[Column]:
    total = sf.col("total")
    return (
        sf.count(sf.lit(1)).alias("results"),
        sf.sum(total).alias("total"),
        sf.sum(total * total).alias("squares"),
    )


def compete(
    options: argparse.Namespace,
    query: Callable[..., DataFrame],
    provider: str = "rocksdb",
    data: str = "parquet",
    measures: Callable[[], Sequence[Column]] = by_row,
    sides: int = 1,
) -> None:
    """Run `query`, a function of the stream, or of both, over the parquet files of the data.

    `data` is the directory in the data: that of all rows, or the one with the row that closes all windows.
    `measures` are how the results are counted, unless they are rows with a `total`.
    """
    spark = session(options, provider)

    def run(directory: Path, batches: int) -> tuple[float, list[StreamingQueryProgress]]:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES // batches)
        streams = [directory / data, directory / OTHER / data][:sides]
        result = counted(query(*(reader.parquet(str(path)) for path in streams)), measures)
        writer = result.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", tempfile.mkdtemp(dir=options.scratch))
        start = time.perf_counter()
        running = writer.start()
        running.awaitTermination()
        return time.perf_counter() - start, running.recentProgress

    warm_up_seconds = run(options.warm_up, batches=8)[0] if options.warm_up else 0.0
    seconds, progress = run(options.data, options.batches)
    rows = sum(batch.numInputRows for batch in progress) // sides - (data == "parquet_closed")
    answer(rows, seconds, totals_of(progress), warm_up_seconds=warm_up_seconds)
    spark.stop()


def counted(result: DataFrame, measures: Callable[[], Sequence[Column]] = by_row) -> DataFrame:
    """Observe the results: their totals are in the progress of each batch."""
    return result.observe("answer", *measures())


def totals_of(progress: list[StreamingQueryProgress]) -> Totals:
    seen = [batch.observedMetrics["answer"] for batch in progress if "answer" in batch.observedMetrics]
    return Totals(
        sum(row["results"] for row in seen),
        float(sum(row["total"] or 0 for row in seen)),
        float(sum(row["squares"] or 0 for row in seen)),
    )
