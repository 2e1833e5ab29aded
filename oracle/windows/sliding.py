"""Sliding windows: RANGE and SLIDE on one attribute (Window-ID paper, section 3; Q1).

Context free: the windows of a tuple depend on its own attribute only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oracle.windows.extent import Extent, Point, Rounding, first_above, unchanged


@dataclass(frozen=True)
class Sliding:
    """RANGE R SLIDE S on an attribute, aligned at an origin, in exact numbers.

    Bounds are ``rounded`` to values of the attribute, and a window holds the points between the rounded
    bounds.

    >>> from fractions import Fraction
    >>> thirds = Sliding(Fraction(1, 3), Fraction(1, 3), rounded=round)
    >>> [thirds.extent(wid).end for wid in range(4)], thirds.wids(0), thirds.wids(1)
    ([0, 1, 1, 1], range(1, 2), range(4, 5))
    """

    size: Point
    slide: Point
    origin: Point = 0
    rounded: Rounding = unchanged

    def windows(self, points: Iterable[Point]) -> range:
        """Return all windows from the first to the last that may hold one of the points.

        >>> Sliding(300, 60).windows([0, 600])
        range(0, 15)
        """
        found = list(points)
        if not found:
            return range(0)
        return range(self.wids(min(found)).start, self.wids(max(found)).stop)

    def extent(self, wid: int) -> Extent:
        """Return the extent of a window.

        >>> Sliding(300, 60).extent(10)
        Extent(start=360, end=660, after_start=False, with_end=False)
        """
        return Extent(self._start(wid), self._end(wid))

    def wids(self, point: Point) -> range:
        """Return the windows that hold a point; none, if it falls between windows that do not overlap.

        >>> Sliding(300, 60).wids(600), Sliding(10, 60).wids(600)
        (range(10, 15), range(10, 10))
        """
        first = self.ending_after(point)
        return range(first, max(first, first_above(point, self._start, first)))

    def ending_after(self, point: Point) -> int:
        """Return the window that ends next, strictly after a point."""
        return first_above(point, self._end, int((point - self.origin) // self.slide))

    def _start(self, wid: int) -> Point:
        return self.rounded(self.origin + (wid + 1) * self.slide - self.size)

    def _end(self, wid: int) -> Point:
        return self.rounded(self.origin + (wid + 1) * self.slide)
