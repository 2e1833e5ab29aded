"""Sliding windows of sub-streams with watermarks of their own.

Windows are the same for all sub-streams, but are visited when the watermark of the group's sub-stream is
beyond their end, which may be long before all others are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.column_names import Columns
from millstream.kernels.core.buffers import Codes, Integers
from millstream.kernels.core.kernel import STREAM, Change, Frontier, Tuples
from millstream.kernels.core.partition_state import Partitions
from millstream.kernels.core.time_order import LEAST, MOST
from millstream.kernels.window_specs import SubstreamWindows
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.sliding_assigner import slide_arithmetic
from millstream.kernels.windows.window_assigner import Assignment, WindowAssigner, WindowEdges

BY_STREAM: Columns = (STREAM, "")


class SubstreamAssigner(WindowAssigner):
    """An assigner whose partitions are sub-streams; each has the visits that have been made for it."""

    def __init__(self, spec: SubstreamWindows) -> None:
        self._ticks = slide_arithmetic(spec.sliding)
        self._parts = Partitions(BY_STREAM, {"done": LEAST})
        self._all = LEAST
        """Last visit that the watermark of the whole stream has reached."""

        self._last: Integers = np.zeros(0, np.int64)

    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        self._parts.codes(tuples.columns)
        enters, untils = self._ticks.place(tuples.time)  # type: ignore[arg-type]
        return Assignment(enters, untils, enters <= untils)

    def due(self, frontier: Frontier) -> DueWindows:
        done = self._parts["done"]
        self._last = done.copy()
        if frontier.is_end:
            self._last[:] = self._all = MOST - 1
        else:
            if frontier.time > -np.inf:
                self._all = max(min(self._ticks.reached(frontier.time), MOST - 1), self._all)
            np.maximum(self._last, self._all, out=self._last)
            if frontier.own is not None and len(done):
                numbers = np.asarray(self._parts.table(np.arange(len(done), dtype=np.int32))[STREAM])
                reached = self._ticks.first_after(frontier.own[numbers]) - 1
                np.maximum(self._last, np.minimum(reached, MOST - 1), out=self._last)
        if not len(done):
            return DueWindows(np.full(1, self._all), np.full(1, self._all))
        return DueWindows(done.copy(), self._last)

    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        ends, _ = self._ticks.ends(visits)
        instants = self._ticks.instants_of(ends)
        return WindowEdges(self._ticks.starts(ends), instants, ends - 1 - self._ticks.shift, instants)

    def finish(self) -> None:
        done = self._parts["done"]
        changed = np.flatnonzero(done != self._last).astype(np.int32)
        done[changed] = self._last[changed]
        self._parts.note(changed)

    def first_open(self, partitions: Codes) -> Integers:
        open_: Integers = np.maximum(self._parts["done"], self._all)[partitions] + 1
        return open_

    def horizon(self) -> int:
        return self._all + 1

    def partitions(self, table: pa.Table) -> Codes:
        return self._parts.codes(table)

    def partition_columns(self, partitions: Codes) -> dict[str, pa.Array]:
        return self._parts.table(partitions)

    def snapshot(self) -> Change:
        change = self._parts.snapshot()
        return Change(change.added, change.dropped, {**change.meta, "all": self._all})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._all = int(meta.get("all", LEAST))
        self._parts.restore(meta, chunks)
