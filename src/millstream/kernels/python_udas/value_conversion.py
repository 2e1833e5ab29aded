"""Conversion of values to the user's Python code and back.

Values have the types that Python functions get too: int, float, str, Decimal, date, timedelta, a datetime
without a time zone (which is UTC), None for NULL, and lists and dictionaries.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.arrow_types import arrow_type
from millstream.types import Field, Kind, Type

_NESTED = (Kind.ARRAY, Kind.MAP, Kind.STRUCT)
_EXACT = Context(prec=76, rounding=ROUND_HALF_UP)


class UnfitError(Exception):
    """A value that is not of the declared type."""


def to_python(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return a column as a list."""
    type_ = column.type
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        # Arrow would give datetimes with a time zone, which cannot be compared with those that have none.
        column = column.cast(pa.timestamp(type_.unit))
    values: list[Any] = (
        column.to_pylist(maps_as_pydicts="strict") if pa.types.is_nested(type_) else column.to_pylist()
    )
    return values


def to_arrow(values: Sequence[Any], column: Field) -> pa.Array:
    """Return converted values as a column."""
    return pa.array(values, arrow_type(column.type))


class ReturnConverter:
    """A converter from values returned by the user's code to rows of a type."""

    def __init__(self, returns: Sequence[Field]) -> None:
        self._returns = returns
        self._fits = [_fit(column.type) for column in returns]
        self._is_plain = len(returns) == 1 and returns[0].type.kind not in _NESTED

    def row(self, returned: Any) -> tuple[Any, ...]:
        """Return a row: a single column takes the returned value, several take its elements."""
        if len(self._returns) > 1:
            return tuple(self._value(i, value) for i, value in enumerate(self._values(returned)))
        if self._is_plain and isinstance(returned, tuple) and len(returned) == 1:
            (returned,) = returned  # a row of one column, as drivers of databases have it
        return (self._value(0, returned),)

    def _values(self, returned: Any) -> Sequence[Any]:
        names = [column.name for column in self._returns]
        if returned is None:
            return [None] * len(names)
        if dataclasses.is_dataclass(returned) and not isinstance(returned, type):
            returned = {one.name: getattr(returned, one.name) for one in dataclasses.fields(returned)}
        if isinstance(returned, Mapping):
            if set(returned) != set(names):
                raise UnfitError(f"it returned {_shown(returned)}, and not the columns {', '.join(names)}")
            return [returned[name] for name in names]
        if not isinstance(returned, Iterable) or isinstance(returned, str | bytes):
            raise UnfitError(f"it returned {_shown(returned)}, and not a row with {', '.join(names)}")
        values = list(returned)
        if len(values) != len(names):
            raise UnfitError(f"it returned {_shown(returned)}: {len(values)} values for {len(names)} columns")
        return values

    def _value(self, column: int, value: Any) -> Any:
        if value is None:
            return None
        fitted = self._fits[column](value)
        if fitted is None:
            declared = self._returns[column]
            named = f" for '{declared.name}'" if len(self._returns) > 1 else ""
            raise UnfitError(
                f"it returned {_shown(value)} ({type(value).__name__}){named}, which is no {declared.type}"
            )
        return fitted


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _fit(type_: Type) -> Callable[[Any], Any]:
    """Return a function that converts a value for Arrow, or returns None if it is not of that type."""
    plain = _FITS.get(type_.kind)
    if plain is not None:
        return plain
    if type_.kind is Kind.DECIMAL:
        scale, digits = type_.scale, type_.precision
        return lambda value: _decimal(value, scale, digits)
    arrow = arrow_type(type_)

    def nested(value: Any) -> Any:
        try:
            # A copy of its own: the user's code may go on with a list that it has returned.
            return pa.array([value], arrow).to_pylist()[0]
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None

    return nested


def _boolean(value: Any) -> Any:
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _integer(bits: int) -> Callable[[Any], Any]:
    most = 1 << (bits - 1)

    def fit(value: Any) -> Any:
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            return None
        return int(value) if -most <= value < most else None

    return fit


def _double(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(
        value, float | int | np.floating | np.integer | Decimal | Fraction
    ):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _decimal(value: Any, scale: int, digits: int) -> Any:
    if not isinstance(value, Decimal | int | np.integer) or isinstance(value, bool):
        return None
    exact = Decimal(int(value)) if not isinstance(value, Decimal) else value
    if not exact.is_finite():
        return None
    rounded = exact.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    return rounded if abs(rounded) < Decimal(10) ** (digits - scale) else None


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, str) else None


def _bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None


def _date(value: Any) -> Any:
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _instant(value: Any) -> Any:
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


def _local(value: Any) -> Any:
    return value if isinstance(value, datetime) and value.tzinfo is None else None


def _interval(value: Any) -> Any:
    return value if isinstance(value, timedelta) else None


_FITS: dict[Kind, Callable[[Any], Any]] = {
    Kind.BOOLEAN: _boolean,
    Kind.TINYINT: _integer(8),
    Kind.SMALLINT: _integer(16),
    Kind.INT: _integer(32),
    Kind.BIGINT: _integer(64),
    Kind.FLOAT: _double,
    Kind.DOUBLE: _double,
    Kind.STRING: _text,
    Kind.BINARY: _bytes,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _instant,
    Kind.TIMESTAMP_NTZ: _local,
    Kind.DAY_TIME_INTERVAL: _interval,
}
