"""Points on the order of a stream: exact numbers for any type of attribute.

A timestamp or a date is counted in microseconds from the epoch, a number is itself. So windows and promises
are computed in whole numbers or fractions, without rounding and without limits; only displayed values are
converted to the attribute's type again.
"""

from __future__ import annotations

import calendar
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from millstream.quantity import Distance, Duration, Quantity
from millstream.types import Kind, Type, bound_type
from oracle.errors import NotInterpreted, Overflow
from oracle.values.values import BITS, EPOCH, MICROSECOND, Value, fitted, fitted_decimal, single

Point = int | Fraction
Instant = tuple[int, Point]
"""A point, or one of the two ends; they compare in order."""

NOTHING: Instant = (-1, 0)
"""Before every point: the promise of nothing."""
EVERYTHING: Instant = (1, 0)
"""After every point: the promise made by the end of the input."""

_LAST_WORD = EVERYTHING[0] - NOTHING[0]

_DAY = 86_400_000_000


def at(point: Point) -> Instant:
    return (0, point)


def last_word(before: Instant) -> Instant:
    """Return a promise of everything before the end of the input, with the promise before it.

    >>> last_word(NOTHING) == EVERYTHING
    True
    >>> is_everything(last_word(at(20))), before_last_word(last_word(at(20))) == at(20)
    (True, True)
    """
    return (before[0] + _LAST_WORD, before[1])


def is_everything(promise: Instant) -> bool:
    return promise[0] >= EVERYTHING[0]


def before_last_word(promise: Instant) -> Instant:
    """Return the promise without a last promise of everything."""
    return (promise[0] - _LAST_WORD, promise[1]) if is_everything(promise) else promise


def to_point(value: Value, type_: Type) -> Point | None:
    """Return the point of a value; NULL, NaN, infinities and the outermost BIGINTs have none."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if type_.kind is Kind.BIGINT and value in (-(2**63), 2**63 - 1):
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
    """Return the value of a point.

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
    """Return an amount as a distance on an attribute; a number is first converted to the attribute's type."""
    match quantity:
        case Duration(microseconds, 0):
            return microseconds
        case Distance(value) if type_.kind in (Kind.DOUBLE, Kind.FLOAT):
            return Fraction(single(float(value)) if type_.kind is Kind.FLOAT else float(value))
        case Distance(value):
            return Fraction(value)
        case _:
            raise NotInterpreted(f"a length of {quantity} on type {type_}")


def written(quantity: Quantity, type_: Type) -> Point:
    """Return an amount on an attribute by its text: on doubles the decimal itself."""
    return Fraction(quantity.value) if isinstance(quantity, Distance) else length(quantity, type_)


def rounding(type_: Type) -> Callable[[Point], Point]:
    """Return the rounding of an exact bound to a value of the attribute; only doubles have gaps."""
    match type_.kind:
        case Kind.DOUBLE:
            return lambda point: _nearest(point, 53, -1074)
        case Kind.FLOAT:
            return lambda point: _nearest(point, 24, -149)
        case _:
            return lambda point: point


def _nearest(point: Point, digits: int, least: int) -> Fraction:
    """Return the nearest number of so many binary digits, ties to even, without a largest one."""
    exact = Fraction(point)
    if exact == 0:
        return exact
    scale = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    # Now 2**(scale - 1) < abs(exact) < 2**(scale + 1).
    if abs(exact) < Fraction(2) ** scale:
        scale -= 1
    unit = Fraction(2) ** max(scale - digits + 1, least)
    return round(exact / unit) * unit


def within(point: Point, type_: Type) -> Point:
    """Return a bound or timestamp, or the nearest one in the range of the bounds' type."""
    match bound_type(type_).kind:
        case Kind.BIGINT | Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            return min(max(point, -(2**63)), 2**63 - 1)
        case Kind.DECIMAL:
            most = Fraction(10**18 - 1, 10**type_.scale)
            return min(max(point, -most), most)
        case Kind.DOUBLE | Kind.FLOAT as kind:
            largest = 2**1024 - 2**971 if kind is Kind.DOUBLE else 2**128 - 2**104
            return min(max(point, -largest), largest)
        case _:
            return point


def leaving(point: Point, type_: Type) -> Point | None:
    """Return the instant of an expiry, or None after the last instant that kernels can count."""
    return point if point <= last_instant(type_) else None


def following(point: Point, type_: Type) -> Point:
    """Return the next instant."""
    match type_.kind:
        case Kind.DATE:
            return point + _DAY
        case Kind.DOUBLE | Kind.FLOAT:
            return Fraction(math.nextafter(float(point), math.inf))
        case Kind.DECIMAL:
            return point + Fraction(1, 10**type_.scale)
        case _:
            return point + 1


def last_instant(type_: Type) -> Point:
    """Return the last instant that kernels can count; the largest BIGINT is behind it."""
    if type_.kind in (Kind.DOUBLE, Kind.FLOAT):
        return 2**1024
    return Fraction(2**63 - 2, 10 ** (type_.scale if type_.kind is Kind.DECIMAL else 0))


def earlier(point: Point, quantity: Quantity, type_: Type) -> Point:
    """Return the point an amount before another; months are those of the calendar, in UTC."""
    if isinstance(quantity, Duration) and quantity.months:
        day = from_point(point - point % _DAY, Type(Kind.TIMESTAMP))
        moved = months_later(day, -quantity.months)
        first = to_point(moved, Type(Kind.TIMESTAMP))
        assert first is not None
        return first + point % _DAY - quantity.microseconds
    return point - length(quantity, type_)


def months_later(day: datetime, months: int) -> datetime:
    """Return the day and time in another month, or the last day of that month if it is too short.

    >>> months_later(datetime(2026, 3, 31), -1)
    datetime.datetime(2026, 2, 28, 0, 0)
    """
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        raise Overflow(f"{months} months from {day} is no date")
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def month_of(day: date, months: int) -> date:
    """Apply `months_later` to dates."""
    return months_later(datetime(day.year, day.month, day.day, tzinfo=UTC), months).date()
