"""CAST, written or implied: one type's values as another's, by Spark's ANSI rules."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from millstream.types import BIGINT, Kind, Type
from oracle.errors import Failure, NotConvertible, NotInterpreted, Overflow
from oracle.values.texts import from_text, to_text
from oracle.values.values import (
    BITS,
    EPOCH,
    MICROSECOND,
    Value,
    fitted,
    fitted_decimal,
    nearest_double,
    single,
    truncated,
)


def cast(value: Value, given: Type, wanted: Type) -> Value:
    """A value of one type as the value of another, or a Failure.

    >>> from millstream.types import DOUBLE, INT
    >>> cast(-1.9, DOUBLE, INT)
    -1
    """
    if value is None or given.kind is Kind.NULL:
        return None
    if not (given.is_known and wanted.is_known):
        raise NotInterpreted("a value of unknown type")
    if wanted == given or (wanted.kind is given.kind and wanted.kind is not Kind.DECIMAL):
        return value
    if wanted.kind is Kind.STRING:
        return to_text(value, given)
    if given.kind is Kind.STRING:
        value = from_text(value, wanted)
        return value if wanted.kind is Kind.DOUBLE else fitted(value, wanted, f"'{value}'")
    if wanted.is_numeric:
        return _to_number(value, given, wanted)
    match given.kind, wanted.kind:
        case _, Kind.BOOLEAN if given.is_numeric:
            return bool(value != 0)
        case Kind.DATE, (Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ):
            zone = UTC if wanted.kind is Kind.TIMESTAMP else None
            return datetime(value.year, value.month, value.day, tzinfo=zone)
        case Kind.TIMESTAMP, Kind.DATE:
            return value.astimezone(UTC).date()
        case Kind.TIMESTAMP_NTZ, Kind.DATE:
            return value.date()
        case Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ:
            return value.astimezone(UTC).replace(tzinfo=None)
        case Kind.TIMESTAMP_NTZ, Kind.TIMESTAMP:
            return value.replace(tzinfo=UTC)
        case _, Kind.TIMESTAMP if given.is_numeric:
            return _to_timestamp(value)
    raise NotInterpreted(f"CAST of {given} to {wanted}")


def try_cast(value: Value, given: Type, wanted: Type) -> Value:
    """TRY_CAST: NULL where CAST fails."""
    try:
        return cast(value, given, wanted)
    except Failure:
        return None


def _to_number(value: Value, given: Type, wanted: Type) -> Value:
    if given.kind is Kind.BOOLEAN:
        value = int(value)
    elif given.kind is Kind.TIMESTAMP:
        value = _seconds(value, wanted)
    elif not given.is_numeric:
        raise NotInterpreted(f"CAST of {given} to {wanted}")
    what = f"{value} as {wanted}"
    match wanted.kind:
        case kind if kind in BITS:
            return fitted(_whole(value, what), wanted, what)
        case Kind.DECIMAL:
            if isinstance(value, float):
                if not math.isfinite(value):
                    raise Overflow(f"{what} does not fit its type {wanted}")
                # As it is written, not as it is: 0.1 becomes 0.1.
                value = Decimal(repr(value))
            return fitted_decimal(value, wanted, what)
        case _:
            number = value if isinstance(value, float) else nearest_double(Fraction(value))
            return single(number) if wanted.kind is Kind.FLOAT else number


def _whole(value: Value, what: str) -> int:
    if isinstance(value, Decimal):
        return truncated(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Overflow(f"{what} does not fit")
        return int(value)
    return int(value)


def _seconds(value: datetime, wanted: Type) -> Value:
    microseconds = (value - EPOCH) // MICROSECOND
    if wanted.kind in BITS:
        return microseconds // 1_000_000
    return Decimal(microseconds) / 1_000_000 if wanted.kind is Kind.DECIMAL else microseconds / 1_000_000


def _to_timestamp(value: Value) -> datetime:
    if isinstance(value, float) and not math.isfinite(value):
        raise NotConvertible(f"{value} is no number of seconds")
    microseconds = int(Fraction(value) * 1_000_000)
    try:
        fitted(microseconds, BIGINT, f"{value} seconds")
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        raise Overflow(f"{value} seconds after the epoch is no timestamp") from None
