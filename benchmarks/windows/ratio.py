"""Constant SLIDE, and a RANGE of 4 to 4,000 slides: whole queries on Spark, beside Spark's own window()."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from benchmarks.engine.contract import FILES
from benchmarks.engine.data import Shape, make
from benchmarks.engine.environment import cores, megabytes
from benchmarks.engine.peers.spark import SCHEMA, session
from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.growth.running import run

ROWS, REPEATS = 1_000_000, 3
KEYS = 10
BATCHES = 8
SLIDE = 0.1
RATIOS = (4, 40, 400, 4_000)
OF_SPARK = RATIOS[:2]
"""Spark copies each row once for each window that it is in: more would take too long."""

ALLOWED = 1.5
QUERY = (
    "SELECT k, window_end, sum(v) AS total FROM s [RANGE {} MILLISECONDS SLIDE {} MILLISECONDS] GROUP BY k"
)
ABOUT = f"""\
sum(v) by k over `[RANGE r SLIDE {SLIDE:g} s]`, r from {RATIOS[0] * SLIDE:g} to {RATIOS[-1] * SLIDE:g} s,
{KEYS} keys, from parquet files to no sink, with checkpoints, in {BATCHES} micro-batches. The stream is
900 s long for a million rows; nearly every key has a tuple in every slide, so that the number of results
does not depend on the range. Spark's `window()` runs once, with the same session and its state in
RocksDB, at the two smallest ratios: it copies each row once for each window that the row is in."""


def measure(size: Size, directory: Path) -> Section:
    data = make(Shape(size.rows, KEYS), cores())
    with tempfile.TemporaryDirectory(prefix="windows-") as scratch:
        memory = min(megabytes() // 2, 4096)
        spark = session(argparse.Namespace(parallelism=cores(), memory=memory, scratch=Path(scratch)))
        try:
            _ours(spark, RATIOS[0], data)
            runs = [[_ours(spark, ratio, data) for ratio in RATIOS] for _ in range(size.repeats)]
            peer = [_spark(spark, ratio, data, Path(scratch)) for ratio in OF_SPARK]
        finally:
            spark.stop()
    seconds = [statistics.median(of_ratio) for of_ratio in zip(*runs, strict=True)]
    return _section(size.rows, seconds, peer, directory)


def _ours(spark: SparkSession, ratio: int, data: Path) -> float:
    slide = round(SLIDE * 1000)
    return run(spark, QUERY.format(ratio * slide, slide), data / "parquet", FILES // BATCHES)


def _spark(spark: SparkSession, ratio: int, data: Path, scratch: Path) -> float:
    slide = round(SLIDE * 1000)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES // BATCHES)
    windows = (
        stream.parquet(str(data / "parquet_closed"))
        .withWatermark("ts", "0 seconds")
        .groupBy("k", sf.window("ts", f"{ratio * slide} milliseconds", f"{slide} milliseconds"))
    )
    writer = windows.agg(sf.sum("v").alias("total")).writeStream.format("noop").outputMode("append")
    writer = writer.option("checkpointLocation", tempfile.mkdtemp(dir=scratch)).trigger(availableNow=True)
    start = time.perf_counter()
    writer.start().awaitTermination()
    return time.perf_counter() - start


def _section(rows: int, seconds: list[float], peer: list[float], directory: Path) -> Section:
    table = [
        ["RANGE / SLIDE", "Millstream, rows/s", "time against a ratio of 4", "Spark window(), rows/s", ""]
    ]
    for place, (ratio, here) in enumerate(zip(RATIOS, seconds, strict=True)):
        line = [f"{ratio:,}", f"{rows / here:,.0f}", f"{here / seconds[0]:.2f}x"]
        line += (
            [f"{rows / peer[place]:,.0f}", f"{peer[place] / peer[0]:.2f}x"] if place < len(peer) else ["", ""]
        )
        table.append(line)
    grown = seconds[-1] / seconds[0]
    claims = [
        Claim(
            f"RANGE / SLIDE of 4,000 costs at most {ALLOWED} times a ratio of 4 (sum, end to end)",
            f"{grown:.2f} times",
            grown <= ALLOWED,
        )
    ]
    curves = {
        "Millstream": [(ratio, rows / here) for ratio, here in zip(RATIOS, seconds, strict=True)],
        "Spark window()": [(ratio, rows / there) for ratio, there in zip(OF_SPARK, peer, strict=True)],
    }
    panel = Panel("whole queries on Spark", "RANGE / SLIDE", "rows/s", curves, log_x=True, log_y=True)
    title = "Growth of cost with RANGE / SLIDE, end to end"
    return Section(title, ABOUT, claims, [Figures("", table)], [draw([panel], directory / "ratio.png")])
