"""Two stacks, for accumulators that can be merged but not subtracted.

The rows of a window are an older part and the rows after it. Each row of the older part stores the aggregate
from that row to the end of the part; of the newer rows only the aggregate of all is stored. The aggregate of
a window is one merge of the two. When the older part has expired, the rows that are left become the older
part: each row is moved once, so the cost is constant, and an expired row leaves no rounding error behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import (
    AccumulatorLog,
    FixedWidthAccumulator,
    PartRows,
    Parts,
    WindowBatch,
)
from millstream.kernels.core.buffers import Array, Buffer, Codes


class StackRows(PartRows, Protocol):
    """Rows whose values can be stored in the records of the stacks."""

    def load(self, record: Any) -> Any:
        """Return the value in a record."""

    def store(self, record: Any, value: Any) -> None:
        """Write a value to a record."""


class TwoStacksLog(AccumulatorLog):
    """A log with two stacks for each key and window; ``kept`` names the fields of a value.

    Fields lie together in records, since all of them are read at the same time. ``older`` has a record for
    each row of the log; ``newer`` has one for each key, with the ``bound`` before which rows belong to the
    older part, and the ``latest`` row in the stacks.
    """

    def __init__(
        self, accumulator: FixedWidthAccumulator, windows: int, kept: Mapping[str, type] | None = None
    ) -> None:
        super().__init__(accumulator)
        self.accumulator = accumulator
        fields = [*(accumulator.parts if kept is None else kept).items()]
        older = np.dtype(fields, align=True)
        newer = np.dtype([("bound", np.int64), *fields, ("latest", np.int32)], align=True)
        self._stacks = [(Buffer(older), Buffer(newer, 0)) for _ in range(windows)]

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        out = self.accumulator.zeros(len(batch))
        self.slide(window, batch, self.accumulator.rows(self.parts), self.accumulator.rows(out))
        return out

    def slide(self, window: int, batch: WindowBatch, rows: Any, out: Any) -> None:
        """Write the aggregates of windows to ``out``."""
        older, newer = self._stacks[window]
        stacks = older.resize(len(batch.previous)), newer.resize(batch.keys)
        _slide(batch.windows, batch.previous, rows, stacks, out)


@njit(cache=True, allocates=False)
def _slide(
    windows: Parts, previous: Codes, rows: StackRows, stacks: tuple[Array, Array], out: PartRows
) -> None:
    codes, starts, ends, rebuild = windows
    older, newer = stacks
    for i in range(len(codes)):
        start, end = starts[i], ends[i]
        key = newer[codes[i]]
        row = end
        if start >= key.bound or (len(rebuild) and rebuild[i]):
            # The older part has expired: the rows of the window become the older part, the last one first.
            total = rows.value(row)
            rows.store(older[row], total)
            while row != start:
                row = previous[row]
                total = rows.merge(rows.value(row), total)
                rows.store(older[row], total)
            key.bound = end + 1
        elif end < key.bound:
            total = rows.load(older[start])
        else:
            if row == key.latest:
                total = rows.load(key)
            else:
                total = rows.value(row)
                row = previous[row]
                while row != key.latest:
                    total = rows.merge(rows.value(row), total)
                    row = previous[row]
                if row >= key.bound:
                    total = rows.merge(rows.load(key), total)
                rows.store(key, total)
            total = rows.merge(rows.load(older[start]), total)
        key.latest = end
        out.put(i, total)
