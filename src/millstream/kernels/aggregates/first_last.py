"""First and last values."""

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
from millstream.kernels.aggregates.two_stacks import TwoStacksLog
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Bytes, Codes, Whole, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import as_order

Position = tuple[Array, Array, Array]
"""Time, origin and number of rows; empty arrays where rows come in order anyway."""


class Edge(Accumulator):
    """The value of the first or the last tuple, or of the first or last that has one.

    Tuples that are taken as they come are compared by their position; where they come in order the position
    is left out.
    """

    parts: ClassVar = {
        "found": np.uint8,
        "value": np.int64,
        "some": np.uint8,
        "time": np.int64,
        "origin": np.int64,
        "number": np.int64,
    }

    def __init__(
        self,
        argument: str,
        type_: pa.DataType,
        *,
        last: bool,
        ignore_nulls: bool,
        in_order: bool,
        condition: str | None = None,
    ) -> None:
        super().__init__(argument)
        self.column = Column(type_, ordered=False)
        self.last = last
        self.ignore_nulls = ignore_nulls
        self.in_order = in_order
        self._condition = condition

    @property
    def name(self) -> str:
        ignoring = " ignoring nulls" if self.ignore_nulls else ""
        where = f" where {self._condition}" if self._condition else ""
        return f"{'last' if self.last else 'first'}({self.argument}{ignoring}{where})"

    @property
    def takes_all(self) -> bool:
        """Whether every tuple counts."""
        return not self.ignore_nulls and self._condition is None

    @property
    def words(self) -> int:
        return self.column.words

    def of_tuples(self, tuples: Tuples) -> Parts:
        value, some = self.column.encode(tuples.columns[self.argument])
        found = some if self.ignore_nulls else np.ones(len(some), np.uint8)
        if self._condition is not None:
            holds, known = Column(pa.bool_()).encode(tuples.columns[self._condition])
            found = found & known & holds.astype(np.uint8)
        if self.in_order:
            return found, value, some, NO_INTEGERS, NO_INTEGERS, NO_INTEGERS
        return found, value, some, as_order(tuples.time), tuples.origin.astype(np.int64), tuples.number

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        found, value, some, *position = parts
        none = np.zeros(0, np.uint8)
        return {
            **super().to_table((found, NO_INTEGERS, none, *position)),
            f"{self.name}.value": self.column.decode(value, some),
        }

    def of_table(self, table: pa.Table) -> Parts:
        value, some = self.column.encode(table[f"{self.name}.value"])
        found, _, _, *position = super().of_table(table.drop_columns(f"{self.name}.value"))
        return (found, value, some, *position)

    def zeros(self, count: int) -> Parts:
        found, value, some, *position = super().zeros(count)
        return (found, value, some, *((NO_INTEGERS,) * 3 if self.in_order else position))

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        count = len(groups) if running else 0
        value, some = np.empty(count, np.int64), np.empty(count, np.uint8)
        _fold(frozen(groups), frozen_parts(parts), self.last, into, (value, some))
        return value, some

    def trail(self, windows: int) -> AccumulatorLog:
        return _FirstLastLog(self, windows)


class _FirstLastLog(TwoStacksLog):
    """Two stacks of rows of the log, among which the first or the last is looked for."""

    def __init__(self, measure: Edge, windows: int) -> None:
        super().__init__(measure, windows, {"row": np.int32})
        self._measure = measure

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        found, value, some, time, origin, number = self.parts
        if self._measure.in_order and self._measure.takes_all:
            rows = batch.ends if self._measure.last else batch.starts
            return value[rows], some[rows]
        rows = np.empty(len(batch), np.int32)
        position = time, origin, number
        stacks = self.stacks(window, batch)
        _slide(batch.windows, batch.previous, found, position, self._measure.last, stacks, rows)
        return value[rows], some[rows] * (rows >= 0)


@njit(cache=True)
def _is_before(row: Whole, position: Position, other: Whole, others: Position) -> bool:
    """Whether a row comes before another one, of other arrays perhaps."""
    time, origin, number = position
    time2, origin2, number2 = others
    if time[row] != time2[other]:
        return bool(time[row] < time2[other])
    if origin[row] != origin2[other]:
        return bool(origin[row] < origin2[other])
    return bool(number[row] < number2[other])


@njit(cache=True)
def _fold(groups: Codes, parts: Parts, last: bool, into: Parts, out: Parts) -> None:
    found, value, some, time, origin, number = parts
    best_found, best_value, best_some, best_time, best_origin, best_number = into
    out_value, out_some = out
    position, best_position = (time, origin, number), (best_time, best_origin, best_number)
    placed = len(time) > 0
    for i in range(len(groups)):
        group = groups[i]
        if found[i]:
            better = last or not best_found[group]
            if placed and best_found[group]:
                better = last != _is_before(i, position, group, best_position)
            if better:
                best_found[group], best_value[group], best_some[group] = 1, value[i], some[i]
                if placed:
                    best_time[group], best_origin[group], best_number[group] = time[i], origin[i], number[i]
        if len(out_value):
            out_value[i], out_some[i] = best_value[group], best_some[group]


@njit(cache=True)
def _chosen(row: Whole, other: Whole, position: Position, last: bool) -> Whole:
    """The first, or the last, of two rows, either of which may be missing."""
    if row < 0 or other < 0:
        return max(row, other)
    is_before = _is_before(row, position, other, position) if len(position[0]) else row < other
    return row if is_before != last else other


@njit(cache=True)
def _slide(
    windows: Parts,
    previous: Codes,
    found: Bytes,
    position: Position,
    last: bool,
    stacks: tuple[Array, Array],
    out: Codes,
) -> None:
    """Windows one after the other, by two stacks; a stack holds rows plus one, so that 0 is none."""
    codes, starts, ends, rebuild = windows
    older, newer = stacks
    for i in range(len(codes)):
        start, end = starts[i], np.int64(ends[i])
        key = newer[codes[i]]
        row = end
        best: Whole = -1
        if start >= key.bound or (len(rebuild) and rebuild[i]):
            while True:
                best = _chosen(best, row if found[row] else -1, position, last)
                older[row].row = best + 1
                if row == start:
                    break
                row = np.int64(previous[row])
            key.bound = end + 1
            key.row = 0
        else:
            best = np.int64(key.row) - 1
            while row != key.latest:
                best = _chosen(best, row if found[row] else -1, position, last)
                row = np.int64(previous[row])
            key.row = best + 1
            best = _chosen(best, np.int64(older[start].row) - 1, position, last)
        key.latest = end
        out[i] = best
