"""Ends of windows on an axis of doubles: RANGE, SLIDE and ORIGIN are the decimals in the query.

A bound is the double (or float) nearest to its exact value. A value is in a window if it is not below the
bound at which the window begins and is below the one at which it ends, so a window holds what it shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from millstream.kernels.core.buffers import Array, Doubles, Integers
from millstream.kernels.core.time_order import LEAST, MOST

_FAR = 2.0**62
"""Limit of the numbers of visits; a value that is further from the origin is in no window."""


@dataclass(frozen=True)
class DoubleSlideArithmetic:
    """Arithmetic of doubles, as SlideArithmetic. EMIT EVERY must divide the slide without a remainder.

    >>> ticks = DoubleSlideArithmetic(range=Fraction("0.2"), slide=Fraction("0.1"))
    >>> enters, untils = ticks.place(np.array([0.0, 0.2, 0.3, np.nan]))
    >>> enters.tolist(), untils.tolist()
    ([1, 3, 4, 1], [2, 4, 5, 0])
    >>> ticks.instants_of(np.array([3, 7])).tolist()
    [0.3, 0.7]
    """

    range: Fraction
    slide: Fraction
    origin: Fraction = Fraction(0)
    emit: Fraction | None = None
    single: bool = False
    """True if the attribute is a FLOAT, so that bounds are floats."""
    shift = 0

    def __post_init__(self) -> None:
        for name in ("range", "slide", "origin", "emit"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Fraction(value))

    @property
    def each(self) -> int:
        """Number of visits in each slide."""
        return 1 if self.emit is None else int(self.slide / self.emit)

    @property
    def _step(self) -> Fraction:
        return self.slide if self.emit is None else self.emit

    def place(self, times: Doubles) -> tuple[Integers, Integers]:
        enters = self._first_above(times, self.origin, self._step)
        untils = (self._first_above(times, self.origin - self.range, self.slide) - 1) * self.each
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.abs(times / _as_double(self._step) - _as_double(self.origin / self._step))
            nowhere = ~(steps + _as_double(self.range / self._step) < _FAR)
        return np.where(nowhere, 1, enters), np.where(nowhere, 0, untils)

    def first_after(self, times: Doubles) -> Integers:
        return self._first_above(times, self.origin, self._step)

    def reached(self, time: int | float) -> int:
        if not np.isfinite(time):
            return LEAST if time < 0 else MOST
        return min(max(self._exactly(float(time), self.origin, self._step) - 1, LEAST), MOST)

    def ends(self, visits: Integers) -> tuple[Integers, Array]:
        number = -(-visits // self.each)
        return number, number * self.each == visits

    def instants(self, visits: Integers) -> Doubles:
        return self._axis(visits, self.origin, self._step)

    def instants_of(self, ends: Integers) -> Doubles:
        return self._axis(ends, self.origin, self.slide)

    def starts(self, ends: Integers) -> Doubles:
        return self._axis(ends, self.origin - self.range, self.slide)

    def _axis(self, numbers: Integers, base: Fraction, step: Fraction) -> Doubles:
        """Return bounds, computed as fractions for few different numbers, and rounded once."""
        different, places = np.unique(numbers, return_inverse=True)
        exact = [nearest(base + number * step, self.single) for number in different.tolist()]
        return np.array(exact, np.float64)[places]

    def _first_above(self, times: Doubles, base: Fraction, step: Fraction) -> Integers:
        """Return the first number whose bound is above each time.

        Division by doubles is exact enough for all times that are not close to a bound. Distinct times that
        are close are hardly more than windows: for these it is computed with fractions.
        """
        begin, length = _as_double(base), _as_double(step)
        with np.errstate(over="ignore", invalid="ignore"):
            quotient = (times - begin) / length
            size = np.abs(quotient) + (np.abs(times) + abs(begin) + np.finfo(np.float64).tiny) / length
            error = size * (2.0**-22 if self.single else 2.0**-50)
            is_far = np.abs(quotient - np.rint(quotient)) > error
            found = np.where(is_far, np.floor(quotient) + 1, 0.0)
        result = np.clip(found, -_FAR, _FAR).astype(np.int64)
        is_finite = np.isfinite(times)
        close = np.flatnonzero(~is_far & is_finite)
        if len(close):
            different, places = np.unique(times[close], return_inverse=True)
            exact = [self._exactly(time, base, step) for time in different.tolist()]
            result[close] = np.array([min(max(n, LEAST + 1), MOST) for n in exact], np.int64)[places]
        result[~is_finite] = np.where(times[~is_finite] < 0, LEAST + 1, 1)
        return result

    def _exactly(self, time: float, base: Fraction, step: Fraction) -> int:
        """Compute the number for one time: bounds above it are beyond the midpoint to its neighbour.

        A bound at the midpoint is rounded to the even one of the two.
        """
        middle = _middle(time, self.single)
        number, rest = divmod(middle - base, step)
        return number if rest == 0 and _rounded(middle, self.single) > time else number + 1


def nearest(value: Fraction, single: bool = False) -> float:
    """Return the double (or float) nearest to a number; the largest for what is beyond it.

    >>> nearest(Fraction("0.3")), nearest(Fraction(10) ** 400), nearest(Fraction(10) ** 39, single=True)
    (0.3, 1.7976931348623157e+308, 3.4028234663852886e+38)
    """
    limit = float(np.finfo(np.float32 if single else np.float64).max)
    return min(max(_rounded(value, single), -limit), limit)


def _rounded(value: Fraction, single: bool) -> float:
    double = _as_double(value)
    if not single:
        return double
    with np.errstate(over="ignore"):
        found = np.float32(double)
    if not np.isfinite(found) or Fraction(double) == value:
        return float(found)
    # The double has been rounded already: if it is in the middle between two floats, that may mislead.
    around = (float(found), *(_neighbour(float(found), limit, True) for limit in (math.inf, -math.inf)))
    return min((one for one in around if math.isfinite(one)), key=lambda one: abs(Fraction(one) - value))


def _neighbour(time: float, limit: float, single: bool) -> float:
    """Return the next double, or float, on the way to a limit."""
    if not single:
        return math.nextafter(time, limit)
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(np.float32(time), np.float32(limit)))


def _as_double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _middle(time: float, single: bool) -> Fraction:
    """Return the midpoint to the next larger double, or float."""
    up, down = _neighbour(time, math.inf, single), _neighbour(time, -math.inf, single)
    exact = Fraction(time)
    return (exact + Fraction(up)) / 2 if math.isfinite(up) else exact + (exact - Fraction(down)) / 2
