"""Spark's own sliding window, in one step and, as an expert would write it, from panes of one slide each."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from benchmarks.engine.contract import SLIDE_SECONDS, WINDOW_SECONDS, arguments
from benchmarks.engine.peers.spark import PROVIDERS, compete

WINDOW, SLIDE = f"{WINDOW_SECONDS} seconds", f"{SLIDE_SECONDS} seconds"


def in_one_step(stream: DataFrame) -> DataFrame:
    windows = stream.withWatermark("ts", "0 seconds").groupBy("k", sf.window("ts", WINDOW, SLIDE))
    return _results(windows.agg(sf.sum("v").alias("total")))


def from_panes(stream: DataFrame) -> DataFrame:
    panes = stream.withWatermark("ts", "0 seconds").groupBy("k", sf.window("ts", SLIDE).alias("pane"))
    sums = panes.agg(sf.sum("v").alias("part"))
    windows = sums.groupBy("k", sf.window(sf.window_time("pane"), WINDOW, SLIDE))
    return _results(windows.agg(sf.sum("part").alias("total")))


def _results(windows: DataFrame) -> DataFrame:
    """Of the closing row there are none: nothing closes its own windows.

    A filter by key would be harmful besides: Spark pushes it below the watermark, which then misses that row.
    """
    return windows.select("k", sf.col("window.end").alias("ts"), "total")


def main() -> None:
    parser = arguments()
    parser.add_argument("--provider", choices=PROVIDERS, default="rocksdb")
    parser.add_argument("--panes", action="store_true")
    options = parser.parse_args()
    compete(options, from_panes if options.panes else in_one_step, options.provider, data="parquet_closed")


if __name__ == "__main__":
    main()
