"""min_by and max_by: a value of the tuple that has the smallest or the largest of another."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import (
    Accumulator,
    AccumulatorLog,
    Parts,
    WindowBatch,
    frozen_parts,
)
from millstream.kernels.aggregates.min_max import Comparing, comparing
from millstream.kernels.aggregates.two_stacks import TwoStacksLog
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Codes, Integers, Whole, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import as_order

_AS_INTEGERS, _AS_DOUBLES = 0, 1  # as in extremes.py, on whose names compiled code cannot rely
_MOST = 0x7FFF_FFFF_FFFF_FFFF


class Chosen(Accumulator):
    """The value of the tuple that is first by another column; of equal ones, the last in time, as in Spark.

    A tuple without the other value does not count; one without the value does. Tuples that are taken as they
    come carry their position; where they come in order the position is left out.
    """

    parts: ClassVar = {
        "found": np.uint8,
        "by": np.int64,
        "value": np.int64,
        "some": np.uint8,
        "time": np.int64,
        "origin": np.int64,
        "number": np.int64,
    }

    def __init__(
        self, value: tuple[str, pa.DataType], by: tuple[str, pa.DataType], *, largest: bool, in_order: bool
    ) -> None:
        super().__init__(value[0])
        self.column = Column(value[1], ordered=False)
        self._by, self._by_column = by[0], Column(by[1])
        self.largest = largest
        self.in_order = in_order

    @property
    def name(self) -> str:
        return f"{'max' if self.largest else 'min'}_by({self.argument}, {self._by})"

    @property
    def words(self) -> int:
        return max(self.column.words, self._by_column.words)

    def of_tuples(self, tuples: Tuples) -> Parts:
        value, some = self.column.encode(tuples.columns[self.argument])
        by, found = self._by_column.encode(tuples.columns[self._by])
        if self.in_order:
            return found, by, value, some, NO_INTEGERS, NO_INTEGERS, NO_INTEGERS
        return found, by, value, some, as_order(tuples.time), tuples.origin.astype(np.int64), tuples.number

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        found, by, value, some, *position = parts
        none = np.zeros(0, np.uint8)
        return {
            **super().to_table((none, NO_INTEGERS, NO_INTEGERS, none, *position)),
            f"{self.name}.by": self._by_column.decode(by, found),
            f"{self.name}.value": self.column.decode(value, some),
        }

    def of_table(self, table: pa.Table) -> Parts:
        by, found = self._by_column.encode(table[f"{self.name}.by"])
        value, some = self.column.encode(table[f"{self.name}.value"])
        rest = table.drop_columns([f"{self.name}.by", f"{self.name}.value"])
        return (found, by, value, some, *super().of_table(rest)[4:])

    def zeros(self, count: int) -> Parts:
        found, by, value, some, *position = super().zeros(count)
        return (found, by, value, some, *((NO_INTEGERS,) * 3 if self.in_order else position))

    def comparing(self) -> Comparing:
        return comparing(self._by_column, largest=self.largest)

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        count = len(groups) if running else 0
        value, some = np.empty(count, np.int64), np.empty(count, np.uint8)
        _fold(frozen(groups), frozen_parts(parts), self.comparing(), into, (value, some))
        return value, some

    def trail(self, windows: int) -> AccumulatorLog:
        return _MinMaxByLog(self, windows)


class _MinMaxByLog(TwoStacksLog):
    """Two stacks of rows of the log, among which the best is looked for."""

    def __init__(self, measure: Chosen, windows: int) -> None:
        super().__init__(measure, windows, {"row": np.int32})
        self._measure = measure

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        _, _, value, some, *_ = self.parts
        rows = np.empty(len(batch), np.int32)
        stacks = self.stacks(window, batch)
        _slide(batch.windows, batch.previous, self.parts, self._measure.comparing(), stacks, rows)
        return value[rows], some[rows] * (rows >= 0)


@njit(cache=True)
def _place(value: Whole, comparison: int, labels: Integers) -> Whole:
    """Where a value is in the order of its type."""
    if comparison == _AS_INTEGERS:
        return value
    if comparison == _AS_DOUBLES:
        place = value ^ ((value >> 63) & _MOST)
        return 0 if place == -1 else place
    label: np.int64 = labels[value]
    return label


@njit(cache=True)
def _is_better(parts: Parts, row: Whole, others: Parts, other: Whole, comparing: Comparing) -> bool:
    """Whether a row is preferred to another that is later in the log; both are found."""
    comparison, labels, largest = comparing
    one = _place(parts[1][row], comparison, labels)
    two = _place(others[1][other], comparison, labels)
    if one != two:
        return bool(one > two if largest else one < two)
    if len(parts[4]) == 0:
        return False
    if parts[4][row] != others[4][other]:
        return bool(parts[4][row] > others[4][other])
    if parts[5][row] != others[5][other]:
        return bool(parts[5][row] > others[5][other])
    return bool(parts[6][row] > others[6][other])


@njit(cache=True)
def _fold(groups: Codes, parts: Parts, comparing: Comparing, into: Parts, out: Parts) -> None:
    found, by, value, some, time, origin, number = parts
    best_found, best_by, best_value, best_some, best_time, best_origin, best_number = into
    out_value, out_some = out
    for i in range(len(groups)):
        group = groups[i]
        if found[i] and not (best_found[group] and _is_better(into, group, parts, i, comparing)):
            best_found[group], best_by[group] = 1, by[i]
            best_value[group], best_some[group] = value[i], some[i]
            if len(time):
                best_time[group], best_origin[group], best_number[group] = time[i], origin[i], number[i]
        if len(out_value):
            out_value[i], out_some[i] = best_value[group], best_some[group]


@njit(cache=True)
def _first_of(parts: Parts, row: Whole, later: Whole, comparing: Comparing) -> Whole:
    """The better of two rows, either of which may be missing."""
    if row < 0 or later < 0:
        return max(row, later)
    return row if _is_better(parts, row, parts, later, comparing) else later


@njit(cache=True)
def _slide(
    windows: Parts,
    previous: Codes,
    parts: Parts,
    comparing: Comparing,
    stacks: tuple[Array, Array],
    out: Codes,
) -> None:
    """Windows one after the other, by two stacks; a stack holds rows plus one, so that 0 is none."""
    codes, starts, ends, rebuild = windows
    older, newer = stacks
    found = parts[0]
    for i in range(len(codes)):
        start, end = starts[i], np.int64(ends[i])
        key = newer[codes[i]]
        row = end
        best: Whole = -1
        if start >= key.bound or (len(rebuild) and rebuild[i]):
            while True:
                best = _first_of(parts, row if found[row] else -1, best, comparing)
                older[row].row = best + 1
                if row == start:
                    break
                row = np.int64(previous[row])
            key.bound = end + 1
            key.row = 0
        else:
            while row != key.latest:
                best = _first_of(parts, row if found[row] else -1, best, comparing)
                row = np.int64(previous[row])
            best = _first_of(parts, np.int64(key.row) - 1, best, comparing)
            key.row = best + 1
            best = _first_of(parts, np.int64(older[start].row) - 1, best, comparing)
        key.latest = end
        out[i] = best
