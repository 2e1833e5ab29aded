"""Timestamps as numbers, and back.

Kernels count in microseconds (dates too, so that any interval fits), in the integers or doubles that a stream
is ordered by, or in units of a decimal's last digit.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.windows.window_assigner import instants as in_type

MICROSECONDS_PER_DAY = 86_400_000_000
OUTERMOST = (-(2**63), 2**63 - 1)
"""Integers that are no instants: kernels need them for before and after all others."""


def is_float(kind: pa.DataType) -> bool:
    """Return True if instants of this type are doubles; all others are 64-bit integers."""
    return bool(pa.types.is_floating(kind))


def instants(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return timestamps as numbers; the number of a NULL has no meaning."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    kind = values.type
    if is_float(kind):
        return np.asarray(_filled(values.cast(pa.float64()), 0.0))
    if pa.types.is_date32(kind):
        return np.asarray(_filled(values.cast(pa.int32()), 0)).astype(np.int64) * MICROSECONDS_PER_DAY
    if pa.types.is_decimal(kind):
        # Up to 18 digits: of 16 bytes the lower 8 are the number.
        halves = np.frombuffer(values.buffers()[1], np.int64)
        first = 1 if sys.byteorder == "big" else 0
        return halves[first::2][values.offset : values.offset + len(values)]
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        values = values.cast(pa.timestamp("us", kind.tz))
    return np.asarray(_filled(values.cast(pa.int64()), 0))


def has_value(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a mask of the values with a place in an order: no NaN, infinity or outermost BIGINT."""
    if is_float(values.type):
        return pc.fill_null(pc.is_finite(values), False)
    if values.type == pa.int64():
        is_outermost = pc.is_in(values, pa.array(OUTERMOST, pa.int64()))  # false for NULL
        return pc.and_not(pc.is_valid(values), is_outermost)
    return pc.is_valid(values)


def timestamps(numbers: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return numbers as timestamps of a type, or the nearest ones of it."""
    return in_type(numbers, kind)


def _filled(values: pa.Array, filling: float) -> pa.Array:
    return pc.fill_null(values, filling) if values.null_count else values
