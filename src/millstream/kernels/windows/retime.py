"""Retimed: tuples of another stage along one of their attributes, about which nothing is promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.column_names import PLACED
from millstream.kernels.core.kernel import BEGINNING, END, Change, Frontier, Kernel, Tuples
from millstream.kernels.windows.time_codec import has_value, instants


class Retimed(Kernel):
    """Tuples in stream order with the times of another column.

    Tuples with equal times stay in order. The watermark is about the timestamp, so later kernels get only the
    end. Tuples without a time are in no window, and pass only where windows count all tuples.
    """

    def __init__(self, column: str) -> None:
        self._column = column
        self._count = 0
        self._newest: int | float | None = None

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        values = tuples.columns[self._column].combine_chunks()
        placed = np.asarray(has_value(values).to_numpy(zero_copy_only=False), np.bool_)
        time = instants(values)
        if placed.any():
            latest = time[placed].max().item()
            self._newest = latest if self._newest is None else max(self._newest, latest)
        numbers = np.arange(self._count, self._count + len(time))
        self._count += len(time)
        retimed = Tuples(tuples.columns, time, np.zeros(len(time), np.int32), numbers)
        return retimed if PLACED in tuples.columns.column_names or placed.all() else retimed.take(placed)

    def passes(self, frontier: Frontier) -> Frontier:
        return Frontier(END.time, END.origin, self._newest) if frontier.is_end else BEGINNING

    def snapshot(self) -> Change:
        return Change(meta={"count": self._count, "newest": self._newest})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._count = int(meta.get("count", 0))
        self._newest = meta.get("newest")

    @property
    def rows(self) -> int:
        return 0
