"""Hidden columns: the timestamp, the order of arrival, and values passed between stages."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.stage.hidden_columns import ROW, SORT, hidden, is_hidden, sort_keys
from millstream.stage.pipeline import (
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
    STAMP,
    SUBSTREAM,
    TIME,
)

__all__ = [
    "COUNTED",
    "FILE",
    "KEEP",
    "LINE",
    "MARK",
    "NUMBER",
    "ORIGIN",
    "PARTITION",
    "PROMISE",
    "ROW",
    "SEGMENT",
    "SORT",
    "STAMP",
    "SUBSTREAM",
    "TIME",
    "column",
    "hidden",
    "is_hidden",
    "shown",
    "sort_keys",
]


def shown(frame: DataFrame) -> DataFrame:
    """Return a frame without hidden columns."""
    return frame.drop(*hidden(frame.columns))


def column(name: str) -> Column:
    """Return the column of a name, which may contain any characters."""
    return F.col(f"`{name.replace('`', '``')}`")
