"""A log of a shard's tuples, in order, and the start of each tuple's window in it.

The rows of a key are linked. Windows of rows drop their oldest row when they are full. Windows of time share
one pointer for all keys: the log is in the order of time, so rows that have become too old lie before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Buffer, Codes, Integers, frozen


class TupleLog:
    """Times and keys of tuples, with links to the tuples before and after of the same key."""

    def __init__(self) -> None:
        self.times = Buffer(np.int64)
        self.codes = Buffer(np.int32)
        self.previous = Buffer(np.int32)
        self.following = Buffer(np.int32)
        self._latest = Buffer(np.int32, -1)

    def __len__(self) -> int:
        return len(self.times)

    def append(self, times: Integers, codes: Codes, keys: int) -> Codes:
        """Add rows at the end; return their numbers."""
        first, last = len(self), len(self) + len(times)
        self.times.extend(times)
        self.codes.extend(codes)
        previous, following = self.previous.resize(last), self.following.resize(last)
        _link(frozen(codes), first, previous, following, self._latest.resize(keys))
        return np.arange(first, last, dtype=np.int32)


class Window(ABC):
    """Starts of windows, for the tuples of all keys."""

    def __init__(self) -> None:
        self._heads = Buffer(np.int32, -1)
        """Oldest row of each key's window; -1 if there is none."""

    @abstractmethod
    def starts(self, log: TupleLog, first: int, keys: int, bounds: Integers) -> Codes:
        """Return the first row of the window of each row from ``first`` on; no time is below its bound."""

    @abstractmethod
    def live(self, log: TupleLog) -> int:
        """Return the number of rows of the log that a window still to come may have."""


class RowsWindow(Window):
    """Windows of a tuple and so many before it."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows
        self._sizes = Buffer(np.int64, 0)
        self._live = 0

    def starts(self, log: TupleLog, first: int, keys: int, bounds: Integers) -> Codes:
        starts = np.empty(len(log) - first, np.int32)
        heads, sizes = self._heads.resize(keys), self._sizes.resize(keys)
        self._live += _rows_starts(log.codes.view, log.following.view, first, self.rows, heads, sizes, starts)
        return starts

    def live(self, log: TupleLog) -> int:
        return self._live


class RangeWindow(Window):
    """Windows of a tuple and those before it that are not too old."""

    def __init__(self, distance: int | float) -> None:
        super().__init__()
        self.distance = distance
        self.passed = 0
        """Row before which all rows are too old for every tuple to come."""

    def starts(self, log: TupleLog, first: int, keys: int, bounds: Integers) -> Codes:
        starts = np.empty(len(bounds), np.int32)
        links = log.times.view, log.codes.view, log.following.view
        heads = self._heads.resize(keys)
        self.passed = _range_starts(links, first, self.passed, frozen(bounds), heads, starts)
        return starts

    def expire(self, log: TupleLog, bound: int) -> None:
        """Note that windows of tuples to come begin no earlier."""
        links = log.times.view, log.codes.view, log.following.view
        self.passed = _pass(links, self.passed, len(log), bound, self._heads.data)

    def live(self, log: TupleLog) -> int:
        return len(log) - self.passed


def newest(codes: Codes, keys: int, rows: int) -> Array:
    """Tell which rows are among the last ``rows`` of their key."""
    mask = np.empty(len(codes), np.bool_)
    _mark_newest(frozen(codes), rows, np.zeros(keys, np.int64), mask)
    return mask


@njit(cache=True)
def _link(codes: Codes, first: int, previous: Codes, following: Codes, latest: Codes) -> None:
    for i in range(len(codes)):
        row = first + i
        before = latest[codes[i]]
        previous[row] = before
        following[row] = -1
        if before >= 0:
            following[before] = row
        latest[codes[i]] = row


@njit(cache=True)
def _rows_starts(
    codes: Codes, following: Codes, first: int, rows: int, heads: Codes, sizes: Integers, starts: Codes
) -> int:
    """Find the starts of windows; return how many more rows the windows to come may have."""
    more = 0
    for row in range(first, len(codes)):
        key = codes[row]
        if heads[key] < 0:
            heads[key] = row
        if sizes[key] > rows:
            heads[key] = following[heads[key]]
        else:
            sizes[key] += 1
            if sizes[key] <= rows:
                more += 1
        starts[row - first] = heads[key]
    return more


@njit(cache=True)
def _pass(links: tuple[Array, Array, Array], passed: int, end: int, bound: int, heads: Codes) -> int:
    """Remove rows that are older than a bound."""
    times, codes, following = links
    while passed < end and times[passed] < bound:
        heads[codes[passed]] = following[passed]
        passed += 1
    return passed


@njit(cache=True)
def _range_starts(
    links: tuple[Array, Array, Array], first: int, passed: int, bounds: Integers, heads: Codes, starts: Codes
) -> int:
    codes = links[1]
    for i in range(len(bounds)):
        row = first + i
        key = codes[row]
        passed = _pass(links, passed, row, bounds[i], heads)
        if heads[key] < 0:
            heads[key] = row
        starts[i] = heads[key]
    return passed


@njit(cache=True)
def _mark_newest(codes: Codes, rows: int, seen: Integers, mask: Array) -> None:
    for row in range(len(codes) - 1, -1, -1):
        key = codes[row]
        mask[row] = seen[key] < rows
        seen[key] += 1
