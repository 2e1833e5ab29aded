"""Joins over two windows of rows in bare loops: results are kept, and removed in one of two ways.

As in the paper, the tuples of windows and the results are found by the join key. With *negative tuples* a
tuple that leaves is joined again with the other window, and each result that this gives is looked for among
those of the key, one after the other. In *expiry order* results hang on the tuples that they are made of, so
that they go with them. What comes out is a number of results, and a sum over them that tells them apart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Integers = npt.NDArray[np.int64]
Links = tuple[Integers, ...]


class JoinByHand:
    """The latest ``size`` tuples of both sides, with keys from 0 to ``keys``; sides take turns."""

    def __init__(self, size: int, keys: int, *, negative: bool, room: int = 1 << 16) -> None:
        self._size, self._negative = size, negative
        self._windows = np.full((2, size), -1)
        """Keys, by the number of a tuple modulo the size."""

        self._heads, self._tails = np.full((2, keys + 1), -1), np.full((2, keys + 1), -1)
        self._next = np.full((2, size), -1)
        self._previous = np.full((2, size), -1)
        # Results are in a list by key, or in two lists: that of their left and that of their right tuple.
        lists = keys + 1 if negative else size
        self._first, self._last = np.full((2, lists), -1), np.full((2, lists), -1)
        self._results = np.zeros((7, room), np.int64)
        """Left and right number; the next and the one before, in the first and in the second list; whether
        it is free, or the next that is."""

        self._state = np.array([0, 0, -1, 0, 0])
        """How many tuples have come of each side, the free list, how many results there are, their sum."""

    @property
    def results(self) -> tuple[int, int]:
        return int(self._state[3]), int(self._state[4])

    def process(self, left: Integers, right: Integers) -> None:
        done = 0
        while done < len(left):
            done = _join(
                left, right, done, self._size, self._negative, self._windows,
                (self._heads, self._tails, self._next, self._previous),
                (self._first, self._last), self._results, self._state,
            )  # fmt: skip
            if done < len(left):
                self._grow()

    def _grow(self) -> None:
        self._results = np.concatenate([self._results, np.zeros_like(self._results)], axis=1)


_LEFT, _RIGHT, _NEXT, _BEFORE = 0, 1, 2, 4
_SPARE = 6


@njit(cache=True)
def _join(
    left: Integers,
    right: Integers,
    done: int,
    size: int,
    negative: bool,
    windows: Integers,
    tuples: Links,
    lists: Links,
    results: Integers,
    state: Integers,
) -> int:
    """Join while there is certainly room for results; return the position reached."""
    for i in range(done, len(left)):
        if state[3] + 2 * size >= results.shape[1]:
            return i
        for side in range(2):
            number = state[side]
            place = number % size
            if number >= size:
                _leave(side, place, negative, windows, tuples, lists, results, state)
            key = left[i] if side == 0 else right[i]
            windows[side, place] = key
            _link(side, place, key, tuples)
            state[side] += 1
            other = tuples[0][1 - side, key]
            while other >= 0:
                one, two = (place, other) if side == 0 else (other, place)
                _add(one, two, key, negative, lists, results, state)
                other = tuples[2][1 - side, other]
    return len(left)


@njit(cache=True)
def _link(side: int, place: int, key: int, tuples: Links) -> None:
    heads, tails, following, preceding = tuples
    following[side, place] = -1
    preceding[side, place] = tails[side, key]
    if tails[side, key] < 0:
        heads[side, key] = place
    else:
        following[side, tails[side, key]] = place
    tails[side, key] = place


@njit(cache=True)
def _leave(
    side: int,
    place: int,
    negative: bool,
    windows: Integers,
    tuples: Links,
    lists: Links,
    results: Integers,
    state: Integers,
) -> None:
    """The tuple of a place leaves its window, and so do the results that it is in."""
    heads, tails, following, preceding = tuples
    key = windows[side, place]
    # It is the oldest of its key.
    heads[side, key] = following[side, place]
    if heads[side, key] < 0:
        tails[side, key] = -1
    else:
        preceding[side, heads[side, key]] = -1
    if negative:
        other = heads[1 - side, key]
        while other >= 0:
            one, two = (place, other) if side == 0 else (other, place)
            found = lists[0][0, key]
            while results[_LEFT, found] != one or results[_RIGHT, found] != two:
                found = results[_NEXT, found]
            _unlink(found, 0, key, lists, results)
            _free(found, results, state)
            other = following[1 - side, other]
    else:
        found = lists[0][side, place]
        while found >= 0:
            after = results[_NEXT + side, found]
            _unlink(found, 0, results[_LEFT, found], lists, results)
            _unlink(found, 1, results[_RIGHT, found], lists, results)
            _free(found, results, state)
            found = after


@njit(cache=True)
def _add(
    one: int, two: int, key: int, negative: bool, lists: Links, results: Integers, state: Integers
) -> None:
    found = state[2]
    if found >= 0:
        state[2] = results[_SPARE, found]
    else:
        found = state[3]  # all places before it are taken
    results[_LEFT, found], results[_RIGHT, found] = one, two
    state[3] += 1
    state[4] += worth(one, two)
    if negative:
        _append(found, 0, key, lists, results)
    else:
        _append(found, 0, one, lists, results)
        _append(found, 1, two, lists, results)


@njit(cache=True)
def _append(found: int, which: int, of: int, lists: Links, results: Integers) -> None:
    first, last = lists
    results[_NEXT + which, found] = -1
    results[_BEFORE + which, found] = last[which, of]
    if last[which, of] < 0:
        first[which, of] = found
    else:
        results[_NEXT + which, last[which, of]] = found
    last[which, of] = found


@njit(cache=True)
def _unlink(found: int, which: int, of: int, lists: Links, results: Integers) -> None:
    first, last = lists
    before, after = results[_BEFORE + which, found], results[_NEXT + which, found]
    if before < 0:
        first[which, of] = after
    else:
        results[_NEXT + which, before] = after
    if after < 0:
        last[which, of] = before
    else:
        results[_BEFORE + which, after] = before


@njit(cache=True)
def _free(found: int, results: Integers, state: Integers) -> None:
    state[3] -= 1
    state[4] -= worth(results[_LEFT, found], results[_RIGHT, found])
    results[_SPARE, found] = state[2]
    state[2] = found


@njit(cache=True)
def worth(one: Integers, two: Integers) -> Integers:
    """A number for a result, of the places of its tuples."""
    return (one + 1) * 1_000_003 ^ (two + 1) * 69_069
