"""Panes that wait for the first window that has them to be complete."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.kernels.arrays import Array, Integers
from millstream.kernels.measures import Measure, Parts
from millstream.kernels.sorting import ordering

Rows = tuple[Array, ...]
"""Panes as columns: first window, key, number of the pane, and the parts of all measures."""


class Waiting:
    """Sorted runs of panes; a pane of a key may be in several, which are merged when they are needed."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        self._measures = measures
        self._runs: list[Rows] = []

    def __len__(self) -> int:
        return sum(len(run[0]) for run in self._runs)

    def add(self, rows: Rows) -> None:
        if not len(rows[0]):
            return
        nothing = np.zeros(len(rows[0]), np.int64)
        self._runs.append(_taken(rows, ordering(rows[0], nothing, nothing)))

    def settle(self) -> None:
        """Make each run at least twice as long as the next: then there are few, and merging is rare."""
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            last = self._runs.pop()
            self._runs[-1] = self.merged(_joined([self._runs[-1], last]))

    def take(self, last: int) -> Rows | None:
        """The panes that windows up to the last have, not in order; those that are left go on waiting."""
        taken, left = [], []
        for run in self._runs:
            count = int(np.searchsorted(run[0], last, "right"))
            if count:
                taken.append(tuple(column[:count] for column in run))
            if count < len(run[0]):
                # A copy where little is left, so as not to hold on to the memory of all.
                rest = tuple(column[count:] for column in run)
                left.append(tuple(column.copy() for column in rest) if count > len(rest[0]) else rest)
        self._runs = left
        return _joined(taken) if taken else None

    def merged(self, rows: Rows, ranks: Integers | None = None) -> Rows:
        """In the order of window, key (or its rank) and pane, with equal ones made one."""
        order = ordering(rows[0], rows[1].astype(np.int64) if ranks is None else ranks, rows[2])
        rows = _taken(rows, order)
        is_new = np.ones(len(rows[0]), np.bool_)
        is_new[1:] = False
        for column in rows[:3]:
            is_new[1:] |= column[1:] != column[:-1]
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
        """The columns of each measure."""
        parts, place = [], 3
        for measure in self._measures:
            parts.append(rows[place : place + len(measure.parts)])
            place += len(measure.parts)
        return parts

    def everything(self) -> Rows | None:
        return _joined(self._runs) if self._runs else None


def _joined(runs: Sequence[Rows]) -> Rows:
    if len(runs) == 1:
        return runs[0]
    return tuple(np.concatenate(columns) for columns in zip(*runs, strict=True))


def _taken(rows: Rows, order: Integers | None) -> Rows:
    return rows if order is None else tuple(column[order] for column in rows)
