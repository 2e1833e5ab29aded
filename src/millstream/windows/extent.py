"""Extents: from where to where a window reaches."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Point = int | Fraction
"""A value of the window's attribute as an exact number."""


@dataclass(frozen=True)
class Extent:
    """The points between two bounds; None is no bound.

    A window begins with its start and ends before its end, unless it is said to reach from behind its start
    or to have its end in it.

    >>> 300 in Extent(0, 300), 300 in Extent(0, 300, after_start=True, with_end=True)
    (False, True)
    """

    start: Point | None
    end: Point | None
    after_start: bool = False
    with_end: bool = False

    def __contains__(self, point: Point) -> bool:
        if self.start is not None and (point <= self.start if self.after_start else point < self.start):
            return False
        return self.end is None or (point <= self.end if self.with_end else point < self.end)
