"""RSTREAM: the whole content of a time-varying relation at every change or slide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates.value_lists import within
from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import LEAST, MOST
from millstream.kernels.relational.incremental_relation import IncrementalRelation
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants


class RStream(IncrementalRelation):
    """All present rows, at every slide; without slides, at every instant at which rows enter or leave.

    Slides are periodic, or ticks: the tuples of a second side. When the input has ended, they go on until the
    last change. So all rows must be in one shard, unless all of them leave.
    """

    def __init__(
        self, stays: Sequence[Lifetime | None], columns: Sequence[str], slides: Sequence[SlideInstants] = ()
    ) -> None:
        self._names = tuple(columns)
        self._periodic = tuple(slides)
        self._has_ticks = len(stays) > 1
        super().__init__(stays, () if self._has_ticks else slides)

    def _start_over(self) -> None:
        self._said = LEAST
        """The last instant whose rows were emitted."""

    def _resume(self, rows: Array) -> None:
        # The rows of all complete instants were emitted before.
        self._said = self._last

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        enter, until = self._enter.view, self._until.view
        is_tick = self._codes.view % len(self._stays) > 0
        present = np.flatnonzero((self._status.view > 0) & (enter <= until) & ~is_tick)
        slides = self._periodic or self._has_ticks
        looks = self._looks(present, enter[is_tick]) if slides else np.unique(instants)
        starts = np.searchsorted(looks, enter[present], "left")
        ends = np.searchsorted(looks, until[present], "right")
        counts = np.maximum(ends - starts, 0)
        at = looks[within(starts, counts)] if len(looks) else np.zeros(0, np.int64)
        found = np.repeat(present, counts)
        order = np.lexsort((found, at))
        columns = dict(zip(self._names, self._taken(self._names, found[order]), strict=True))
        if not columns:
            columns = {"__ms_one": pa.nulls(len(order), pa.bool_())}
        return self._changes(columns, at[order])

    def _looks(self, present: Array, ticks: Integers) -> Integers:
        """Return the slides at which rows are to be emitted."""
        said, self._said = self._said, self._last
        if not len(present):
            return np.zeros(0, np.int64)
        enter, until = self._enter.view[present], self._until.view[present]
        last = self._last
        if self._frontier.is_end:
            last = int(max(enter.max(), until[until < MOST - 1].max(initial=LEAST) + 1))
        first = max(said + 1, int(enter.min()))
        slides = [one.between(first, last) for one in self._periodic]
        return np.unique(np.concatenate([*slides, ticks[(ticks >= first) & (ticks <= last)]]))
