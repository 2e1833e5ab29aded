"""Text of timestamps and dates of any year; Python's own datetimes cover only the years 1 to 9999."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Array, Integers


def is_time(kind: pa.DataType) -> bool:
    """Tell whether values of a type are timestamps or dates."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def is_far(column: pa.Array) -> Array:
    """Tell which values of a column of times Python cannot hold; it can hold NULL."""
    years = _moments(column).astype("datetime64[Y]").astype(np.int64) + 1970
    valid = np.asarray(column.is_valid())
    far: Array = valid & ((years < 1) | (years > 9999))
    return far


def time_texts(column: pa.Array, separator: str = " ") -> list[str]:
    """Return timestamps without their zone, or dates, as Spark writes them; undefined for NULLs.

    >>> far = pa.array([327403555200500000, -62135596800000001], pa.timestamp("us"))
    >>> time_texts(far)
    ['+12345-01-03 00:00:00.500000', '0000-12-31 23:59:59.999999']
    """
    texts: list[str] = np.datetime_as_string(_moments(column)).tolist()
    return [_signed(text).replace("T", separator) for text in texts]


def _signed(text: str) -> str:
    """Return the text with at least four digits of the year, and a sign if there are more."""
    if text.startswith("-"):
        year, rest = text[1:].split("-", 1)
        return f"-{year:0>4}-{rest}"
    return text if text.index("-") < 5 else f"+{text}"


def time_of_text(text: str, kind: pa.DataType) -> int:
    """Return the number of a time written by `time_texts`, in units of its type."""
    unit = "D" if pa.types.is_date32(kind) else kind.unit
    return int(np.array([text.replace(" ", "T")], f"datetime64[{unit}]").astype(np.int64)[0])


def shown(value: pa.Scalar) -> str:
    """Return a value as text for a message."""
    if not value.is_valid:
        return "NULL"
    column = pa.array([value]) if is_time(value.type) else None
    if column is not None and is_far(column)[0]:
        return time_texts(column)[0]
    return str(value.as_py())


def _moments(column: pa.Array) -> Array:
    kind = column.type
    if pa.types.is_date32(kind):
        days: Integers = np.asarray(column.cast(pa.int32()).fill_null(0)).astype(np.int64)
        return days.astype("datetime64[D]")
    numbers: Integers = np.asarray(column.cast(pa.int64()).fill_null(0))
    # The smallest number is no time for NumPy.
    safe = np.maximum(numbers, np.iinfo(np.int64).min + 1)
    return safe.astype(f"datetime64[{kind.unit}]")
