"""Slots of tuples and the panes in them, for windows over a call that slide (ESL paper, section 5.1).

A partition's tuples are numbered from 1. SLIDE k cuts them into slots of k, and the last tuple of a slot
yields a result; EMIT EVERY e also lets every e-th tuple give one. A window then begins and ends at few places
only: the tuples between two such places are a pane, and an aggregate of a pane is all that is kept of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Panes:
    """Cuts that repeat after ``period`` tuples: panes begin after so many tuples of it, first after none.

    >>> Panes.of(10, None, [50])
    Panes(period=10, starts=(0,))
    >>> Panes.of(28, None, [10])  # the first 18 tuples of a slot are in no window
    Panes(period=28, starts=(0, 18))
    >>> Panes.of(10, None, [25]).sizes
    (5, 5)
    """

    period: int
    starts: tuple[int, ...]

    @classmethod
    def of(cls, slide: int, emit: int | None, sizes: Iterable[int]) -> Panes:
        """Return the panes that all windows of these sizes share.

        The ESL paper has panes of equal length, the greatest common divisor of slide and size; of these here
        there are never more, and mostly fewer.
        """
        period = math.gcd(slide, emit or 0)
        return cls(period, tuple(sorted({0, *(-size % period for size in sizes)})))

    @property
    def sizes(self) -> tuple[int, ...]:
        ends = (*self.starts[1:], self.period)
        return tuple(end - start for start, end in zip(self.starts, ends, strict=True))

    @property
    def save_something(self) -> bool:
        """Return True if there are fewer panes than tuples."""
        return len(self.starts) < self.period

    def count(self, size: int) -> int:
        """Return the number of panes of a window.

        >>> Panes.of(10, None, [50]).count(50), Panes.of(28, None, [10]).count(10)
        (5, 1)
        """
        periods, rest = divmod(size, self.period)
        return periods * len(self.starts) + sum(start >= self.period - rest for start in self.starts)


def strategy(slide: int, emit: int | None, sizes: Iterable[int]) -> str | None:
    """Describe the computation of windows of these sizes; None if by tuples.

    >>> strategy(10_000, None, [40_000]), strategy(10_001, None, [40_000]), strategy(28, None, [10])
    ('panes of 10000 tuples', 'panes of 4 and 9997 tuples', 'tumble')
    """
    sizes = list(sizes)
    panes = Panes.of(slide, emit, sizes)
    if not sizes or not panes.save_something:
        return None
    if emit is None and max(sizes) <= slide:
        return "tumble"
    *others, last = map(str, sorted(set(panes.sizes)))
    return f"panes of {', '.join(others)}{' and ' if others else ''}{last} tuples"
