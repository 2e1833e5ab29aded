"""Windows that slide by tuples: RANGE on an attribute, SLIDE over tuples (Window-ID paper; Q3, Q5).

Forward context: which windows hold a tuple depends on those that come after it. The id of a window is the
value of the attribute at which it ends, so that equal values are one window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oracle.windows.extent import Extent, Point


@dataclass(frozen=True)
class TupleSlide:
    """RANGE R RATTR a SLIDE n ROWS SATTR row_num, or (``by_rank``) SATTR rank(a).

    A stream is the sequence of its tuples' attributes in order of arrival; None is NULL, which counts as an
    arrival but has no rank and ends no window.
    """

    size: Point
    every: int = 1
    by_rank: bool = False

    def windows(self, points: Sequence[Point | None]) -> list[Point]:
        """Return the attributes of the n-th, 2n-th, ... tuple.

        >>> TupleSlide(300, every=2).windows([10, 40, 20, 30])
        [30, 40]
        >>> TupleSlide(300, every=2, by_rank=True).windows([10, 40, 20, 30])
        [20, 40]
        """
        counted = sorted(p for p in points if p is not None) if self.by_rank else points
        chosen = counted[self.every - 1 :: self.every]
        return sorted({point for point in chosen if point is not None})

    def extent(self, wid: Point) -> Extent:
        """Return the extent of a window, which ends with the value that is its id.

        >>> 0 in TupleSlide(300).extent(300), 1 in TupleSlide(300).extent(300)
        (False, True)
        """
        return Extent(wid - self.size, wid, after_start=True, with_end=True)

    def wids(self, point: Point, points: Sequence[Point | None]) -> list[Point]:
        """Return the windows that hold a point: those that end with it, or less than the range after it."""
        return [wid for wid in self.windows(points) if point <= wid < point + self.size]
