"""Rows as they are packed for a stage: shipped columns, times, and what tells their order."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.physical.node import Guard
from millstream.physical.nodes import Arrival, StageInput
from millstream.spark.lowering.columns import computed
from millstream.spark.sources.hidden_columns import (
    COUNTED,
    FILE,
    KEEP,
    LINE,
    MARK,
    NUMBER,
    ORIGIN,
    PARTITION,
    PROMISE,
    SEGMENT,
    SUBSTREAM,
)

_ARRIVAL = (PARTITION, SEGMENT, FILE, SUBSTREAM, PROMISE, LINE, KEEP, COUNTED)
"""Columns with the order and the promises of tuples before lateness is judged; some names have numbers."""


def input_frame(one: StageInput, frame: DataFrame) -> DataFrame:
    """Return what is shipped of the rows of an input."""
    return frame.select(*shipped_columns(one), *_order(one, frame))


def shipped_columns(one: StageInput) -> list[Column]:
    """Return the columns that are shipped, what identifies partitions, and times."""
    return [*computed(one.columns, one.guard), *computed(one.time, Guard.NONE)]


def _order(one: StageInput, frame: DataFrame) -> list[Column]:
    match one.arrival:
        case Arrival.TABLE:
            return [F.spark_partition_id().cast("bigint").alias(SEGMENT)]
        case Arrival.SOURCE:
            return [F.col(name) for name in frame.columns if name.startswith(_ARRIVAL)]
        case Arrival.STAGE:
            present = [F.col(name) for name in frame.columns if name.startswith((ORIGIN, NUMBER, MARK))]
            if MARK not in frame.columns:
                present.append(F.lit(None).cast("string").alias(MARK))  # over tables stages report nothing
            return present
