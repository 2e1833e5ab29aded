"""Arithmetic of RANGE and SLIDE on an axis of integers: where windows end, and when they are visited.

Window w is [origin+(w+1)*slide-range, origin+(w+1)*slide). Visits are the ends of windows and, with EMIT
EVERY, the multiples of that amount; they are numbered through. All tuples between two neighbouring edges, be
they starts or ends or visits, are in the same windows at the same visits: there are at most two such panes
for each slide, whatever the range, and one more for each instant of emission.

Nothing overflows: all is computed by division, and a result beyond 64 bits is the nearest that they can hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Integers, Whole, frozen
from millstream.kernels.core.time_order import LEAST, MOST

_MOST = 0x7FFF_FFFF_FFFF_FFFF  # ``time_order`` is no compiled source, so its constants are not in the digest


@dataclass(frozen=True)
class SlideArithmetic:
    """Arithmetic with visits counted from the origin nearest to 0: ``shift`` leads to the windows' ids.

    >>> ticks = SlideArithmetic(range=4, slide=2, origin=0)
    >>> enters, untils = ticks.place(np.array([0, 1, 2, 3, 4]))
    >>> enters.tolist(), untils.tolist()
    ([1, 1, 2, 2, 3], [2, 2, 3, 3, 4])
    >>> ticks.starts(np.array([1, 2])).tolist(), ticks.instants(np.array([1, 2])).tolist()
    ([-2, 0], [2, 4])
    """

    range: int
    slide: int
    origin: int = 0
    emit: int | None = None

    @property
    def period(self) -> int:
        """Period after which the pattern of edges repeats."""
        return self.slide if self.emit is None else math.lcm(self.slide, self.emit)

    @cached_property
    def offsets(self) -> Integers:
        """Visits of a period."""
        ends = np.arange(0, self.period, self.slide)
        return ends if self.emit is None else np.union1d(ends, np.arange(0, self.period, self.emit))

    @cached_property
    def places(self) -> Integers:
        """Visits of a period that are ends of windows."""
        return np.searchsorted(self.offsets, np.arange(0, self.period, self.slide))

    @property
    def near_origin(self) -> int:
        return self.origin % self.period

    @property
    def shift(self) -> int:
        """Number of windows between the two origins."""
        return (self.origin - self.near_origin) // self.slide

    def place(self, times: Integers) -> tuple[Integers, Integers]:
        """Return the first visit after each time, and the last of a window that has it, perhaps before."""
        enters, untils = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
        sizes = self.slide, self.period, self.near_origin
        whole, rest = divmod(self.range, self.slide)
        reach = min(whole, MOST), rest
        _place(frozen(times), sizes, reach, frozen(self.offsets), frozen(self.places), (enters, untils))
        return enters, untils

    def first_after(self, times: Integers) -> Integers:
        """Return the first visit after each time."""
        return self.place(times)[0]

    def reached(self, time: int | float) -> int:
        """Return the last visit that is not after a time."""
        whole, rest = divmod(int(min(max(time, LEAST), MOST)) - self.near_origin, self.period)
        return whole * len(self.offsets) + int(np.searchsorted(self.offsets, rest, "right")) - 1

    def ends(self, visits: Integers) -> tuple[Integers, Array]:
        """Return the number of the window end at each visit, or of the next; and whether it is there."""
        whole, place = np.divmod(visits, len(self.offsets))
        number = np.searchsorted(self.places, place)
        each = len(self.places)
        complete = number < each
        complete[complete] = self.places[number[complete]] == place[complete]
        return whole * each + number, complete

    def next_end(self, times: Integers) -> Integers:
        """Return the visit at the first window end that is not before each time; the origin is 0."""
        whole, number = np.divmod(-(-times // self.slide), len(self.places))
        visits: Integers = whole * len(self.offsets) + self.places[number]
        return visits

    def instants(self, visits: Integers) -> Integers:
        """Return the times of visits."""
        return self._axis(visits, len(self.offsets), self.period, self.offsets)

    def instants_of(self, ends: Integers) -> Integers:
        """Return the ends of windows."""
        return self._axis(ends, 1, self.slide, np.zeros(1, np.int64))

    def starts(self, ends: Integers) -> Integers:
        """Return the starts of windows, given the numbers of their ends."""
        return self._axis(ends, 1, self.slide, np.zeros(1, np.int64), -self.range)

    def _axis(self, numbers: Integers, each: int, length: int, offsets: Integers, more: int = 0) -> Integers:
        """Return numbered instants, or the nearest that 64 bits can hold."""

        def exact(number: int) -> int:
            whole, place = divmod(number, each)
            return self.near_origin + more + whole * length + int(offsets[place])

        if not len(numbers):
            return numbers
        low, high = int(numbers.min()), int(numbers.max())
        if exact(low) < LEAST or exact(high) > MOST:
            return np.array([min(max(exact(number), LEAST), MOST) for number in numbers.tolist()], np.int64)
        whole, place = np.divmod(numbers, each)
        base = np.array(_wrapped(self.near_origin + more))
        # Wrapping around does no harm where the result fits.
        result: Integers = base + whole * np.int64(_wrapped(length)) + offsets[place]
        return result


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


@njit(cache=True)
def _place(
    times: Integers,
    sizes: tuple[int, int, int],
    reach: tuple[int, int],
    offsets: Integers,
    places: Integers,
    out: tuple[Integers, Integers],
) -> None:
    slide, period, origin = sizes
    whole_range, rest_range = reach
    enters, untils = out
    start, length = np.int64(0), np.uint64(0)
    enter: Whole = 0
    until: Whole = 0
    for i in range(len(times)):
        time = times[i]
        # Neighbours are mostly in the same stretch, and dividing is slow.
        if time < start or np.uint64(time - start) >= length:
            cycle = time // period
            rest = time - cycle * period - origin
            if rest < 0:
                cycle -= 1
                rest += period
            place = np.searchsorted(offsets, rest, side="right") if len(offsets) > 1 else 1
            enter = cycle * len(offsets) + place
            slot = rest // slide
            inner = rest - slot * slide
            end = slot + (1 if inner >= slide - rest_range else 0)
            number = cycle * len(places) + end
            if number <= _MOST - whole_range:
                number += whole_range
                end = number // len(places)
                limit = _MOST // len(offsets) - 1
                until = end * len(offsets) + places[number - end * len(places)] if end <= limit else _MOST
            else:
                until = _MOST
            next_visit = (offsets[place] if place < len(offsets) else period) - rest
            next_start = slide - rest_range - inner
            if next_start <= 0:
                next_start += slide
            start, length = time, np.uint64(min(next_visit, next_start))
        enters[i], untils[i] = enter, until
