"""CAST, explicit or implicit, by Spark's ANSI rules."""

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


def cast(value: Value, source: Type, target: Type) -> Value:
    """Convert a value of one type to another, or raise a Failure.

    >>> from millstream.types import DOUBLE, INT
    >>> cast(-1.9, DOUBLE, INT)
    -1
    """
    if value is None or source.kind is Kind.NULL:
        return None
    if not (source.is_known and target.is_known):
        raise NotInterpreted("a value of unknown type")
    if target == source or (target.kind is source.kind and target.kind is not Kind.DECIMAL):
        return value
    if target.kind is Kind.STRING:
        return to_text(value, source)
    if source.kind is Kind.STRING:
        value = from_text(value, target)
        return value if target.kind is Kind.DOUBLE else fitted(value, target, f"'{value}'")
    if target.is_numeric:
        return _to_number(value, source, target)
    match source.kind, target.kind:
        case _, Kind.BOOLEAN if source.is_numeric:
            return bool(value != 0)
        case Kind.DATE, (Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ):
            zone = UTC if target.kind is Kind.TIMESTAMP else None
            return datetime(value.year, value.month, value.day, tzinfo=zone)
        case Kind.TIMESTAMP, Kind.DATE:
            return value.astimezone(UTC).date()
        case Kind.TIMESTAMP_NTZ, Kind.DATE:
            return value.date()
        case Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ:
            return value.astimezone(UTC).replace(tzinfo=None)
        case Kind.TIMESTAMP_NTZ, Kind.TIMESTAMP:
            return value.replace(tzinfo=UTC)
        case _, Kind.TIMESTAMP if source.is_numeric:
            return _to_timestamp(value)
    raise NotInterpreted(f"CAST of {source} to {target}")


def try_cast(value: Value, source: Type, target: Type) -> Value:
    """Return NULL where CAST fails: TRY_CAST."""
    try:
        return cast(value, source, target)
    except Failure:
        return None


def _to_number(value: Value, source: Type, target: Type) -> Value:
    if source.kind is Kind.BOOLEAN:
        value = int(value)
    elif source.kind is Kind.TIMESTAMP:
        value = _seconds(value, target)
    elif not source.is_numeric:
        raise NotInterpreted(f"CAST of {source} to {target}")
    what = f"{value} as {target}"
    match target.kind:
        case kind if kind in BITS:
            return fitted(_whole(value, what), target, what)
        case Kind.DECIMAL:
            if isinstance(value, float):
                if not math.isfinite(value):
                    raise Overflow(f"{what} does not fit its type {target}")
                # By its decimal text, not by its binary value: 0.1 becomes 0.1.
                value = Decimal(repr(value))
            return fitted_decimal(value, target, what)
        case _:
            number = value if isinstance(value, float) else nearest_double(Fraction(value))
            return single(number) if target.kind is Kind.FLOAT else number


def _whole(value: Value, what: str) -> int:
    if isinstance(value, Decimal):
        return truncated(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Overflow(f"{what} does not fit")
        return int(value)
    return int(value)


def _seconds(value: datetime, target: Type) -> Value:
    microseconds = (value - EPOCH) // MICROSECOND
    if target.kind in BITS:
        return microseconds // 1_000_000
    return Decimal(microseconds) / 1_000_000 if target.kind is Kind.DECIMAL else microseconds / 1_000_000


def _to_timestamp(value: Value) -> datetime:
    if isinstance(value, float) and not math.isfinite(value):
        raise NotConvertible(f"{value} is no number of seconds")
    microseconds = int(Fraction(value) * 1_000_000)
    try:
        fitted(microseconds, BIGINT, f"{value} seconds")
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        raise Overflow(f"{value} seconds after the epoch is no timestamp") from None
