"""Aggregates that return a value of the best tuple: first, last, min_by, max_by."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.jit import compiled_methods, njit
from millstream.kernels.aggregates.accumulator import (
    AccumulatorLog,
    FixedWidthAccumulator,
    Parts,
    WindowBatch,
    frozen_parts,
)
from millstream.kernels.aggregates.min_max_bitwise import ValueOrder, value_order
from millstream.kernels.aggregates.two_stacks import TwoStacksLog
from millstream.kernels.core.buffers import NO_BYTES, NO_INTEGERS, Array, Codes, Whole, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import as_order


class BestRow(FixedWidthAccumulator):
    """A value of the tuple that is best by another column, or of the first or last tuple.

    Of tuples equal by the other column the last in time is the best, as in Spark. Only tuples with ``found``
    count: those with a value in the other column or, of first and last, those that neither IGNORE NULLS nor a
    condition excludes. Tuples that come out of order carry their position (time, origin and number), which is
    left out where they come in order; so is ``by`` where there is no other column.
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
        self,
        function: str,
        value: tuple[str, pa.DataType],
        by: tuple[str, pa.DataType] | None = None,
        *,
        ignore_nulls: bool = False,
        condition: str | None = None,
        in_order: bool,
    ) -> None:
        super().__init__(value[0])
        self.column = Column(value[1], ordered=False)
        self._function = function
        self._by = None if by is None else by[0]
        self._by_column = Column(pa.int64() if by is None else by[1])
        self._ignore_nulls = ignore_nulls
        self._condition = condition
        self._in_order = in_order

    @property
    def name(self) -> str:
        by = f", {self._by}" if self._by else ""
        ignoring = " ignoring nulls" if self._ignore_nulls else ""
        where = f" where {self._condition}" if self._condition else ""
        return f"{self._function}({self.argument}{by}{ignoring}{where})"

    @property
    def words(self) -> int:
        return max(self.column.words, self._by_column.words)

    @property
    def is_at_edge(self) -> bool:
        """Tell whether the best row of a window is its first or last row in the log."""
        takes_all = self._by is None and not self._ignore_nulls and self._condition is None
        return takes_all and self._in_order

    @property
    def prefers_last(self) -> bool:
        return self._function != "first"

    def of_tuples(self, tuples: Tuples) -> Parts:
        value, some = self.column.encode(tuples.columns[self.argument])
        by, found = NO_INTEGERS, some
        if self._by is not None:
            by, found = self._by_column.encode(tuples.columns[self._by])
        elif not self._ignore_nulls:
            found = np.ones(len(some), np.uint8)
        if self._condition is not None:
            holds, known = Column(pa.bool_()).encode(tuples.columns[self._condition])
            found = found & known & holds.astype(np.uint8)
        if self._in_order:
            return found, by, value, some, NO_INTEGERS, NO_INTEGERS, NO_INTEGERS
        return found, by, value, some, as_order(tuples.time), tuples.origin.astype(np.int64), tuples.number

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        found, by, value, some, *position = parts
        columns = {f"{self.name}.value": self.column.decode(value, some)}
        if self._by is not None:
            columns[f"{self.name}.by"] = self._by_column.decode(by, found)
            found = NO_BYTES
        return columns | super().to_table((found, NO_INTEGERS, NO_INTEGERS, NO_BYTES, *position))

    def of_table(self, table: pa.Table) -> Parts:
        value, some = self.column.encode(table[f"{self.name}.value"])
        names = [f"{self.name}.value", *([] if self._by is None else [f"{self.name}.by"])]
        found, by, _, _, *position = super().of_table(table.drop_columns(names))
        if self._by is not None:
            by, found = self._by_column.encode(table[f"{self.name}.by"])
        return (found, by, value, some, *position)

    def zeros(self, count: int) -> Parts:
        found, by, value, some, *position = super().zeros(count)
        return (
            found,
            NO_INTEGERS if self._by is None else by,
            value,
            some,
            *((NO_INTEGERS,) * 3 if self._in_order else position),
        )

    def rows(self, parts: Parts) -> Candidates:
        found, by, values, some, time, origin, number = parts
        order, largest, last = value_order(self._by_column), self._function == "max_by", self.prefers_last
        return Candidates(found, by, values, some, time, origin, number, order, largest, last)

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        """Merge rows into their groups; if ``running``, return the value of the best row after each."""
        count = len(groups) if running else 0
        out: Parts = (np.empty(count, np.int64), np.empty(count, np.uint8))
        _fold(frozen(groups), self.rows(frozen_parts(parts)), self.rows(into), out)
        return out

    def trail(self, windows: int) -> AccumulatorLog:
        return _BestRowLog(self, windows, {"row": np.int32})


class _BestRowLog(TwoStacksLog):
    """A log whose stacks hold numbers of rows."""

    accumulator: BestRow

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        candidates = self.accumulator.rows(self.parts)
        if self.accumulator.is_at_edge:
            rows = batch.ends if self.accumulator.prefers_last else batch.starts
            return candidates.values[rows], candidates.some[rows]
        rows = np.empty(len(batch), np.int32)
        self.slide(window, batch, CandidateNumbers(candidates), RowNumbers(rows))
        return candidates.values[rows], candidates.some[rows] * (rows >= 0)


# ---------------------------------------------------------------- compiled


@compiled_methods
class Candidates(NamedTuple):
    """The parts of best rows."""

    found: Array
    by: Array
    values: Array
    some: Array
    time: Array
    origin: Array
    number: Array
    order: ValueOrder
    largest: bool
    last: bool

    def is_better(self, row: Whole, others: Candidates, later: Whole) -> bool:
        """Tell whether a row is better than another, which comes later in the log."""
        if len(self.by):
            one, other = self.order.place(self.by[row]), self.order.place(others.by[later])
            if one != other:
                return bool((one > other) == self.largest)
        if len(self.time) == 0:
            return not self.last
        if self.time[row] != others.time[later]:
            return bool((self.time[row] > others.time[later]) == self.last)
        if self.origin[row] != others.origin[later]:
            return bool((self.origin[row] > others.origin[later]) == self.last)
        return bool((self.number[row] > others.number[later]) == self.last)

    def replace(self, row: Whole, others: Candidates, other: Whole) -> None:
        """Copy another row to a row."""
        self.found[row], self.values[row], self.some[row] = 1, others.values[other], others.some[other]
        if len(self.by):
            self.by[row] = others.by[other]
        if len(self.time):
            self.time[row], self.origin[row] = others.time[other], others.origin[other]
            self.number[row] = others.number[other]


@compiled_methods
class CandidateNumbers(NamedTuple):
    """Candidates by their number in the log, from 1; 0 is none."""

    rows: Candidates

    def value(self, row: Whole) -> Whole:
        return np.int64(row) + 1 if self.rows.found[row] else 0

    def load(self, record: Any) -> Whole:
        return np.int64(record.row)

    def store(self, record: Any, value: Whole) -> None:
        record.row = value

    def merge(self, value: Whole, later: Whole) -> Whole:
        if value == 0 or later == 0:
            return max(value, later)
        return value if self.rows.is_better(value - 1, self.rows, later - 1) else later


@compiled_methods
class RowNumbers(NamedTuple):
    """Numbers of rows, from 0; -1 is none."""

    rows: Codes

    def put(self, row: Whole, value: Whole) -> None:
        self.rows[row] = value - 1


@njit(cache=True, allocates=False)
def _fold(groups: Codes, rows: Candidates, into: Candidates, out: Parts) -> None:
    """Replace the best rows of groups; merged values, as elsewhere, would copy rows that stay the best."""
    values, some = out
    for i in range(len(groups)):
        group = groups[i]
        if rows.found[i] and not (into.found[group] and into.is_better(group, rows, i)):
            into.replace(group, rows, i)
        if len(values):
            values[i], some[i] = into.values[group], into.some[group]
