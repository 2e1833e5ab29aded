"""Prefix sums, for accumulators that can be subtracted exactly.

Each row of the log stores the sum of the rows of its key before it, so the aggregate of a window is one
difference.
"""

from __future__ import annotations

from typing import Any, Protocol

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import (
    AccumulatorLog,
    FixedWidthAccumulator,
    PartRows,
    Parts,
    WindowBatch,
)
from millstream.kernels.core.buffers import Buffer, Codes


class GroupRows(PartRows, Protocol):
    """Rows whose values can be subtracted."""

    def subtract(self, value: Any, earlier: Any) -> Any:
        """Return a value without an earlier one that is part of it."""


class PrefixSumLog(AccumulatorLog):
    """A log with the prefix sums of each key."""

    def __init__(self, accumulator: FixedWidthAccumulator) -> None:
        super().__init__(accumulator)
        self.accumulator = accumulator
        self._before = tuple(Buffer(dtype) for dtype in accumulator.parts.values())

    def append(self, parts: Parts, previous: Codes) -> None:
        first = len(self._before[0])
        super().append(parts, previous)
        count = len(self.parts[0])
        before = tuple(buffer.resize(count) for buffer in self._before)
        rows = self.accumulator.rows
        _add_up(previous[:count], rows(self.parts), rows(before), first)

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        out = self.accumulator.zeros(len(batch))
        before = tuple(buffer.view for buffer in self._before)
        rows = self.accumulator.rows
        _subtract(batch.windows, rows(self.parts), rows(before), rows(out))
        return out


@njit(cache=True, allocates=False)
def _add_up(previous: Codes, rows: GroupRows, before: GroupRows, first: int) -> None:
    for row in range(first, len(previous)):
        last = previous[row]
        value = rows.value(max(last, 0))
        if last >= 0:
            before.put(row, rows.merge(before.value(last), value))
        else:
            before.put(row, rows.subtract(value, value))


@njit(cache=True, allocates=False)
def _subtract(windows: Parts, rows: GroupRows, before: GroupRows, out: GroupRows) -> None:
    _, starts, ends, _ = windows
    for i in range(len(starts)):
        end = ends[i]
        total = rows.merge(before.value(end), rows.value(end))
        out.put(i, rows.subtract(total, before.value(starts[i])))
