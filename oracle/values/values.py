"""Values with Spark's order, equality and limits.

In Python they are: TIMESTAMP a datetime in UTC, DATE a date, DECIMAL a Decimal, DOUBLE and FLOAT a float, the
integers an int, STRING a str, BOOLEAN a bool, an interval of days and seconds a timedelta, one of years and
months a `Months`, an array a list; NULL is None.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any

from millstream.types import Kind, Type
from oracle.errors import Overflow

Value = Any
"""A value of ESL in Python; None is NULL."""

BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

EXACT = Context(prec=200)
"""Decimals of 38 digits are multiplied and shifted here without losing any."""


@dataclass(frozen=True, order=True)
class Months:
    """An interval of years and months."""

    count: int


# ---------------------------------------------------------------- order and equality


def order_key(value: Value) -> tuple[Any, ...]:
    """Return a sort key with Spark's order: NULL first, NaN last, -0.0 beside 0.0.

    >>> sorted([math.nan, 1.0, None, -math.inf], key=order_key)
    [None, -inf, 1.0, nan]
    """
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, list | tuple):
        return (1, tuple(order_key(element) for element in value))
    return (1, value)


def same_key(values: Iterable[Value]) -> tuple[Any, ...]:
    """Return a key that is equal for rows of one group: NULL is NULL, NaN is NaN, -0.0 is 0.0."""
    return tuple(order_key(value) for value in values)


# ---------------------------------------------------------------- limits


def fitted(value: Value, type_: Type, what: str) -> Value:
    """Convert a result to its type: round it if the type is inexact, raise Overflow if it does not fit."""
    if value is None:
        return None
    match type_.kind:
        case kind if kind in BITS:
            if not -(2 ** (BITS[kind] - 1)) <= value < 2 ** (BITS[kind] - 1):
                raise Overflow(f"{what} does not fit its type {type_}")
            return value
        case Kind.DECIMAL:
            return fitted_decimal(value, type_, what)
        case Kind.FLOAT:
            return single(value)
        case _:
            return value


def fitted_decimal(value: Decimal | Fraction | int, type_: Type, what: str) -> Decimal:
    """Round a number half up to the scale of a decimal type.

    >>> from millstream.types import decimal
    >>> fitted_decimal(Fraction(-5, 8), decimal(5, 2), "x")
    Decimal('-0.63')
    """
    shifted = Fraction(value) * 10**type_.scale
    units = half_up(shifted)
    if abs(units) >= 10**type_.precision:
        raise Overflow(f"{what} does not fit its type {type_}")
    return Decimal(units).scaleb(-type_.scale, EXACT)


def half_up(number: Fraction) -> int:
    """Return the nearest integer, ties away from zero."""
    units = math.floor(abs(number) + Fraction(1, 2))
    return units if number >= 0 else -units


def truncated(number: Decimal) -> int:
    return int(number.to_integral_value(ROUND_DOWN, EXACT))


def single(value: float) -> float:
    """Round a double to single precision."""
    try:
        (rounded,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(rounded)


def exact_sum(numbers: Iterable[float]) -> float:
    """Return the exact sum of doubles, rounded once; infinities and NaN as IEEE adds them.

    >>> exact_sum([1e300, 1.0, -1e300]), exact_sum([math.inf, -math.inf, 1.0])
    (1.0, nan)
    """
    numbers = list(numbers)
    special = [number for number in numbers if not math.isfinite(number)]
    if special:
        return special[0] if len(set(special)) == 1 else math.nan
    return nearest_double(sum(map(Fraction, numbers), Fraction()))


def nearest_double(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
