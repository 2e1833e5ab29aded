"""Predicate windows: START WHEN c1 END WHEN c2 (EPIC's predicate windows).

A window begins with a tuple that satisfies START while none is open, and ends with the first from there on
that satisfies END, which may be the same. A stream is the sequence of (satisfies START, satisfies END) of its
tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Satisfies = tuple[bool, bool]


@dataclass(frozen=True)
class Episode:
    """The tuples from one position to another, both included; ``open`` while none has satisfied END."""

    first: int
    last: int
    open: bool = False

    def __contains__(self, position: int) -> bool:
        return self.first <= position <= self.last


class Predicate:
    """START WHEN / END WHEN. Windows are numbered in order, and they do not overlap."""

    def windows(self, tuples: Sequence[Satisfies]) -> range:
        return range(len(self.extents(tuples)))

    def extent(self, wid: int, tuples: Sequence[Satisfies]) -> Episode:
        return self.extents(tuples)[wid]

    def wids(self, position: int, tuples: Sequence[Satisfies]) -> list[int]:
        """Return the window of a tuple, if it is in one."""
        return [wid for wid, episode in enumerate(self.extents(tuples)) if position in episode]

    def extents(self, tuples: Sequence[Satisfies]) -> list[Episode]:
        """Return all windows in order; the last one may still be open.

        >>> start, end, both, none = (True, False), (False, True), (True, True), (False, False)
        >>> stream = [none, start, start, end, both, end, start, none]
        >>> [(episode.first, episode.last) for episode in Predicate().extents(stream)]
        [(1, 3), (4, 4), (6, 7)]
        """
        episodes = []
        first: int | None = None
        for position, (starts, ends) in enumerate(tuples):
            if first is None and starts:
                first = position
            if first is not None and ends:
                episodes.append(Episode(first, position))
                first = None
        if first is not None:
            episodes.append(Episode(first, len(tuples) - 1, open=True))
        return episodes
