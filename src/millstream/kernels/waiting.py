"""Cells that wait for the first visit of a window that has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.kernels.arrays import Array, Codes, Integers
from millstream.kernels.measures import Measure, Parts
from millstream.kernels.sorting import ordering

Rows = tuple[Array, ...]
"""Cells as columns: the visit at which they enter, key, the last visit, and the parts of all measures."""


class Waiting:
    """Runs of cells in the order of entering; a cell may be in several, which are merged when needed."""

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

    def take(self, partitions: Codes, last: Integers) -> Rows | None:
        """The cells that enter at the last visits of their partitions or before; others go on waiting.

        ``partitions`` has the partition of each key.
        """
        taken, left = [], []
        for run in self._runs:
            if len(last) == 1:
                count = int(np.searchsorted(run[0], last[0], "right"))
                due, rest = _split(run, count)
            else:
                is_due = run[0] <= last[partitions[run[1]]]
                due, rest = _taken(run, np.flatnonzero(is_due)), _taken(run, np.flatnonzero(~is_due))
            if len(due[0]):
                taken.append(due)
            if len(rest[0]):
                left.append(rest)
        self._runs = left
        return _joined(taken) if taken else None

    def merged(self, rows: Rows, *, by_key: bool = False) -> Rows:
        """In the order of entering, or by keys first, with equal ones made one."""
        enters, keys, untils = rows[0], rows[1].astype(np.int64), rows[2]
        order = ordering(keys, enters, untils) if by_key else ordering(enters, keys, untils)
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
    """Some rows; parts that are left out (they are empty) stay so."""
    if order is None:
        return rows
    return tuple(column[order] if len(column) else column for column in rows)


def _split(run: Rows, count: int) -> tuple[Rows, Rows]:
    """The first rows and the others, these as a copy where they are few, so as not to hold on to all."""
    first = tuple(column[:count] for column in run)
    rest = tuple(column[count:] for column in run)
    return first, tuple(column.copy() for column in rest) if count > len(rest[0]) else rest
