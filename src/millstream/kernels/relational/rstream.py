"""RSTREAM: the whole content of a time-varying relation at every change or slide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates.value_lists import within
from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import MOST
from millstream.kernels.relational.incremental_relation import IncrementalRelation
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants


class RStream(IncrementalRelation):
    """All present rows, at every slide; without slides, at every instant at which rows enter or leave.

    Without slides all rows must be in one shard.
    """

    def __init__(
        self, lifetime: Lifetime | None, columns: Sequence[str], slides: Sequence[SlideInstants] = ()
    ) -> None:
        self._names = tuple(columns)
        super().__init__((lifetime,), slides)

    def _start_over(self) -> None:
        self._said: int | None = None
        """The last instant whose rows were emitted."""

    def _resume(self, rows: Array) -> None:
        # The rows of all complete instants were emitted before.
        self._said = self._last

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        enter, until = self._enter.view, self._until.view
        present = np.flatnonzero((self._status.view > 0) & (enter <= until))
        looks = self._looks(instants, present)
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

    def _looks(self, instants: Integers, present: Array) -> Integers:
        """Return the instants whose rows are to be emitted."""
        if not self._slides:
            return np.unique(instants)
        if not len(present):
            return np.zeros(0, np.int64)
        enter, until = self._enter.view[present], self._until.view[present]
        last = self._last
        if self._frontier.is_end:
            last = int(max(enter.max(), until[until < MOST].max(initial=enter.min())))
        first = int(enter.min()) if self._said is None else max(self._said + 1, int(enter.min()))
        self._said = last
        slides = [one.between(first, last) for one in self._slides]
        return np.unique(np.concatenate(slides))
