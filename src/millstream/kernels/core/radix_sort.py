"""A radix sort of rows, which for integers of a small span is far faster than comparing."""

from __future__ import annotations

import numpy as np

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Integers, frozen

_BITS = 11
_DIGITS = 1 << _BITS


def ordering(major: Integers, middle: Integers, minor: Integers) -> Integers | None:
    """Return the stable order of rows by three columns, as indices; None if they are in order already.

    >>> ordering(np.array([2, 1, 1]), np.array([0, 5, 4]), np.array([0, 0, 0])).tolist()
    [2, 1, 0]
    >>> ordering(np.array([1, 1, 2]), np.array([0, 0, 0]), np.array([3, 4, 0])) is None
    True
    """
    major, middle, minor = frozen(major), frozen(middle), frozen(minor)
    order = np.arange(len(major))
    if _in_order(major, middle, minor, order):
        return None
    # Rows mostly come in the order of the last column wherever the others are equal: try without it first.
    grows = (middle[1:] >= middle[:-1]).all()
    shortcut = _sorted_by(major, order if grows else _sorted_by(middle, order))
    if _in_order(major, middle, minor, shortcut):
        return shortcut
    return _sorted_by(major, _sorted_by(middle, _sorted_by(minor, order)))


def merging(one: tuple[Array, ...], other: tuple[Array, ...]) -> Integers:
    """Return the order of the rows of two consecutive runs, each in order by three columns.

    >>> one, other = np.array([[1, 5], [0, 0], [0, 0]]), np.array([[3], [0], [0]])
    >>> merging(tuple(one), tuple(other)).tolist()
    [0, 2, 1]
    """
    return _merge(tuple(frozen(column) for column in one), tuple(frozen(column) for column in other))


def changes(*columns: Array) -> Array:
    """Tell which rows differ from the one before.

    >>> changes(np.array([1, 1, 1]), np.array([4, 4, 5])).tolist()
    [True, False, True]
    """
    changed = np.ones(len(columns[0]), np.bool_)
    changed[1:] = False
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed


def _sorted_by(column: Integers, order: Integers) -> Integers:
    least, bits = _span(column)
    for shift in range(0, bits, _BITS):
        order = _radix_pass(column, order, least, shift)
    return order


@njit(cache=True)
def _merge(one: tuple[Array, ...], other: tuple[Array, ...]) -> Integers:
    major, middle, minor = one
    major_, middle_, minor_ = other
    count, total = len(major), len(major) + len(major_)
    order = np.empty(total, np.int64)
    i = k = 0
    for place in range(total):
        is_first = i < count
        if is_first and count + k < total:
            if major[i] != major_[k]:
                is_first = major[i] < major_[k]
            elif middle[i] != middle_[k]:
                is_first = middle[i] < middle_[k]
            else:
                is_first = minor[i] <= minor_[k]
        if is_first:
            order[place] = i
            i += 1
        else:
            order[place] = count + k
            k += 1
    return order


@njit(cache=True)
def _span(column: Integers) -> tuple[int, int]:
    """Return the least value, and the number of bits of the largest distance from it."""
    least = most = column[0]
    for value in column:
        least = min(least, value)
        most = max(most, value)
    distance = np.uint64(most) - np.uint64(least)
    bits = 0
    while bits < 64 and distance >> np.uint64(bits):
        bits += 1
    return least, bits


@njit(cache=True)
def _radix_pass(column: Integers, order: Integers, least: int, shift: int) -> Integers:
    places = np.zeros(_DIGITS + 1, np.int64)
    for i in range(len(order)):
        places[(((column[i] - least) >> shift) & (_DIGITS - 1)) + 1] += 1
    for digit in range(_DIGITS):
        places[digit + 1] += places[digit]
    result = np.empty_like(order)
    for row in order:
        # The distance may wrap around to below zero: its bits are right all the same, and are cut out.
        digit = ((column[row] - least) >> shift) & (_DIGITS - 1)
        result[places[digit]] = row
        places[digit] += 1
    return result


@njit(cache=True)
def _in_order(major: Integers, middle: Integers, minor: Integers, order: Integers) -> bool:
    for i in range(1, len(order)):
        one, two = order[i - 1], order[i]
        if major[one] != major[two]:
            if major[one] > major[two]:
                return False
        elif middle[one] != middle[two]:
            if middle[one] > middle[two]:
                return False
        elif minor[one] > minor[two]:
            return False
    return True
