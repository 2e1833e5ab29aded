"""Points on the order of a stream: exact numbers, whatever the type of the attribute.

A timestamp or a date is counted in microseconds from the epoch, a number is itself. So windows and promises
are computed in whole numbers or fractions, without rounding and without limits; only what is shown is turned
into a value of the attribute's type again.
"""

from __future__ import annotations

import calendar
import math
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from millstream.quantity import Distance, Duration, Quantity
from millstream.reference.errors import NotInterpreted, Overflow
from millstream.reference.values import BITS, EPOCH, MICROSECOND, Value, fitted, fitted_decimal, single
from millstream.types import Kind, Type

Point = int | Fraction
Instant = tuple[int, Point]
"""A point, or one of the two ends; these compare as they should."""

NOTHING: Instant = (-1, 0)
"""Before every point: what is promised when nothing is."""
EVERYTHING: Instant = (1, 0)
"""After every point: the promise that the end of the input makes."""

_DAY = 86_400_000_000


def at(point: Point) -> Instant:
    return (0, point)


def to_point(value: Value, type_: Type) -> Point | None:
    """The point of a value; NULL, NaN and infinities have none."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    match type_.kind:
        case Kind.TIMESTAMP:
            return int((value - EPOCH) // MICROSECOND)
        case Kind.TIMESTAMP_NTZ:
            return int((value.replace(tzinfo=UTC) - EPOCH) // MICROSECOND)
        case Kind.DATE:
            return int((value - EPOCH.date()).days) * _DAY
        case Kind.DECIMAL | Kind.DOUBLE | Kind.FLOAT:
            return Fraction(value)
        case kind if kind in BITS:
            return int(value)
        case _:
            raise NotInterpreted(f"an order by type {type_}")


def from_point(point: Point, type_: Type) -> Value:
    """The value of a point.

    >>> from millstream.types import DATE
    >>> from_point(to_point(date(2026, 2, 28), DATE) + _DAY, DATE)
    datetime.date(2026, 3, 1)
    """
    what = "the end of a window"
    whole = Fraction(point).denominator == 1 and (type_.kind is not Kind.DATE or point % _DAY == 0)
    if not whole and type_.kind not in (Kind.DECIMAL, Kind.DOUBLE, Kind.FLOAT):
        raise NotInterpreted(f"a window that ends between two values of type {type_}")
    try:
        match type_.kind:
            case Kind.TIMESTAMP:
                return EPOCH + timedelta(microseconds=int(point))
            case Kind.TIMESTAMP_NTZ:
                return (EPOCH + timedelta(microseconds=int(point))).replace(tzinfo=None)
            case Kind.DATE:
                return EPOCH.date() + timedelta(days=int(point // _DAY))
            case Kind.DECIMAL:
                value = fitted_decimal(point, type_, what)
                if Fraction(value) != point:
                    raise NotInterpreted(f"a window that ends between two values of type {type_}")
                return value
            case Kind.DOUBLE:
                return float(point)
            case Kind.FLOAT:
                return single(float(point))
            case _:
                return fitted(int(point), type_, what)
    except OverflowError:
        raise Overflow(f"{what} does not fit its type {type_}") from None


def length(quantity: Quantity, type_: Type) -> Point:
    """How far an amount reaches along an attribute; a number is first made one of the attribute's type."""
    match quantity:
        case Duration(microseconds, 0):
            return microseconds
        case Distance(value) if type_.kind in (Kind.DOUBLE, Kind.FLOAT):
            return Fraction(single(float(value)) if type_.kind is Kind.FLOAT else float(value))
        case Distance(value):
            return Fraction(value)
        case _:
            raise NotInterpreted(f"a length of {quantity} on type {type_}")


def earlier(point: Point, quantity: Quantity, type_: Type) -> Point:
    """The point so much before another; months are those of the calendar, in UTC."""
    if isinstance(quantity, Duration) and quantity.months:
        day = from_point(point - point % _DAY, Type(Kind.TIMESTAMP))
        moved = months_later(day, -quantity.months)
        first = to_point(moved, Type(Kind.TIMESTAMP))
        assert first is not None
        return first + point % _DAY - quantity.microseconds
    return point - length(quantity, type_)


def months_later(day: datetime, months: int) -> datetime:
    """The same day and time of another month, or the last day of that month if it is too short.

    >>> months_later(datetime(2026, 3, 31), -1)
    datetime.datetime(2026, 2, 28, 0, 0)
    """
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        raise Overflow(f"{months} months from {day} is no date")
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def month_of(day: date, months: int) -> date:
    """As `months_later`, for dates."""
    return months_later(datetime(day.year, day.month, day.day, tzinfo=UTC), months).date()
