"""Where panes and windows lie on the time axis: the arithmetic of RANGE and SLIDE.

Window w is [origin+(w+1)*slide-range, origin+(w+1)*slide). A pane is as long as the greatest common divisor
of range and slide, so that every window is a number of whole panes. Nothing here overflows: panes and windows
are found by division, and edges that no 64 bits can hold are the nearest that they can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from millstream.kernels.arrays import Array, Integers, frozen
from millstream.kernels.base import Frontier
from millstream.kernels.times import LEAST, MOST

_MOST = 0x7FFF_FFFF_FFFF_FFFF  # for compiled code, whose cache does not notice changes of other files


@dataclass(frozen=True)
class Grid:
    """Windows are counted here from the origin that is the nearest to 0: ``shift`` leads to their ids.

    >>> grid = Grid(range=4, slide=2, origin=0)
    >>> panes = grid.panes(np.array([0, 1, 2, 3, 4]))
    >>> grid.first_windows(panes).tolist(), grid.last_windows(panes).tolist()
    ([0, 0, 1, 1, 2], [1, 1, 2, 2, 3])
    >>> grid.starts(np.array([0, 1])).tolist(), grid.ends(np.array([0, 1])).tolist()
    ([-2, 0], [2, 4])
    """

    range: int
    slide: int
    origin: int

    @property
    def pane(self) -> int:
        return math.gcd(self.range, self.slide)

    @property
    def near_origin(self) -> int:
        return self.origin % self.slide

    @property
    def shift(self) -> int:
        """How many windows lie between the two origins."""
        return (self.origin - self.near_origin) // self.slide

    def panes(self, times: Integers) -> Integers:
        """The pane of each time; pane 0 holds the first multiple of its length from the origin."""
        return _panes(frozen(times), self.pane, self.near_origin % self.pane)

    def first_windows(self, panes: Integers) -> Integers:
        """The first window that ends after each pane's times."""
        return self._windows(panes)[0]

    def last_windows(self, panes: Integers) -> Integers:
        """The last window that begins no later than each pane; before the first if none has the pane."""
        return self._windows(panes)[1]

    def _windows(self, panes: Integers) -> tuple[Integers, Integers]:
        slide, range_ = self.slide // self.pane, self.range // self.pane
        return _windows(frozen(panes), self.near_origin // self.pane, slide, range_)

    def first_after(self, times: Integers) -> Integers:
        """The first window that ends after each time."""
        whole, rest = np.divmod(times, self.slide)
        return whole - (rest < self.near_origin)

    def last_closed(self, frontier: Frontier) -> int:
        """The last window that is complete; it may lie before all that there are."""
        if frontier.is_end:
            return MOST
        time = int(max(frontier.time, LEAST - 1))
        return (time - self.near_origin) // self.slide - 1

    def starts(self, windows: Integers) -> Integers:
        return _edges(windows, self.near_origin - self.range + self.slide, self.slide)

    def ends(self, windows: Integers) -> Integers:
        return _edges(windows, self.near_origin + self.slide, self.slide)


def _edges(windows: Integers, base: int, slide: int) -> Integers:
    """``base + slide * window``, or the nearest that fits 64 bits."""
    first, last = -((base - LEAST) // slide), (MOST - base) // slide
    # Wrapping around does no harm where the result fits, and where it does not it is replaced.
    edges: Array = np.int64(_wrapped(base)) + windows * np.int64(slide)
    if len(windows) and (int(windows.min()) < first or int(windows.max()) > last):
        edges = np.where(windows < max(first, LEAST), LEAST, edges)
        edges = np.where(windows > min(last, MOST), MOST, edges)
    return edges


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


@njit(cache=True)
def _panes(times: Integers, length: int, offset: int) -> Integers:
    panes = np.empty(len(times), np.int64)
    pane = start = 0
    is_known = False
    for i in range(len(times)):
        time = times[i]
        # Neighbours are mostly in the same pane, and dividing is slow.
        if not is_known or time < start or np.uint64(time - start) >= np.uint64(length):
            pane = time // length
            if time - pane * length < offset:
                pane -= 1
            start = pane * length + offset
            is_known = start <= time  # the first pane of all may begin where no 64 bits reach
        panes[i] = pane
    return panes


@njit(cache=True)
def _windows(panes: Integers, offset: int, slide: int, length: int) -> tuple[Integers, Integers]:
    """The first and the last window of panes, all measured in panes."""
    firsts, lasts = np.empty(len(panes), np.int64), np.empty(len(panes), np.int64)
    first = last = 0
    for i in range(len(panes)):
        pane = panes[i]
        if i == 0 or pane != panes[i - 1]:
            first = pane // slide
            rest = pane - first * slide
            if rest < offset:
                first -= 1
            # The place of the pane among those that its first window is the first to have.
            place = rest - offset if rest >= offset else rest - offset + slide
            more = length // slide + (place + length % slide) // slide - 1
            last = first + more if more < 0 or first <= _MOST - more else _MOST
        firsts[i], lasts[i] = first, last
    return firsts, lasts
