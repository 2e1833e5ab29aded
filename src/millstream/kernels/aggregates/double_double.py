"""Arithmetic of numbers that are the sum of two doubles (Dekker, Knuth)."""

from __future__ import annotations

import numpy as np

from millstream.jit import njit

Double = tuple[float, float]
"""A number as the sum of two doubles, the second of which is far smaller."""


@njit(cache=True, allocates=False)
def plus(a: Double, b: Double) -> Double:
    upper = a[0] + b[0]
    part = upper - a[0]
    error = (a[0] - (upper - part)) + (b[0] - part) + a[1] + b[1]
    high = upper + error
    return high, error - (high - upper)


@njit(cache=True, allocates=False)
def times(a: Double, b: Double) -> Double:
    product = a[0] * b[0]
    spread = 134217729.0 * a[0]
    head = spread - (spread - a[0])
    tail = a[0] - head
    spread = 134217729.0 * b[0]
    upper = spread - (spread - b[0])
    lower = b[0] - upper
    error = ((head * upper - product) + head * lower + tail * upper) + tail * lower
    error += a[0] * b[1] + a[1] * b[0]
    high = product + error
    return high, error - (high - product)


@njit(cache=True, allocates=False)
def scaled(a: Double, factor: float) -> Double:
    return times(a, (factor, 0.0))


@njit(cache=True, allocates=False, error_model="numpy")
def quotient(part: float, whole: float) -> Double:
    """Return a quotient of doubles."""
    high = part / whole
    product = times((high, 0.0), (whole, 0.0))
    return high, ((part - product[0]) - product[1]) / whole


@njit(cache=True, allocates=False)
def or_plain(value: Double, plain: float) -> Double:
    """Return the plain double result if double-double arithmetic has overflowed."""
    return value if np.isfinite(value[0]) and np.isfinite(value[1]) else (plain, 0.0)


@njit(cache=True, allocates=False)
def minus(a: Double, b: Double) -> Double:
    return plus(a, (-b[0], -b[1]))
