"""Times moved by a number of units, and counts of units between times: ``dateadd`` and ``datediff``."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from oracle.errors import Overflow
from oracle.values.points import months_later

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_LONGEST_MONTH = 32
_LENGTHS = {
    "microsecond": timedelta(microseconds=1),
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "dayofyear": timedelta(days=1),
    "week": timedelta(weeks=1),
}


def moved_by_units(unit: str, amount: int, time: datetime) -> datetime:
    """Add so many units to a time.

    >>> moved_by_units("quarter", -1, datetime(2026, 5, 31))
    datetime.datetime(2026, 2, 28, 0, 0)
    """
    if unit in _MONTHS:
        return months_later(time, amount * _MONTHS[unit])
    try:
        return time + amount * _LENGTHS[unit]
    except OverflowError:
        raise Overflow(f"{amount} times {unit} from {time} is no timestamp") from None


def units_between(unit: str, first: datetime, last: datetime) -> int:
    """Count the whole units from one time to another; negative if the other is earlier.

    >>> units_between("month", datetime(2026, 3, 31), datetime(2026, 1, 31, 1))
    -1
    """
    if unit in _MONTHS:
        return _truncated(_months_between(first, last), _MONTHS[unit])
    return _truncated(
        (last - first) // timedelta(microseconds=1), _LENGTHS[unit] // timedelta(microseconds=1)
    )


def _months_between(first: datetime, last: datetime) -> int:
    """Count whole months as Java does: an incomplete last day is taken off before days are compared."""
    day = last.date()
    if day > first.date() and last.time() < first.time():
        day -= timedelta(days=1)
    elif day < first.date() and last.time() > first.time():
        day += timedelta(days=1)
    return _truncated(_numbered(day) - _numbered(first), _LONGEST_MONTH)


def _numbered(day: date) -> int:
    """Number days as if every month had the same length."""
    return (day.year * 12 + day.month) * _LONGEST_MONTH + day.day


def _truncated(count: int, size: int) -> int:
    return count // size if count >= 0 else -(-count // size)
