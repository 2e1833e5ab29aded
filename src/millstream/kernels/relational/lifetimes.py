"""Lifetimes of tuples in windows: the instant at which a tuple enters, and its last instant.

At an instant T a window without SLIDE holds the tuples with T - R < a <= T. With SLIDE S its content changes
only at slides: it is the extent [kS - R, kS) from kS on. If any window of a query slides, the result changes
only at slides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from millstream.kernels.core.buffers import Integers
from millstream.kernels.core.time_order import MOST, later


@dataclass(frozen=True)
class SlideInstants:
    """Instants at equal distances from an origin; for a landmark window after its start, and at its end."""

    step: int
    origin: int = 0
    start: int | None = None
    end: int | None = None

    def following(self, points: Integers) -> Integers:
        """Return the first instant at or after each point; MOST if there is none.

        >>> SlideInstants(10, end=25).following(np.array([1, 10, 11, 21, 26])).tolist() == (
        ...     [10, 10, 20, 25, MOST]
        ... )
        True
        """
        near = np.minimum(points, MOST - 2 * self.step)
        if self.start is not None:
            near = np.maximum(near, self.start + 1)
        slides = self.origin - (self.origin - near) // self.step * self.step
        none = points > MOST - 2 * self.step
        if self.end is not None:
            slides = np.minimum(slides, self.end)
            none |= points > self.end
        found: Integers = np.where(none, MOST, slides)
        return found

    def after(self, points: Integers) -> Integers:
        """Return the first instant after each point; MOST if there is none."""
        return self.following(np.where(points == MOST, MOST, points + 1))

    def between(self, first: int, last: int) -> Integers:
        """Return the instants from ``first`` to ``last``, both included."""
        if self.end is not None and first > self.end:
            return np.zeros(0, np.int64)
        begin = int(self.following(np.array([first]))[0])
        slides = np.arange(begin, last + 1, self.step) if begin <= last else np.zeros(0, np.int64)
        if self.end is None:
            return slides
        slides = slides[slides < self.end]
        return np.append(slides, self.end) if first <= self.end <= last else slides


@dataclass(frozen=True)
class Lifetime:
    """Lifetimes in windows of time: a tuple is present for less than ``reach``.

    None is forever, and 0 only its own instant. A tuple enters ``lag`` after its own instant.
    """

    reach: int | float | None
    slides: SlideInstants | None = None
    lag: int = 0

    def of(self, order: Integers, is_float: bool) -> tuple[Integers, Integers]:
        """Return the instants at which tuples enter, and their last instants."""
        never = np.full(len(order), MOST)
        order = _plus(order, self.lag) if self.lag else order
        if self.slides is not None:
            leave = never if self.reach is None else self.slides.after(_plus(order, int(self.reach)))
            return self.slides.after(order), before(leave)
        if self.reach is None:
            return order, never
        return order, order if self.reach == 0 else later(order, is_float, self.reach)


TICK = Lifetime(0)
"""The lifetime of a tick: the instant at which a window of rows slides."""


@dataclass(frozen=True)
class RowLifetime:
    """Lifetimes in windows of rows: the latest ``count`` of a partition, updated every ``slide`` rows."""

    count: int
    slide: int = 1


def at_slides(enter: Integers, until: Integers, slides: Sequence[SlideInstants]) -> tuple[Integers, Integers]:
    """Snap lifetimes to slide instants; without slides return them as they are."""
    if not slides:
        return enter, until
    leave = np.where(until == MOST, MOST, until + 1)
    seen = [np.minimum.reduce([one.following(points) for one in slides]) for points in (enter, leave)]
    return seen[0], before(seen[1])


def before(instants: Integers) -> Integers:
    """Return the instants before these; MOST for MOST."""
    found: Integers = np.where(instants == MOST, MOST, instants - 1)
    return found


def _plus(order: Integers, distance: int) -> Integers:
    return np.where(order > MOST - distance, MOST, order + min(distance, MOST))
