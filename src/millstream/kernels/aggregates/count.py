"""Counts, of tuples or of the values of a column that are not NULL."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import (
    Accumulator,
    AccumulatorLog,
    Parts,
    WindowBatch,
    frozen_parts,
)
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import NO_INTEGERS, Buffer, Codes, Integers, frozen
from millstream.kernels.core.kernel import Tuples


class Count(Accumulator):
    parts: ClassVar = {"count": np.int64}

    def of_tuples(self, tuples: Tuples) -> Parts:
        if self.argument is None:
            return (np.ones(len(tuples), np.int64),)
        return (arrow_buffers.validity(arrow_buffers.single(tuples.columns[self.argument])).astype(np.int64),)

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        out = np.empty(len(groups), np.int64) if running else NO_INTEGERS
        _fold(frozen(groups), frozen_parts(parts), into, out)
        return (out,)

    def trail(self, windows: int) -> AccumulatorLog:
        return _CountLog(self)


class _CountLog(AccumulatorLog):
    """With each row the count before it of its key: what lies between two rows is a difference."""

    def __init__(self, measure: Count) -> None:
        super().__init__(measure)
        self._before = Buffer(np.int64)

    def append(self, parts: Parts, previous: Codes) -> None:
        first = len(self._before)
        super().append(parts, previous)
        (counts,) = self.parts
        _add_up(previous, counts, self._before.resize(len(counts)), first)

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        out = np.empty(len(batch), np.int64)
        (counts,) = self.parts
        _difference(batch.windows, counts, self._before.view, out)
        return (out,)


@njit(cache=True)
def _fold(groups: Codes, parts: Parts, into: Parts, out: Integers) -> None:
    (counts,) = parts
    (totals,) = into
    for i in range(len(groups)):
        group = groups[i]
        totals[group] += counts[i]
        if len(out):
            out[i] = totals[group]


@njit(cache=True)
def _add_up(previous: Codes, counts: Integers, before: Integers, first: int) -> None:
    for row in range(first, len(counts)):
        last = previous[row]
        before[row] = before[last] + counts[last] if last >= 0 else 0


@njit(cache=True)
def _difference(windows: Parts, counts: Integers, before: Integers, out: Integers) -> None:
    _, starts, ends, _ = windows
    for i in range(len(starts)):
        end = ends[i]
        out[i] = before[end] + counts[end] - before[starts[i]]
