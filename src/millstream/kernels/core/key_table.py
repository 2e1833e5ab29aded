"""A hash table from keys, which are pairs of integers, to dense codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.column_names import KEY, KEY2
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import (
    NO_BYTES,
    NO_INTEGERS,
    Array,
    Buffer,
    Bytes,
    Codes,
    Integers,
    frozen,
)
from millstream.kernels.core.radix_sort import ordering


class KeyTable:
    """A table of pairs with their codes, in the order in which pairs are first seen.

    >>> keys = KeyTable()
    >>> keys.codes(np.array([7, 5, 7]), np.array([1, 1, 1])).tolist()
    [0, 1, 0]
    >>> keys.codes(np.array([7, 5]), np.array([2, 1])).tolist()
    [2, 1]
    """

    def __init__(self) -> None:
        self.first = Buffer(np.int64)
        self.second = Buffer(np.int64)
        self.absent = -1
        """Code of the NULL key, -1 while there is none."""

        self.columns: tuple[str, ...] = ()
        """Key columns that the tuples have."""

        self._slots = np.full(64, -1, np.int32)

    def __len__(self) -> int:
        return len(self.first)

    def of(self, table: pa.Table, names: tuple[str, str] = (KEY, KEY2)) -> Codes:
        """Return the codes of a table's key columns."""
        one, two = names
        self.columns = tuple(name for name in names if name in table.column_names)
        if one not in self.columns:
            if not len(self) and table.num_rows:
                self.codes(np.zeros(1, np.int64))
            return np.zeros(table.num_rows, np.int32)
        first = arrow_buffers.single(table[one])
        second = NO_INTEGERS
        if two in self.columns:
            column = arrow_buffers.single(table[two])
            second = arrow_buffers.values(column, np.int64)
            if column.null_count:
                second = np.where(arrow_buffers.validity(column), second, 0)
        missing = 1 - arrow_buffers.validity(first) if first.null_count else NO_BYTES
        return self.codes(arrow_buffers.values(first, np.int64), second, missing)

    def codes(self, first: Integers, second: Integers = NO_INTEGERS, missing: Bytes = NO_BYTES) -> Codes:
        """Return the codes of pairs or of single integers; where ``missing`` is set, that of the NULL key."""
        codes = np.empty(len(first), np.int32)
        inputs = frozen(first), frozen(second), frozen(missing)
        done = 0
        while True:
            size = len(self)
            room = len(self._slots) // 2 + 1
            firsts, seconds = self.first.reserve(room), self.second.reserve(room)
            done, size, self.absent = _find_or_add(
                *inputs, done, self._slots, firsts, seconds, size, self.absent, codes
            )
            self.first.size = self.second.size = size
            if done == len(first):
                return codes
            self._slots = np.full(4 * len(self._slots), -1, np.int32)
            _fill_slots(self._slots, firsts, seconds, size, self.absent)

    def ranks(self, codes: Codes) -> Integers:
        """Return the ranks of keys (NULL first), which do not depend on the order of arrival."""
        is_used = np.zeros(len(self), np.bool_)
        is_used[codes] = True
        used = np.flatnonzero(is_used)
        is_value = (used != self.absent).astype(np.int64)
        order = ordering(is_value, self.first.view[used], self.second.view[used])
        ranks = np.empty(len(self), np.int64)
        ranks[used if order is None else used[order]] = np.arange(len(used))
        return ranks[codes]

    def table(self, codes: Array) -> dict[str, pa.Array]:
        """Return the key columns that belong to codes."""
        columns = {}
        if self.columns:
            valid = None if self.absent < 0 else codes != self.absent
            columns[self.columns[0]] = arrow_buffers.build(pa.int64(), self.first.view[codes], valid)
        if len(self.columns) > 1:
            columns[self.columns[1]] = arrow_buffers.build(pa.int64(), self.second.view[codes])
        return columns


def first_rows(codes: Codes) -> Integers:
    """Return the index of the first row of each code; codes are numbered in order of first occurrence."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))


@njit(cache=True)
def _slot(first: int, second: int, mask: int) -> int:
    """Return the first slot to probe: odd multipliers spread runs of integers, the shift mixes all bits."""
    mixed = first * -7046029254386353131 + second * -4417276706812531889
    mixed ^= mixed >> 32
    return mixed & mask


@njit(cache=True)
def _find_or_add(
    first: Integers,
    second: Integers,
    missing: Bytes,
    start: int,
    slots: Codes,
    firsts: Integers,
    seconds: Integers,
    size: int,
    absent: int,
    codes: Codes,
) -> tuple[int, int, int]:
    """Look up or add keys until the table is half full; return the next row, the size and NULL's code."""
    mask = len(slots) - 1
    room = len(slots) // 2
    pairs = len(second) > 0
    nulls = len(missing) > 0
    for i in range(start, len(first)):
        if size >= room:
            return i, size, absent
        if nulls and missing[i]:
            if absent < 0:
                absent = size
                firsts[size] = 0
                seconds[size] = 0
                size += 1
            codes[i] = absent
            continue
        one = first[i]
        two = second[i] if pairs else 0
        slot = _slot(one, two, mask)
        while True:
            code = slots[slot]
            if code < 0:
                slots[slot] = size
                firsts[size] = one
                seconds[size] = two
                codes[i] = size
                size += 1
                break
            if firsts[code] == one and seconds[code] == two:
                codes[i] = code
                break
            slot = (slot + 1) & mask
    return len(first), size, absent


@njit(cache=True)
def _fill_slots(slots: Codes, firsts: Integers, seconds: Integers, size: int, absent: int) -> None:
    mask = len(slots) - 1
    for code in range(size):
        if code == absent:
            continue
        slot = _slot(firsts[code], seconds[code], mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = code
