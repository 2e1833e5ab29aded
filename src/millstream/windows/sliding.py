"""Sliding windows: RANGE and SLIDE on one attribute (Window-ID paper, section 3; Q1).

Context free: which windows hold a tuple depends on its own attribute only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.windows.extent import Extent, Point


@dataclass(frozen=True)
class Sliding:
    """RANGE R SLIDE S on an attribute, aligned at an origin; exact numbers all."""

    size: Point
    slide: Point
    origin: Point = 0

    def windows(self, points: Iterable[Point]) -> range:
        """All windows from the first to the last that may hold one of the points.

        >>> Sliding(300, 60).windows([0, 600])
        range(0, 15)
        """
        found = list(points)
        if not found:
            return range(0)
        return range(self.ending_after(min(found)), self.ending_after(max(found) + self.size))

    def extent(self, wid: int) -> Extent:
        """What a window holds.

        >>> Sliding(300, 60).extent(10)
        Extent(start=360, end=660, after_start=False, with_end=False)
        """
        end = self.origin + (wid + 1) * self.slide
        return Extent(end - self.size, end)

    def wids(self, point: Point) -> range:
        """The windows that hold a point; none, if it falls between windows that do not overlap.

        >>> Sliding(300, 60).wids(600), Sliding(10, 60).wids(600)
        (range(10, 15), range(10, 10))
        """
        return range(self.ending_after(point), self.ending_after(point + self.size))

    def ending_after(self, point: Point) -> int:
        """The window that ends next, strictly after a point."""
        return int((point - self.origin) // self.slide)
