"""Landmark windows, of which one bound is fixed (Patroumpas and Sellis, section 3.2).

Lower-bounded (START AT x), upper-bounded (END AT y), a fixed band (both) or neither (UNBOUNDED). With SLIDE a
window ends at every multiple of it from the epoch, and at y; all windows begin at x.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oracle.windows.extent import Extent, Point, Rounding, first_above, unchanged


@dataclass(frozen=True)
class Landmark:
    """LANDMARK START AT x END AT y SLIDE S. Windows are numbered by their ends; without SLIDE there is 0."""

    start: Point | None = None
    end: Point | None = None
    slide: Point | None = None
    rounded: Rounding = unchanged

    def windows(self, points: Iterable[Point]) -> range:
        """Return the windows that hold a point, up to the first that ends after the last point.

        >>> Landmark(start=5, slide=10).windows([3, 7, 32])
        range(0, 4)
        >>> Landmark(start=5, end=25, slide=10).windows([3, 7, 32])
        range(0, 3)
        """
        found = list(points)
        inside = [point for point in found if point in self.whole]
        if not inside:
            return range(0)
        return range(self.ending_after(min(inside)), self.ending_after(max(found)) + 1)

    def extent(self, wid: int) -> Extent:
        """Return the extent of a window.

        >>> [Landmark(5, 25, 10).extent(wid).end for wid in range(3)]
        [10, 20, 25]
        """
        if self.slide is None:
            return self.whole
        end = self._slide(wid)
        return Extent(self.start, end if self.end is None else min(end, self.end))

    def wids(self, point: Point, points: Iterable[Point]) -> range:
        """Return the windows that hold a point, of those up to the first that ends after the last point."""
        if point not in self.whole:
            return range(0)
        return range(self.ending_after(point), self.windows(points).stop)

    def ending_after(self, point: Point) -> int:
        """Return the window that ends next after a point; after the end of all the last one.

        >>> [Landmark(end=25, slide=10).ending_after(point) for point in (9, 10, 24, 25, 99)]
        [0, 1, 2, 2, 2]
        """
        if self.slide is None:
            return 0
        wid = first_above(point, self._slide, int(point // self.slide))
        if self.end is None or point < self.end:
            return wid
        # The last window is the first whose slide is not before the end of all.
        before = first_above(self.end, self._slide, wid) - 1
        return before if self._slide(before) == self.end else before + 1

    def _slide(self, wid: int) -> Point:
        assert self.slide is not None
        return self.rounded((wid + 1) * self.slide)

    @property
    def whole(self) -> Extent:
        """The points that are in any window."""
        return Extent(self.start, self.end)
