"""Row windows: tuples are counted, in the whole stream or in each partition.

In stream order they are counted when they are final, so they must come in order; in order of arrival they are
counted as they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.partition_state import WHOLE, Columns, Partitions
from millstream.kernels.core.time_order import LEAST, MOST, as_order, from_order, order_of
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.slide_arithmetic import SlideArithmetic
from millstream.kernels.windows.window_assigner import Assignment, WindowAssigner, WindowEdges


@dataclass(frozen=True)
class RowWindows:
    """Window w has the tuples from (w+1)*slide-range, counted from 0, to (w+1)*slide."""

    range: int
    slide: int
    emit: int | None = None
    per: Columns = WHOLE

    def __call__(self) -> WindowAssigner:
        return _RowAssigner(self)


class _RowAssigner(WindowAssigner):
    """Visits are as those of sliding windows, on the axis of counts; each partition has its own."""

    def __init__(self, spec: RowWindows) -> None:
        self._emits = spec.emit is not None
        self._ticks = SlideArithmetic(spec.range, spec.slide, 0, spec.emit)
        self._counts = Partitions(spec.per, {"count": 0, "done": 0, "newest": LEAST})
        self._is_float = False
        self._stamps: Integers = np.zeros(0, np.int64)
        self._offsets: Integers = np.zeros(0, np.int64)
        self._end: int | None = None

    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        self._is_float = tuples.time.dtype == np.float64
        parts = self._counts.codes(tuples.columns)
        self._counts.note(parts)
        counts, newest = self._counts["count"], self._counts["newest"]
        before = counts.copy()
        ranks, stamps = np.empty(len(parts), np.int64), np.empty(len(parts), np.int64)
        _count(frozen(parts), frozen(as_order(tuples.time)), counts, newest, ranks, stamps)
        enters, untils = self._ticks.place(ranks)
        self._list_stamps(parts, ranks, stamps, before)
        return Assignment(enters, untils, enters <= untils)

    def _list_stamps(self, parts: Codes, ranks: Integers, stamps: Integers, before: Integers) -> None:
        """When the visits of this batch are: at the tuples that make the counts."""
        made = self._reached(self._counts["count"]) - self._reached(before)
        self._offsets = np.concatenate([[0], np.cumsum(made)])
        self._stamps = np.zeros(int(self._offsets[-1]), np.int64)
        reached = self._reached(ranks + 1)
        is_visit = reached > self._reached(ranks)
        at = parts[is_visit]
        places = self._offsets[at] + reached[is_visit] - self._reached(before)[at] - 1
        self._stamps[places] = stamps[is_visit]

    def _reached(self, counts: Integers) -> Integers:
        """The last visit at which so many tuples, or fewer, had been counted."""
        visits: Integers = self._ticks.place(counts)[0] - 1
        return visits

    def due(self, frontier: Frontier) -> DueWindows:
        done, counts = self._counts["done"], self._counts["count"]
        last = self._reached(counts)
        if frontier.is_end:
            newest = LEAST if frontier.closing is None else order_of(frontier.closing, self._is_float)
            self._end = max(newest, int(self._counts["newest"].max(initial=LEAST)))
            last = np.full(len(counts), MOST - 1)
        return DueWindows(done.copy(), last if len(last) else np.zeros(1, np.int64))

    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        ends, complete = self._ticks.ends(visits)
        reached = self._reached(self._counts["count"])[partitions]
        in_time: Array = visits <= reached
        stamps = np.full(len(visits), self._end or 0, np.int64)
        offsets = self._offsets[partitions] + visits - self._counts["done"][partitions] - 1
        stamps[in_time] = self._stamps[offsets[in_time]]
        return WindowEdges(
            self._ticks.starts(ends),
            self._ticks.instants_of(ends),
            ends - 1,
            from_order(stamps, self._is_float),
            complete if self._emits else None,
            complete | in_time if self._emits and self._end is not None else None,
        )

    def finish(self) -> None:
        self._counts["done"][:] = self._reached(self._counts["count"])

    def passes(self, frontier: Frontier) -> Frontier:
        """Tuples of the frontier's own time are still to come, and may make windows complete."""
        return frontier if frontier.is_end else Frontier(frontier.time, -1)

    def partitions(self, table: pa.Table) -> Codes:
        return self._counts.codes(table)

    def partition_columns(self, partitions: Codes) -> dict[str, pa.Array]:
        return self._counts.columns(partitions)

    def first_open(self, partitions: Codes) -> Integers:
        open_: Integers = self._counts["done"][partitions] + 1
        return open_

    def snapshot(self) -> Change:
        change = self._counts.snapshot()
        return Change(change.added, change.dropped, {**change.meta, "is_float": self._is_float})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._is_float = bool(meta.get("is_float", False))
        self._counts.restore(meta, chunks)


@njit(cache=True)
def _count(
    parts: Codes, times: Integers, counts: Integers, newest: Integers, ranks: Integers, stamps: Integers
) -> None:
    """The number of each tuple in its partition, and the largest time there so far."""
    for i in range(len(parts)):
        part = parts[i]
        ranks[i] = counts[part]
        counts[part] += 1
        newest[part] = max(newest[part], times[i])
        stamps[i] = newest[part]
