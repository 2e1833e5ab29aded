"""Spark's own join of two streams, with a condition on time that lets it forget rows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from benchmarks.engine.contract import SIDES, WINDOW_SECONDS, arguments
from benchmarks.engine.peers.spark import PROVIDERS, compete

SLACK = "1 second"
"""Spark drops rows at the watermark itself, and a row may have the timestamp with which a file began."""


def join(left: DataFrame, right: DataFrame) -> DataFrame:
    """Pairs less than a window apart, as they are in two windows at the same instant."""
    window = sf.expr(f"INTERVAL {WINDOW_SECONDS} SECONDS")
    a, b = left.withWatermark("ts", SLACK).alias("a"), right.withWatermark("ts", SLACK).alias("b")
    near = (sf.col("a.ts") > sf.col("b.ts") - window) & (sf.col("a.ts") < sf.col("b.ts") + window)
    pairs = a.join(b, (sf.col("a.k") == sf.col("b.k")) & near)
    return pairs.select("a.k", (sf.col("a.v") * sf.col("b.v")).alias("total"))


def main() -> None:
    parser = arguments()
    parser.add_argument("--provider", choices=PROVIDERS, default="rocksdb")
    options = parser.parse_args()
    compete(options, join, options.provider, sides=SIDES["join"])


if __name__ == "__main__":
    main()
