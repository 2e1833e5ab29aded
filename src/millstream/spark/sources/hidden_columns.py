"""Columns that travel along unseen: the timestamp, the order of arrival, and what stages tell each other."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

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

PREFIX = "__ms_"
ROW = "__ms_row"
SORT = "__ms_sort"
"""Prefix of columns by which results with the same timestamp are sorted: the keys of their groups."""

_ORDER = (TIME, SORT, ORIGIN, NUMBER, PARTITION, SEGMENT, FILE, ROW)

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


def is_hidden(name: str) -> bool:
    return name.startswith(PREFIX)


def hidden(names: Iterable[str]) -> list[str]:
    """The hidden ones among these."""
    return [name for name in names if is_hidden(name)]


def shown(frame: DataFrame) -> DataFrame:
    """A frame as users see it."""
    return frame.drop(*hidden(frame.columns))


def sort_keys(names: Iterable[str]) -> list[str]:
    """Those that give the order of results, the most important first."""
    places = {name: i for i, name in enumerate(_ORDER)}

    def place(name: str) -> tuple[int, str]:
        return (places[SORT], name) if name.startswith(SORT) else (places[name], "")

    return sorted((n for n in names if n in places or n.startswith(SORT)), key=place)


def column(name: str) -> Column:
    """A column of whatever name."""
    return F.col(f"`{name.replace('`', '``')}`")
