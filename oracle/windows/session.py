"""Session windows: maximal runs of points, closed by a silence longer than the gap."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from oracle.windows.extent import Extent, Point


@dataclass(frozen=True)
class Session:
    """SESSION GAP g. Sessions are numbered in order; they depend on all points."""

    gap: Point

    def windows(self, points: Iterable[Point]) -> range:
        return range(len(self.extents(points)))

    def extent(self, wid: int, points: Iterable[Point]) -> Extent:
        return self.extents(points)[wid]

    def wids(self, point: Point, points: Iterable[Point]) -> list[int]:
        """Return the session of a point; none, if it is in a gap."""
        return [wid for wid, extent in enumerate(self.extents(points)) if point in extent]

    def extents(self, points: Iterable[Point]) -> list[Extent]:
        """Return all sessions, each from its first point to its last plus the gap, which can still extend it.

        >>> [(e.start, e.end) for e in Session(5).extents([11, 1, 20, 6])]
        [(1, 16), (20, 25)]
        """
        ordered = sorted(points)
        if not ordered:
            return []
        breaks = [(a, b) for a, b in itertools.pairwise(ordered) if b - a > self.gap]
        firsts = [ordered[0], *(b for _, b in breaks)]
        lasts = [*(a for a, _ in breaks), ordered[-1]]
        return [
            Extent(first, last + self.gap, with_end=True) for first, last in zip(firsts, lasts, strict=True)
        ]
