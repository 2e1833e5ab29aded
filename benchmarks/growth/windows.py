"""The cost of a row against the size of its window: it should be flat."""

from __future__ import annotations

import statistics

from pyspark.sql import SparkSession

from benchmarks.engine.contract import FILES
from benchmarks.engine.data import Shape, make
from benchmarks.growth.running import run

KEYS = 10
"""Few, so that even the largest window fills up early in the stream."""
SIZES = (100, 1_000, 10_000, 100_000)


def measure(spark: SparkSession, rows: int, repeats: int, parallelism: int) -> list[list[str]]:
    """Rows and range of each size, in turn; a heading and a line for each size."""
    shape = Shape(rows, KEYS)
    path = make(shape, parallelism) / "parquet"
    per_second = shape.rows / shape.seconds / KEYS
    over = "SELECT k, ts, v, sum(v) OVER (PARTITION BY k {}) AS total FROM s"
    queries = {
        (kind, size): over.format(clause)
        for size in SIZES
        for kind, clause in (
            ("rows", f"ROWS {size} PRECEDING"),
            ("range", f"RANGE INTERVAL {round(size / per_second * 1e6)} MICROSECONDS PRECEDING"),
        )
    }
    run(spark, queries["rows", SIZES[0]], path, FILES // 8)
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in queries}
    for _ in range(repeats):
        for key, query in queries.items():
            seconds[key].append(run(spark, query, path, FILES // 8))
    table = [["rows in the window", "OVER ROWS, rows/s", "", "OVER RANGE, rows/s", ""]]
    for size in SIZES:
        line = [f"{size:,}"]
        for kind in ("rows", "range"):
            first, here = (statistics.median(seconds[kind, s]) for s in (SIZES[0], size))
            line += [f"{rows / here:,.0f}", f"{here / first:.2f}x"]
        table.append(line)
    return table
