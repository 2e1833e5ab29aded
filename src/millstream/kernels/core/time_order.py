"""Times as integers in the same order, so that every loop is compiled for integers only."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from millstream.kernels.core.buffers import Integers
from millstream.kernels.core.kernel import Times

LEAST = int(np.iinfo(np.int64).min)
MOST = int(np.iinfo(np.int64).max)


def as_order(times: Times) -> Integers:
    """Return integers that compare as the times do; NaN is the largest, and -0.0 equals 0.0, as in Spark.

    >>> order = as_order(np.array([-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf, np.nan]))
    >>> (np.diff(order) > 0).tolist()
    [True, True, False, True, True, True]
    """
    if times.dtype == np.int64:
        return times.view(np.int64)
    plain = np.where(np.isnan(times), np.nan, times + 0.0)  # one NaN of all, and no negative zero
    bits = plain.view(np.int64)
    return np.where(bits < 0, bits ^ MOST, bits)


def from_order(order: Integers, is_float: bool) -> Times:
    """Return the times of an order."""
    if not is_float:
        return order
    bits: npt.NDArray[np.int64] = np.where(order < 0, order ^ MOST, order)
    return bits.view(np.float64)


def earlier(order: Integers, is_float: bool, distance: int | float) -> Integers:
    """Return the first instant that is no more than ``distance`` before each, as order."""
    if is_float:
        return as_order(from_order(order, True) - np.float64(distance))
    if distance > MOST - LEAST:
        return np.full(len(order), LEAST)
    whole = math.floor(distance)  # integers at least t - 2.5 are those at least t - 2
    # A distance of more than 63 bits wraps around, and so does what it is subtracted from.
    return np.where(order < LEAST + whole, LEAST, order - np.uint64(whole).astype(np.int64))


def later(order: Integers, is_float: bool, distance: int | float, *, included: bool = False) -> Integers:
    """Return the last instant less than ``distance`` after each, or up to it if ``included``, as order."""
    if not is_float:
        whole = math.floor(distance) if included else math.ceil(distance) - 1
        return np.where(order > MOST - whole, MOST, order + np.int64(min(whole, MOST)))
    times = from_order(order, True)
    with np.errstate(over="ignore", invalid="ignore"):
        total = times + np.float64(distance)
        part = total - times
        error = (times - (total - part)) + (np.float64(distance) - part)
        # The sum is rounded: the largest double below what it should be is itself, or its neighbour.
        fits = error >= 0 if included else error > 0
        below = np.where(fits, total, np.nextafter(total, -np.inf))
    return as_order(np.where(np.isfinite(times), below, times))


def shifted(times: Times, distance: int) -> Times:
    """Return whole instants a distance later, or the last that 64 bits can hold."""
    if distance < 0:
        return np.where(times < LEAST - distance, LEAST, times + np.int64(distance))
    return np.where(times > MOST - distance, MOST, times + np.int64(min(distance, MOST)))


def order_of(time: int | float, is_float: bool) -> int:
    """Return the order of a single time, which may be infinite even where times are integers."""
    if is_float:
        return int(as_order(np.array([time], np.float64))[0])
    return int(min(max(time, LEAST), MOST))
