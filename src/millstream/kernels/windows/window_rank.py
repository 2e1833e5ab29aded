"""WindowRank: rows of one report in an order of their own, with ranking functions and the first rows kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from millstream.kernels.core.kernel import LAST, Change, Frontier, Integers, Tuples
from millstream.kernels.core.order_codes import order_codes
from millstream.kernels.core.reorder import Reorder, Run
from millstream.kernels.core.state_chunks import Mark
from millstream.kernels.core.time_order import as_order, order_of
from millstream.kernels.specs import OrderColumn, WindowRankSpec
from millstream.kernels.windows.rank_functions import SortedRows, ranks

_LAST_ORIGIN = 2**31 - 1


class WindowRank(Reorder):
    """A buffer that holds the rows of an instant until all are there, and ranks the rows of each report.

    Rows of a report have the same time and the same values of ``report``. The rows come out in the order of
    their reports and of ``order``; of each report, those from ``offset`` on, and at most ``limit``.
    """

    def __init__(self, spec: WindowRankSpec) -> None:
        super().__init__()
        self._spec = spec
        self._given = 0
        """Number of rows that have come out."""

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        final = super().process(tuples, frontier)
        columns, spec = final.columns, self._spec
        report = [as_order(final.time), *self._codes(columns, map(OrderColumn, spec.report))]
        for call in spec.calls:
            partition = [*report, *self._codes(columns, map(OrderColumn, call.partition))]
            order = self._codes(columns, call.order)
            result = ranks(call, SortedRows.of(partition, order, len(final)), final.columns)
            columns = columns.append_column(call.result, result)
        rows = SortedRows.of(report, self._codes(columns, spec.order), len(final))
        place = rows.place - rows.start
        last = LAST if spec.limit is None else spec.offset + spec.limit
        kept = rows.rows[(place >= spec.offset) & (place < last)]
        numbers = np.arange(self._given, self._given + len(kept))
        self._given += len(kept)
        shown = Tuples(columns.select(spec.output), final.time, final.origin, final.number).take(kept)
        return replace(shown, origin=np.zeros(len(kept), np.int32), number=numbers)

    def passes(self, frontier: Frontier) -> Frontier:
        if frontier.is_end or frontier.time == -np.inf:
            return frontier
        return Frontier(frontier.time, LAST if frontier.origin >= _LAST_ORIGIN else -1)

    def _final(self, run: Run) -> int:
        """Return the end of the complete instants of a run."""
        frontier = self._frontier
        if frontier.is_end:
            return len(run.tuples)
        time = order_of(frontier.time, self._is_float)
        side: Literal["left", "right"] = "right" if frontier.origin >= _LAST_ORIGIN else "left"
        return max(int(np.searchsorted(run.order, time, side)), run.start)

    def _mark(self) -> Mark:
        frontier = self._frontier
        if frontier.is_end:
            return (2**64, 0)
        passed = 2**32 if frontier.origin >= _LAST_ORIGIN else 0
        return (order_of(frontier.time, self._is_float), passed)

    def _codes(self, columns: pa.Table, keys: Iterable[OrderColumn]) -> list[Integers]:
        return [
            order_codes(columns[key.name], descending=key.descending, nulls_first=key.nulls_first)
            for key in keys
        ]

    def snapshot(self) -> Change:
        change = super().snapshot()
        return replace(change, meta={**change.meta, "given": self._given})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        super().restore(meta, chunks)
        self._given = meta["given"]
