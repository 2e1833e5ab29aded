"""Reorder: tuples in order of arrival come out in timestamp order once the frontier has passed them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from millstream.kernels.core.kernel import BEGINNING, Change, Frontier, Integers, Kernel, Tuples
from millstream.kernels.core.radix_sort import ordering
from millstream.kernels.core.state_chunks import Ledger, Mark
from millstream.kernels.core.time_order import as_order, order_of
from millstream.kernels.core.tuple_batch import (
    as_table,
    cut,
    from_table,
    frontier_as_data,
    frontier_from_data,
    is_held,
    joined,
)


class Reorder(Kernel):
    """A buffer that holds tuples until the frontier passes them, and releases them by (time, origin, number).

    Held tuples are sorted runs, of which only the first part is looked at: work on a batch does not depend on
    the size of the buffer. Late tuples of generous streams are of no use to operators that need order, and
    are dropped. A chunk of state has the tuples that came between two snapshots and were still held at the
    second; the frontier tells which of them have been released since.
    """

    side: Literal["left", "right"] = "right"
    """Left if tuples of the frontier's own time and origin must wait, because others may come before them."""

    def __init__(self) -> None:
        self._frontier = BEGINNING
        self._is_float = False
        self._runs: list[Run] = []
        self._fresh: list[Run] = []
        """Tuples that came since the last snapshot and are held."""

        self._ledger = Ledger("waiting")

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        held = is_held(tuples)
        if held is not None:
            tuples = tuples.take(~held)
        elif tuples.hold is not None:
            tuples = Tuples(tuples.columns, tuples.time, tuples.origin, tuples.number)
        self._frontier = frontier
        self._is_float = tuples.time.dtype == np.float64
        new = self._run(tuples)
        ready = [part for part in map(self._take_final, [*self._runs, new]) if len(part)]
        self._runs = [run for run in self._runs if len(run)]
        if len(new):
            self._fresh.append(new.copy())
            self._runs.append(new)
            self._merge_runs()
        if not ready:
            return cut(tuples, 0, 0)
        return ready[0] if len(ready) == 1 else self._run(joined(ready)).tuples

    def _run(self, tuples: Tuples) -> Run:
        return Run(tuples, self._indices(tuples))

    def _indices(self, tuples: Tuples) -> Integers | None:
        """Return the order of tuples; None if they are in order."""
        return ordering(as_order(tuples.time), tuples.origin.astype(np.int64), tuples.number)

    def _final(self, run: Run) -> int:
        """Return the end of the final tuples of a run."""
        if self._frontier.is_end:
            return len(run.tuples)
        time = order_of(self._frontier.time, self._is_float)
        before, until = np.searchsorted(run.order, time, "left"), np.searchsorted(run.order, time, "right")
        same = run.tuples.origin[before:until]
        return max(int(before + np.searchsorted(same, self._frontier.origin, self.side)), run.start)

    def _take_final(self, run: Run) -> Tuples:
        end = self._final(run)
        final = cut(run.tuples, run.start, end) if end - run.start < len(run.tuples) else run.tuples
        run.forget(end)
        return final

    def _merge_runs(self) -> None:
        """Keep each run at least twice as long as the next: then there are few, and merging is rare."""
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = self._run(joined([self._runs[-1].rest(), last.rest()]))

    def snapshot(self) -> Change:
        dropped = self._ledger.drop_before(self._mark())
        added = {}
        waiting = []
        for run in self._fresh:
            run.start = self._final(run)
            if len(run):
                waiting.append(run.rest())
        if waiting:
            fresh = joined(waiting)
            added = self._ledger.add(as_table(fresh), _mark_of(fresh))
        self._fresh = []
        return Change(added, dropped, {"frontier": frontier_as_data(self._frontier), **self._ledger.meta()})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._frontier = frontier_from_data(meta.get("frontier"))
        self._fresh = []
        waiting = []
        for name, table in self._ledger.restored(meta, chunks):
            run = self._run(from_table(table))
            self._is_float = run.tuples.time.dtype == np.float64
            self._ledger.marks[name] = _mark_of(run.tuples)
            run.start = self._final(run)
            waiting.append(run.rest())
        self._runs = [self._run(joined(waiting))] if waiting else []

    def _mark(self) -> Mark:
        """Return the mark before which chunks hold no tuple any more."""
        if self._frontier.is_end:
            return (2**64, 0)
        passed = self._frontier.origin + (self.side == "right")
        return (order_of(self._frontier.time, self._is_float), passed)

    @property
    def rows(self) -> int:
        return sum(map(len, self._runs))


class Run:
    """Tuples in order; those before ``start`` have been released."""

    def __init__(self, tuples: Tuples, indices: Integers | None) -> None:
        order: Integers = as_order(tuples.time)
        self.tuples = tuples if indices is None else tuples.take(indices)
        self.order = order if indices is None else order[indices]
        self.start = 0

    def __len__(self) -> int:
        return len(self.tuples) - self.start

    def rest(self) -> Tuples:
        return cut(self.tuples, self.start, len(self.tuples))

    def copy(self) -> Run:
        """Return a run on the same memory, with its own start."""
        run = object.__new__(Run)
        run.tuples, run.order, run.start = self.tuples, self.order, self.start
        return run

    def forget(self, end: int) -> None:
        """Release the first tuples, and their memory once most of a run is gone."""
        self.start = end
        if 2 * end > len(self.tuples) > end:
            self.tuples = self.tuples.take(np.arange(end, len(self.tuples)))
            self.order = self.order[end:].copy()
            self.start = 0


def _mark_of(tuples: Tuples) -> Mark:
    """Return the position of the last tuple."""
    return (int(as_order(tuples.time).max()), int(tuples.origin.max()))
