"""Upper limit for rows into Python: Spark passes Arrow batches, which are counted and dropped."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from benchmarks.engine.contract import arguments
from benchmarks.engine.peers.spark import compete


def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    results, total, squares = 0, 0.0, 0.0
    for batch in batches:
        v = batch["v"]
        results += len(v)
        total += pc.sum(v).as_py() or 0.0
        squares += pc.sum(pc.multiply(v, v)).as_py() or 0.0
    yield pa.RecordBatch.from_pydict({"results": [results], "total": [total], "squares": [squares]})


def counts() -> list[Column]:
    return [sf.sum(name).alias(name) for name in ("results", "total", "squares")]


def query(stream: DataFrame) -> DataFrame:
    return stream.mapInArrow(count, "results BIGINT, total DOUBLE, squares DOUBLE")


if __name__ == "__main__":
    compete(arguments().parse_args(), query, measures=counts)
