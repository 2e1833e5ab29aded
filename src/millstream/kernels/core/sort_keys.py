"""Columns of any type as keys that Arrow sorts in Spark's order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.core.time_order import as_order


def sort_key(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Values in the same order, where NULL is to come first: Arrow has NaN beside NULL, and sorts no lists.

    >>> sort_key(pa.array([[2], None, [1, 5], [1]])).to_pylist()
    [2, None, 1, 0]
    """
    if pa.types.is_floating(column.type):
        numbers = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0))
        return pa.array(as_order(numbers), mask=np.asarray(column.is_null()))
    if not pa.types.is_nested(column.type):
        return column
    places = [_place(value) for value in column.to_pylist()]
    ranks = {place: rank for rank, place in enumerate(sorted(set(places) - {_NULL}))}
    return pa.array([ranks.get(place) for place in places], pa.int64())


_NULL = (0,)


def _place(value: Any) -> tuple[Any, ...]:
    """A value as a tuple that Python compares as Spark compares values: NULL first, NaN last."""
    if value is None:
        return _NULL
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, dict):
        value = list(value.values())
    return (1, tuple(map(_place, value)) if isinstance(value, list | tuple) else value)
