"""Windows that slide by tuples: every n-th tuple of a partition ends a window, at its own value.

The window at value w has the tuples in (w-range, w], all tuples of the value w included, whichever of them
ended it. So it is complete when the watermark is beyond w; equal values are one window.

Tuples come in any order, as in figure 6 of the Window-ID paper. A pane is a bin of the paper: all tuples of a
key with one value, which enter at that value (S) and leave at range after it (E). The number of tuples of
each value tells which values end windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.column_names import ENDS
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Codes, Integers
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.partition_state import Partitions
from millstream.kernels.core.time_order import LEAST, MOST, as_order, from_order, later, order_of
from millstream.kernels.core.tuple_batch import is_held
from millstream.kernels.window_specs import TupleSlideWindows
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.value_counts import ValueCounts
from millstream.kernels.windows.window_assigner import (
    Assignment,
    PartitionedAssigner,
    WindowEdges,
)


class TupleSlideAssigner(PartitionedAssigner):
    """An assigner of panes that wait with their values; points of visits are the values of windows.

    Visits have numbers only while they are made: in each partition from 0.
    """

    def __init__(self, spec: TupleSlideWindows) -> None:
        super().__init__(Partitions(spec.per, {"count": 0}))
        self._spec = spec
        self._bins = ValueCounts(self._parts)
        """Counts of the tuples that count: all, or those that end a window."""

        self._frontier = LEAST
        self._offsets = self._points = NO_INTEGERS

    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        self._is_float = tuples.time.dtype == np.float64
        order = as_order(tuples.time)
        parts = self._parts.codes(tuples.columns)
        held = is_held(tuples)
        inside: Array = np.ones(len(order), np.bool_) if held is None else ~held
        counts = inside
        if not self._spec.by_rank:
            ends = tuples.columns[ENDS].combine_chunks().to_numpy(zero_copy_only=False)
            counts = inside & np.asarray(ends, np.bool_)
        if counts.all():
            self._bins.add(order, parts)
        else:
            self._bins.add(order[counts], parts[counts])
        return Assignment(order, later(order, self._is_float, self._spec.range), inside)

    def due(self, frontier: Frontier) -> DueWindows:
        time = MOST if frontier.is_end else order_of(frontier.time, self._is_float)
        self._frontier = max(self._frontier, time)
        parts, self._points = self._ends(*self._bins.take(None if frontier.is_end else time))
        visits = np.bincount(parts, minlength=max(len(self._parts), 1))
        self._offsets = np.cumsum(visits) - visits
        done = np.full(len(visits), -1)
        listed = self._offsets, self._points
        return DueWindows(done, visits - 1, *listed, enters_at_points=True, horizon=self._frontier)

    def _ends(self, parts: Codes, values: Integers, counts: Integers) -> tuple[Codes, Integers]:
        """Select the bins with an n-th tuple, of bins before which no tuple can come any more."""
        if not self._spec.by_rank or self._spec.every == 1:
            return parts, values
        heads = np.flatnonzero(np.diff(parts, prepend=-1))
        sizes = np.diff(heads, append=len(parts))
        counted = self._parts["count"]
        up_to = np.cumsum(counts)
        up_to += np.repeat(counted[parts[heads]] - (up_to - counts)[heads], sizes)
        counted[parts] = up_to  # the last of a partition stays
        self._parts.note(parts[heads])
        ends = up_to // self._spec.every > (up_to - counts) // self._spec.every
        return parts[ends], values[ends]

    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        ends = from_order(self._points[self._offsets[partitions] + visits], self._is_float)
        starts: Array = ends - self._spec.range
        if not self._is_float:
            starts = np.where(ends < LEAST + int(self._spec.range), LEAST, starts)
        return WindowEdges(starts, ends, ends, ends)

    def finish(self) -> None:
        self._offsets = self._points = NO_INTEGERS

    def first_open(self, partitions: Codes) -> Integers:
        return np.full(len(partitions), LEAST)

    def is_alive(self, untils: Integers, partitions: Codes) -> Array:
        alive: Array = untils >= self._frontier
        return alive

    def horizon(self) -> int:
        return self._frontier

    @property
    def rows(self) -> int:
        return len(self._bins)

    def snapshot(self) -> Change:
        parts, bins = super().snapshot(), self._bins.snapshot(self._frontier)
        meta = {**parts.meta, **bins.meta, "frontier": self._frontier}
        return Change({**parts.added, **bins.added}, (*parts.dropped, *bins.dropped), meta)

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        super().restore(meta, chunks)
        self._frontier = int(meta.get("frontier", LEAST))
        self._bins.restore(meta, chunks, self._frontier)
