"""Spark's own windows; the sliding one also, as an expert would write it, from panes of one slide each."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from benchmarks.engine.contract import GAP_SECONDS, SLIDE_SECONDS, TUMBLE_SECONDS, WINDOW_SECONDS, arguments
from benchmarks.engine.peers.spark import PROVIDERS, compete

WINDOW, SLIDE = f"{WINDOW_SECONDS} seconds", f"{SLIDE_SECONDS} seconds"


def sliding(stream: DataFrame) -> DataFrame:
    return _sums(stream, sf.window("ts", WINDOW, SLIDE))


def tumbling(stream: DataFrame) -> DataFrame:
    return _sums(stream, sf.window("ts", f"{TUMBLE_SECONDS} seconds"))


def session(stream: DataFrame) -> DataFrame:
    return _sums(stream, sf.session_window("ts", f"{GAP_SECONDS} seconds"))


def _sums(stream: DataFrame, window: Column) -> DataFrame:
    windows = stream.withWatermark("ts", "0 seconds").groupBy("k", window.alias("window"))
    return _results(windows.agg(sf.sum("v").alias("total")))


def from_panes(stream: DataFrame) -> DataFrame:
    panes = stream.withWatermark("ts", "0 seconds").groupBy("k", sf.window("ts", SLIDE).alias("pane"))
    sums = panes.agg(sf.sum("v").alias("part"))
    windows = sums.groupBy("k", sf.window(sf.window_time("pane"), WINDOW, SLIDE))
    return _results(windows.agg(sf.sum("part").alias("total")))


def _results(windows: DataFrame) -> DataFrame:
    """Drop the results of the closing row, whose own windows never close.

    A filter by key would be wrong: Spark pushes it below the watermark, which then misses that row.
    """
    return windows.select("k", sf.col("window.end").alias("ts"), "total")


WAYS = {"sliding": sliding, "panes": from_panes, "tumbling": tumbling, "session": session}


def main() -> None:
    parser = arguments()
    parser.add_argument("--provider", choices=PROVIDERS, default="rocksdb")
    parser.add_argument("--way", choices=WAYS, default="sliding")
    options = parser.parse_args()
    compete(options, WAYS[options.way], options.provider, data="parquet_closed")


if __name__ == "__main__":
    main()
