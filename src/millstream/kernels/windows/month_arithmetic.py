"""Arithmetic of RANGE and SLIDE in months of the calendar, in UTC, with instants in microseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.core.time_order import LEAST, MOST
from millstream.windows.months import month_of

_FIRST, _LAST = month_of(LEAST) + 1, month_of(MOST)
"""Months that begin within 64 bits."""


@dataclass(frozen=True)
class MonthArithmetic:
    """Arithmetic with the interface of SlideArithmetic; visits are the ends of windows, and nothing else.

    Visit n is at the beginning of month origin + n * slide.

    >>> from millstream.windows.months import first_instant
    >>> quarters = MonthArithmetic(range=3, slide=3)
    >>> enters, untils = quarters.place(np.array([0, first_instant(2), first_instant(3)]))
    >>> enters.tolist(), untils.tolist()
    ([1, 1, 2], [1, 1, 2])
    >>> quarters.instants(np.array([1])).tolist() == [first_instant(3)]
    True
    """

    range: int
    slide: int
    origin: int = 0
    shift = 0

    def place(self, times: Integers) -> tuple[Integers, Integers]:
        """Return the first visit after each time, and the last of a window that has it."""
        months = _months(times) - self.origin
        return months // self.slide + 1, (months + self.range) // self.slide

    def first_after(self, times: Integers) -> Integers:
        return self.place(times)[0]

    def reached(self, time: int | float) -> int:
        """Return the last visit that is not after a time."""
        return (month_of(int(min(max(time, LEAST), MOST))) - self.origin) // self.slide

    def ends(self, visits: Integers) -> tuple[Integers, Array]:
        return visits, np.ones(len(visits), np.bool_)

    def instants(self, visits: Integers) -> Integers:
        return _instants(self.origin + visits * self.slide)

    def instants_of(self, ends: Integers) -> Integers:
        return self.instants(ends)

    def starts(self, ends: Integers) -> Integers:
        return _instants(self.origin + ends * self.slide - self.range)


def _months(times: Integers) -> Integers:
    # The smallest number means that there is no time.
    instants = np.maximum(times, LEAST + 1).astype("datetime64[us]")
    return instants.astype("datetime64[M]").astype(np.int64)


def _instants(months: Integers) -> Integers:
    """Return the beginnings of months, or the nearest instant that 64 bits can hold."""
    inside = np.clip(months, _FIRST, _LAST).astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)
    return np.where(months < _FIRST, LEAST, np.where(months > _LAST, MOST, inside))
