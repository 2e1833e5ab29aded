"""Windows that slide by tuples: every n-th tuple of a partition ends a window, at its own value.

The window at value w has what lies in (w-range, w], all tuples of the value w included, whichever of them
ended it. So it is complete when punctuation is beyond w; equal values are one window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from millstream.kernels.arrays import Array, Codes, Integers, frozen
from millstream.kernels.base import Change, Frontier, Tuples
from millstream.kernels.partitions import WHOLE, Columns, Partitions
from millstream.kernels.placing import Edges, Placed, Placing
from millstream.kernels.sweep import Due
from millstream.kernels.times import LEAST, MOST, as_order, from_order, later, order_of

ENDS = "__ms_ends"
"""A column that says which tuples end a window, where that is not told by their rank."""


@dataclass(frozen=True)
class TupleSlide:
    """Every so many tuples a window of this range; by rank, or where the column ENDS says so."""

    range: int | float
    every: int
    by_rank: bool
    per: Columns = WHOLE

    def __call__(self) -> Placing:
        return _TuplePlacing(self)


class _TuplePlacing(Placing):
    """Visits are numbered in each partition, and have the values of their windows as points."""

    def __init__(self, spec: TupleSlide) -> None:
        self._spec = spec
        self._parts = Partitions(
            spec.per, {"count": 0, "visits": 0, "pending": 0, "value": LEAST, "done": -1}
        )
        self._is_float = False
        self._frontier = LEAST
        self._listed: list[tuple[Codes, Integers]] = []
        self._due: Due | None = None

    def place(self, tuples: Tuples, frontier: Frontier) -> Placed:
        self._is_float = tuples.time.dtype == np.float64
        order = as_order(tuples.time)
        parts = self._parts.codes(tuples.columns)
        self._parts.note(parts)
        ends = np.zeros(0, np.bool_)
        if not self._spec.by_rank:
            ends = np.asarray(tuples.columns[ENDS].combine_chunks().to_numpy(zero_copy_only=False), np.bool_)
        enters = np.empty(len(order), np.int64)
        closed, values = np.empty(len(order), np.int32), np.empty(len(order), np.int64)
        count = _number(
            frozen(parts),
            frozen(order),
            frozen(ends),
            self._spec.every,
            self._state(),
            enters,
            closed,
            values,
        )
        self._listed.append((closed[:count], values[:count]))
        untils = later(order, self._is_float, self._spec.range)
        return Placed(enters, untils, np.ones(len(order), np.bool_))

    def _state(self) -> tuple[Array, ...]:
        return tuple(self._parts[name] for name in ("count", "visits", "pending", "value"))

    def due(self, frontier: Frontier) -> Due:
        time = MOST if frontier.is_end else order_of(frontier.time, self._is_float)
        self._frontier = max(self._frontier, time)
        pending, values, visits = self._parts["pending"], self._parts["value"], self._parts["visits"]
        closing = np.flatnonzero((pending > 0) & ((values < time) | frontier.is_end)).astype(np.int32)
        self._listed.append((closing, values[closing]))
        visits[closing] += 1
        pending[closing] = 0
        self._parts.note(closing)
        parts = np.concatenate([parts for parts, _ in self._listed])
        points = np.concatenate([points for _, points in self._listed])
        self._listed = []
        order = np.argsort(parts, kind="stable")
        counts = np.bincount(parts, minlength=len(self._parts))
        offsets = np.cumsum(counts) - counts
        done = self._parts["done"]
        last = visits - 1
        if not len(self._parts):
            return Due(np.full(1, -1), np.full(1, -1))
        self._due = Due(done.copy(), last, offsets, points[order])
        return self._due

    def edges(self, visits: Integers, partitions: Codes) -> Edges:
        if self._due is None:
            none = from_order(np.zeros(0, np.int64), self._is_float)
            return Edges(none, none, none, none)
        due = self._due
        points = due.points[due.offsets[partitions] + visits - due.done[partitions] - 1]
        ends = from_order(points, self._is_float)
        starts: Array = ends - self._spec.range
        if not self._is_float:
            starts = np.where(ends < LEAST + int(self._spec.range), LEAST, starts)
        return Edges(starts, ends, ends, ends)

    def finish(self) -> None:
        self._parts["done"][:] = self._parts["visits"] - 1
        self._due = None

    def passes(self, frontier: Frontier) -> Frontier:
        return frontier if frontier.is_end else Frontier(frontier.time, -1)

    def partitions(self, table: pa.Table) -> Codes:
        return self._parts.codes(table)

    def partition_columns(self, partitions: Codes) -> dict[str, pa.Array]:
        return self._parts.columns(partitions)

    def first_open(self, partitions: Codes) -> Integers:
        open_: Integers = self._parts["done"][partitions] + 1
        return open_

    def is_alive(self, untils: Integers, partitions: Codes) -> Array:
        alive: Array = untils >= self._frontier
        return alive

    def horizon(self) -> int:
        return self._frontier

    def snapshot(self) -> Change:
        change = self._parts.snapshot()
        meta = {**change.meta, "is_float": self._is_float, "frontier": self._frontier}
        return Change(change.added, change.dropped, meta)

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._is_float = bool(meta.get("is_float", False))
        self._frontier = int(meta.get("frontier", LEAST))
        self._parts.restore(meta, chunks)


@njit(cache=True)
def _number(
    parts: Codes,
    order: Integers,
    ends: Array,
    every: int,
    state: tuple[Array, ...],
    enters: Integers,
    closed: Codes,
    values: Integers,
) -> int:
    """The visit at which each tuple enters; gives how many windows were closed by tuples beyond them."""
    counts, visits, pending, at = state
    found = 0
    for i in range(len(parts)):
        part = parts[i]
        if pending[part] and order[i] > at[part]:
            closed[found], values[found] = part, at[part]
            found += 1
            visits[part] += 1
            pending[part] = 0
        counts[part] += 1
        is_end = ends[i] if len(ends) else counts[part] % every == 0
        if is_end:
            pending[part], at[part] = 1, order[i]
        enters[i] = visits[part]
    return found
