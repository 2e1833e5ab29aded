"""Months of the calendar, in UTC: numbered from January 1970, with their beginnings in microseconds."""

from __future__ import annotations

from millstream.quantity import MICROSECONDS

_DAY = MICROSECONDS["DAY"]


def first_instant(month: int) -> int:
    """Return the first instant of a month.

    >>> [first_instant(month) // 86_400_000_000 for month in (0, 1, 12, -1)]
    [0, 31, 365, -31]
    """
    # Years begin with March, so that the leap day is the last of a year.
    year, place = divmod(month + 10, 12)
    year += 1969
    leap_days = year // 4 - year // 100 + year // 400
    days_before_place = (153 * place + 2) // 5
    return (365 * year + leap_days + days_before_place - 719_468) * _DAY


def month_of(instant: int) -> int:
    """Return the month that contains an instant.

    >>> [month_of(first_instant(month) + shift) for month in (0, 25, -7) for shift in (0, -1)]
    [0, -1, 25, 24, -7, -8]
    """
    month = instant // (30 * _DAY)
    month -= month // 72  # months have 30.44 days
    while first_instant(month) > instant:
        month -= 1
    while first_instant(month + 1) <= instant:
        month += 1
    return month
