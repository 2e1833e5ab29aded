"""Windows of calendar months: RANGE and SLIDE in months, which are numbered from January 1970, in UTC."""

from __future__ import annotations

from dataclasses import dataclass

from oracle.windows.extent import Point
from oracle.windows.sliding import Sliding

_DAY = 86_400_000_000
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True)
class SlidingMonths(Sliding):
    """Sliding windows whose size, slide and origin are numbers of months.

    >>> months = SlidingMonths(1, 1)
    >>> [months.extent(wid).end // 86_400_000_000 for wid in (0, 1, 2, 11, -1, -2)]
    [31, 59, 90, 365, 0, -31]
    >>> months.wids(58 * 86_400_000_000), SlidingMonths(3, 1).wids(0)
    (range(1, 2), range(0, 3))
    """

    def ending_after(self, point: Point) -> int:
        return self._near(point, self._end)

    def wids(self, point: Point) -> range:
        first = self.ending_after(point)
        return range(first, max(first, self._near(point, self._start)))

    def _near(self, point: Point, bound: object) -> int:
        """Return the first number whose bound is above a point."""
        assert callable(bound)
        near = int((point // (30 * _DAY) - self.origin) // self.slide) - 1
        step = 1
        while bound(near) > point:
            near, step = near - step, 2 * step
        while bound(near) <= point:
            near += 1
        return near

    def _start(self, wid: int) -> Point:
        return beginning(int(self.origin + (wid + 1) * self.slide - self.size))

    def _end(self, wid: int) -> Point:
        return beginning(int(self.origin + (wid + 1) * self.slide))


def beginning(month: int) -> int:
    """Return the first instant of a month in microseconds."""
    year, place = divmod(month, 12)
    year += 1970
    days = 365 * (year - 1970) + _leap_days_before(year) - _leap_days_before(1970)
    days += sum(_LENGTHS[:place]) + (place > 1 and _is_leap(year))
    return days * _DAY


def month_of(point: Point) -> int:
    """Return the month that a point is in."""
    month = int(point // (31 * _DAY)) - 1
    while beginning(month) > point:
        month -= 1000
    while beginning(month + 1) <= point:
        month += 1
    return month


def _leap_days_before(year: int) -> int:
    return (year - 1) // 4 - (year - 1) // 100 + (year - 1) // 400


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
