"""Where windows end on an axis of doubles: exact, as if doubles were the fractions that they are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from millstream.kernels.arrays import Array, Doubles, Integers
from millstream.kernels.times import LEAST, MOST

_FAR = 2**51
"""So many slides from the origin, and no further, windows can be told apart; what is further is in none."""


@dataclass(frozen=True)
class DoubleTicks:
    """As Ticks. EMIT EVERY must go into the slide without a rest.

    >>> ticks = DoubleTicks(range=0.5, slide=0.25)
    >>> enters, untils = ticks.place(np.array([0.0, 0.2, 0.25, np.nan]))
    >>> enters.tolist(), untils.tolist()
    ([1, 1, 2, 1], [2, 2, 3, 0])
    """

    range: float
    slide: float
    origin: float = 0.0
    emit: float | None = None
    shift = 0

    @property
    def each(self) -> int:
        """How many visits there are for each slide."""
        return 1 if self.emit is None else int(Fraction(self.slide) / Fraction(self.emit))

    def place(self, times: Doubles) -> tuple[Integers, Integers]:
        step = self.slide if self.emit is None else self.emit
        enters = self._divided(times, step, 0.0)[0] + 1
        slots, is_over = self._divided(times, self.slide, float(np.fmod(self.range, self.slide)))
        whole = int(Fraction(self.range) // Fraction(self.slide))
        untils = (slots + is_over + min(whole, _FAR)) * self.each
        nowhere = ~(np.abs(times - self.origin) < _FAR * step)
        return np.where(nowhere, 1, enters), np.where(nowhere, 0, untils)

    def first_after(self, times: Doubles) -> Integers:
        return self.place(times)[0]

    def reached(self, time: int | float) -> int:
        if not np.isfinite(time):
            return LEAST if time < 0 else MOST
        step = Fraction(self.slide if self.emit is None else self.emit)
        return int(min(max((Fraction(time) - Fraction(self.origin)) // step, LEAST), MOST))

    def ends(self, visits: Integers) -> tuple[Integers, Array]:
        number = -(-visits // self.each)
        return number, number * self.each == visits

    def instants(self, visits: Integers) -> Doubles:
        return self._axis(visits, self.slide if self.emit is None else self.emit)

    def instants_of(self, ends: Integers) -> Doubles:
        return self._axis(ends, self.slide)

    def starts(self, ends: Integers) -> Doubles:
        return self._axis(ends, self.slide, self.range)

    def _axis(self, numbers: Integers, step: float, less: float = 0.0) -> Doubles:
        """Rounded once, so for few different numbers as fractions."""
        different, places = np.unique(numbers, return_inverse=True)
        base, length = Fraction(self.origin) - Fraction(less), Fraction(step)
        exact = [float(base + number * length) for number in different.tolist()]
        return np.array(exact, np.float64)[places]

    def _divided(self, times: Doubles, step: float, more: float) -> tuple[Integers, Array]:
        """Floors of (time - origin) / step, and whether what is left reaches a step with ``more`` added."""
        if self.origin:
            return self._slowly(times, step, more)
        with np.errstate(invalid="ignore"):
            rest = np.fmod(times, step)  # exact
            whole = np.rint((times - rest) / step)  # off by less than a half before it is rounded
            # Below zero the rest is: left = rest + step, and left + more >= step if rest >= -more.
            total = rest + more
            part = total - rest
            error = (rest - (total - part)) + (more - part)
            over = (total > step) | ((total == step) & (error >= 0))
            is_over = np.where(rest < 0, rest >= -more, over) & (more > 0)
            floors = np.where(np.isfinite(times), whole - (rest < 0), 0)
        return np.clip(floors, -float(_FAR), float(_FAR)).astype(np.int64), is_over

    def _slowly(self, times: Doubles, step: float, more: float) -> tuple[Integers, Array]:
        """With an origin differences need not be doubles."""
        floors, is_over = np.zeros(len(times), np.int64), np.zeros(len(times), np.bool_)
        base, length, added = Fraction(self.origin), Fraction(step), Fraction(more)
        for i, time in enumerate(times.tolist()):
            if np.isfinite(time) and abs(time - self.origin) < _FAR * step:
                whole, rest = divmod(Fraction(time) - base, length)
                floors[i], is_over[i] = whole, rest + added >= length
        return floors, is_over
