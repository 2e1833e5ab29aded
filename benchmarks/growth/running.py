"""Running one query over a directory of parquet files, with its progress on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import millstream as ms
from millstream.runtime.queries.query_progress import Progress

STREAM = """
    CREATE STREAM s (k INT, ts TIMESTAMP, v DOUBLE) ORDER BY ts
    USING parquet OPTIONS (path '{path}', maxFilesPerTrigger '{files}');
    CREATE SINK nowhere USING noop;
"""


def run(
    spark: SparkSession,
    query: str,
    path: Path,
    files_per_batch: int,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> float:
    """Run a query to its end and forget its results; `watch` is shown how far it is, twice a second."""
    mill = ms.connect(spark)
    mill.execute(STREAM.format(path=path, files=files_per_batch))
    start = time.perf_counter()
    [started] = mill.execute(f"INSERT INTO nowhere {query}")
    while started.is_active:
        started.wait(0.5)
        watch(started.progress)
    seconds = time.perf_counter() - start
    mill.stop()
    return seconds
