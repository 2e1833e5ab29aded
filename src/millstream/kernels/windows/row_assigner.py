"""Row windows: tuples are counted, in the whole stream or in each partition.

In stream order tuples are counted when they are final, so they must come in order; in order of arrival they
are counted as they come.
"""

from __future__ import annotations

import numpy as np

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen
from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.core.partition_state import Partitions
from millstream.kernels.core.time_order import LEAST, MOST, as_order, from_order, order_of
from millstream.kernels.window_specs import RowWindows
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.slide_arithmetic import SlideArithmetic
from millstream.kernels.windows.window_assigner import (
    Assignment,
    PartitionedAssigner,
    WindowEdges,
)


class RowAssigner(PartitionedAssigner):
    """An assigner with the visits of sliding windows, on the axis of counts of each partition."""

    def __init__(self, spec: RowWindows) -> None:
        super().__init__(Partitions(spec.per, {"count": 0, "done": 0, "newest": LEAST}))
        self._emits = spec.emit is not None
        self._by_arrival = spec.by_arrival
        self._ticks = SlideArithmetic(spec.range, spec.slide, 0, spec.emit)
        self._stamps: Integers = np.zeros(0, np.int64)
        self._offsets: Integers = np.zeros(0, np.int64)
        self._end: int | None = None

    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        self._is_float = tuples.time.dtype == np.float64
        parts = self._parts.codes(tuples.columns)
        self._parts.note(parts)
        counts, newest = self._parts["count"], self._parts["newest"]
        before = counts.copy()
        ranks, stamps = np.empty(len(parts), np.int64), np.empty(len(parts), np.int64)
        _count(frozen(parts), frozen(as_order(tuples.time)), counts, newest, ranks, stamps)
        enters, untils = self._ticks.place(ranks)
        self._list_stamps(parts, ranks, stamps, before)
        return Assignment(enters, untils, enters <= untils)

    def _list_stamps(self, parts: Codes, ranks: Integers, stamps: Integers, before: Integers) -> None:
        """List the times of the visits of this batch: those of the tuples that complete the counts."""
        made = self._reached(self._parts["count"]) - self._reached(before)
        self._offsets = np.concatenate([[0], np.cumsum(made)])
        self._stamps = np.zeros(int(self._offsets[-1]), np.int64)
        reached = self._reached(ranks + 1)
        is_visit = reached > self._reached(ranks)
        at = parts[is_visit]
        places = self._offsets[at] + reached[is_visit] - self._reached(before)[at] - 1
        self._stamps[places] = stamps[is_visit]

    def _reached(self, counts: Integers) -> Integers:
        """Return the last visit at which so many tuples, or fewer, had been counted."""
        visits: Integers = self._ticks.place(counts)[0] - 1
        return visits

    def due(self, frontier: Frontier) -> DueWindows:
        done, counts = self._parts["done"], self._parts["count"]
        last = self._reached(counts)
        if frontier.is_end:
            newest = LEAST if frontier.closing is None else order_of(frontier.closing, self._is_float)
            self._end = max(newest, int(self._parts["newest"].max(initial=LEAST)))
            last = np.full(len(counts), MOST - 1) if self._by_arrival else self._ticks.next_end(counts)
        return DueWindows(done.copy(), last if len(last) else np.zeros(1, np.int64))

    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        ends, complete = self._ticks.ends(visits)
        reached = self._reached(self._parts["count"])[partitions]
        in_time: Array = visits <= reached
        stamps = np.full(len(visits), self._end or 0, np.int64)
        offsets = self._offsets[partitions] + visits - self._parts["done"][partitions] - 1
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
        self._parts["done"][:] = self._reached(self._parts["count"])

    def first_open(self, partitions: Codes) -> Integers:
        open_: Integers = self._parts["done"][partitions] + 1
        return open_


@njit(cache=True)
def _count(
    parts: Codes, times: Integers, counts: Integers, newest: Integers, ranks: Integers, stamps: Integers
) -> None:
    """Number tuples in their partitions, and note the largest time there so far."""
    for i in range(len(parts)):
        part = parts[i]
        ranks[i] = counts[part]
        counts[part] += 1
        newest[part] = max(newest[part], times[i])
        stamps[i] = newest[part]
