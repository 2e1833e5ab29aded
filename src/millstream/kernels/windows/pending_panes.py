"""Panes that wait for the first visit of a window that has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Accumulator, Parts
from millstream.kernels.core.buffers import Array, Bytes, Codes, Integers, frozen
from millstream.kernels.core.radix_sort import changes, merging, ordering
from millstream.kernels.core.time_order import MOST
from millstream.kernels.windows.pane_sweep import DueWindows

Rows = tuple[Array, ...]
"""Panes as columns: the visit at which they enter, key, the last visit, and the parts of all accumulators.
Instead of visits there may be points, see DueWindows.

Of visits there may be points, see DueWindows.
"""


class PendingPanes:
    """Runs of panes, sorted by where they enter, key and where they leave; a pane may be in several."""

    def __init__(self, measures: Sequence[Accumulator]) -> None:
        self._measures = measures
        self._runs: list[Rows] = []

    def __len__(self) -> int:
        return sum(map(_length, self._runs))

    def add(self, rows: Rows) -> None:
        if not _length(rows):
            return
        self._runs.append(_taken(rows, ordering(rows[0], rows[1].astype(np.int64), rows[2])))

    def settle(self) -> None:
        """Make each run at least twice as long as the next: then there are few, and merging is rare."""
        runs = sorted(self._runs, key=_length, reverse=True)
        self._runs = []
        for run in runs:
            self._runs.append(run)
            while len(self._runs) > 1 and _length(self._runs[-2]) < 2 * _length(self._runs[-1]):
                last = self._runs.pop()
                self._runs[-1] = self._folded(_in_one([self._runs[-1], last]))

    def take(self, partitions: Codes, due: DueWindows) -> Rows | None:
        """Return the panes that enter at visits that are due, with these; others go on waiting.

        ``partitions`` has the partition of each key.
        """
        if not (due.last > due.done).any():
            return None
        limit = (due.points if due.enters_at_points else due.last).max()
        rows = self._take(limit, "right")
        if rows is None or (len(due.last) == 1 and not due.enters_at_points):
            return rows
        if due.enters_at_points:
            rows, kept = _settled(rows, partitions, due)
        else:
            is_due = rows[0] <= due.last[partitions[rows[1]]]
            rows, kept = _taken(rows, np.flatnonzero(is_due)), _taken(rows, np.flatnonzero(~is_due))
        if _length(kept):
            self._runs.append(kept)
        return rows if _length(rows) else None

    def take_before(self, limit: int | None) -> Rows | None:
        """Return all panes that enter before a point, or all there are, in the order of entering."""
        return self._take(MOST, "right") if limit is None else self._take(limit, "left")

    def _take(self, limit: int, side: Literal["left", "right"]) -> Rows | None:
        parts = [_split(run, int(np.searchsorted(run[0], limit, side))) for run in self._runs]
        self._runs = [rest for _, rest in parts if _length(rest)]
        taken = [first for first, _ in parts if _length(first)]
        return _in_one(taken) if taken else None

    def merged(self, rows: Rows, *, by_key: bool = False) -> Rows:
        """Return all panes in the order of entering, or by keys first, with equal ones merged."""
        enters, keys, untils = rows[0], rows[1].astype(np.int64), rows[2]
        order = ordering(keys, enters, untils) if by_key else ordering(enters, keys, untils)
        return self._folded(_taken(rows, order))

    def _folded(self, rows: Rows) -> Rows:
        """Merge equal neighbours."""
        is_new = changes(*rows[:3])
        if is_new.all():
            return rows
        groups = (np.cumsum(is_new) - 1).astype(np.int32)
        count = int(groups[-1]) + 1
        columns = [column[is_new] for column in rows[:3]]
        for measure, parts in zip(self._measures, self.parts_of(rows), strict=True):
            into = measure.zeros(count)
            measure.fold(groups, parts, into, running=False)
            columns += into
        return tuple(columns)

    def parts_of(self, rows: Rows) -> list[Parts]:
        """Return the parts of each accumulator."""
        parts, place = [], 3
        for measure in self._measures:
            parts.append(rows[place : place + len(measure.parts)])
            place += len(measure.parts)
        return parts

    def everything(self) -> Rows | None:
        return _in_one(self._runs) if self._runs else None


def _length(rows: Rows) -> int:
    return len(rows[0])


def _in_one(runs: Sequence[Rows]) -> Rows:
    """Merge runs into one, the shortest first, so that no row is moved often."""
    waiting = sorted(runs, key=_length, reverse=True)
    while len(waiting) > 1:
        one, other = waiting.pop(), waiting.pop()
        order = merging(one[:3], other[:3])
        waiting.append(_taken(tuple(np.concatenate(both) for both in zip(one, other, strict=True)), order))
        waiting.sort(key=_length, reverse=True)
    return waiting[0]


def _taken(rows: Rows, order: Integers | None) -> Rows:
    """Return some rows; empty parts stay empty."""
    if order is None:
        return rows
    return tuple(column[order] if len(column) else column for column in rows)


def _split(run: Rows, count: int) -> tuple[Rows, Rows]:
    """Split off the first rows; few others are copied, so as not to hold the memory of all."""
    first = tuple(column[:count] for column in run)
    rest = tuple(column[count:] for column in run)
    return first, tuple(column.copy() for column in rest) if count > len(rest[0]) else rest


def _settled(rows: Rows, partitions: Codes, due: DueWindows) -> tuple[Rows, Rows]:
    """Split panes that wait with points into those that are due, with their visits, and the rest.

    The others are in no window: none ends while they are there.
    """
    visits, fates = np.empty(len(rows[0]), np.int64), np.empty(len(rows[0]), np.uint8)
    panes = tuple(frozen(column) for column in rows[:3])
    plan = tuple(frozen(column) for column in (due.done, due.last, due.offsets, due.points))
    _settle(panes, frozen(partitions), plan, due.horizon, visits, fates)
    now = _taken((visits, *rows[1:]), None if (fates == _NOW).all() else np.flatnonzero(fates == _NOW))
    return now, _taken(rows, np.flatnonzero(fates == _LATER))


_NEVER, _LATER, _NOW = 0, 1, 2


@njit(cache=True)
def _settle(
    panes: tuple[Array, ...],
    partitions: Codes,
    plan: tuple[Array, ...],
    horizon: int,
    visits: Integers,
    fates: Bytes,
) -> None:
    """Find the first visit of each pane, by bisection of the visits of its partition."""
    enters, keys, untils = panes
    done, lasts, offsets, points = plan
    for i in range(len(enters)):
        partition = partitions[keys[i]]
        first = offsets[partition]
        end = first + lasts[partition] - done[partition]
        low, high = first, end
        while low < high:
            middle = (low + high) // 2
            if points[middle] < enters[i]:
                low = middle + 1
            else:
                high = middle
        if low == end:
            visits[i] = lasts[partition] + 1
            fates[i] = _LATER if untils[i] >= horizon else _NEVER
        else:
            visits[i] = done[partition] + 1 + low - first
            fates[i] = _NOW if untils[i] >= points[low] else _NEVER
