"""A query on Spark, from files to no sink at all."""

from __future__ import annotations

import statistics

from pyspark.sql import SparkSession

from benchmarks.engine.contract import FILES
from benchmarks.engine.data import Shape, make
from benchmarks.growth.running import run
from benchmarks.slides.figures import SLIDES, WINDOW, Point
from millstream.runtime.queries.query_progress import Progress

KEYS = 10
QUERY = "SELECT k, ts, sum(v) OVER (ROWS {} PRECEDING SLIDE {}) AS total FROM s"


def measure(spark: SparkSession, rows: int, repeats: int, parallelism: int) -> list[Point]:
    path = make(Shape(rows, KEYS), parallelism) / "parquet"
    run(spark, QUERY.format(WINDOW - 1, 10), path, FILES // 8)
    points = []
    for slide in SLIDES:
        seen: list[Progress] = []
        query = QUERY.format(WINDOW - 1, slide)
        seconds = [run(spark, query, path, FILES // 8, seen.append) for _ in range(repeats)]
        most = max(seen, key=lambda progress: progress.state_rows)
        rate = rows / statistics.median(seconds)
        points.append(Point("end to end", slide, rate, most.state_rows, most.state_bytes))
    return points
