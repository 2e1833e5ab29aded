"""Extents of windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

Point = int | Fraction
"""A value of the window's attribute as an exact number."""

Rounding = Callable[[Point], Point]
"""Rounds the exact value of a bound to the nearest one that the attribute can have."""


def unchanged(bound: Point) -> Point:
    """Return the bound of an attribute that can have any value."""
    return bound


def first_above(point: Point, bound: Callable[[int], Point], near: int) -> int:
    """Return the first number whose bound is above a point; bounds never fall. Search from ``near``.

    >>> first_above(20, lambda number: 5 * number, near=0)
    5
    """
    step = 1
    low = high = near
    while bound(low) > point:
        low, step = low - step, 2 * step
    step = 1
    while bound(high) <= point:
        high, step = high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) > point else (middle, high)
    return high


@dataclass(frozen=True)
class Extent:
    """The points between two bounds; None is no bound.

    A window includes its start and excludes its end, unless ``after_start`` or ``with_end`` is set.

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
