"""The window NOW: the tuples of one instant (Patroumpas and Sellis, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable

from oracle.windows.extent import Extent, Point


class Now:
    """A window for each instant at which there are tuples; its id is the instant."""

    def windows(self, points: Iterable[Point]) -> list[Point]:
        """Return the instants, in order."""
        return sorted(set(points))

    def extent(self, wid: Point) -> Extent:
        """Return the extent of one instant."""
        return Extent(wid, wid, with_end=True)

    def wids(self, point: Point) -> list[Point]:
        return [point]
