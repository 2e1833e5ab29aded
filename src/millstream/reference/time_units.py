"""Times moved by a number of units, and counts of units between times: ``dateadd`` and ``datediff``."""

from __future__ import annotations

from datetime import datetime, timedelta

from millstream.reference.errors import Overflow
from millstream.reference.points import months_later

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
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
    if last < first:
        return -_whole_units(unit, first, last, backwards=True)
    return _whole_units(unit, first, last, backwards=False)


def _whole_units(unit: str, first: datetime, last: datetime, *, backwards: bool) -> int:
    earlier, later = (last, first) if backwards else (first, last)
    if unit not in _MONTHS:
        return (later - earlier) // _LENGTHS[unit]
    months = 12 * (later.year - earlier.year) + later.month - earlier.month
    # Days of the month are compared as they are, also in months that are too short.
    short = _within_month(later) < _within_month(earlier)
    return max(0, months - short) // _MONTHS[unit]


def _within_month(time: datetime) -> tuple[int, timedelta]:
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
    return time.day, time - midnight
