"""Counts of tuples, or of the values of a column that are not NULL."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from millstream.jit import compiled_methods
from millstream.kernels.aggregates.accumulator import AccumulatorLog, FixedWidthAccumulator, Parts
from millstream.kernels.aggregates.prefix_sums import PrefixSumLog
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Whole
from millstream.kernels.core.kernel import Tuples


class Count(FixedWidthAccumulator):
    """The number of tuples, or of values."""

    parts: ClassVar = {"count": np.int64}

    def of_tuples(self, tuples: Tuples) -> Parts:
        if self.argument is None:
            return (np.ones(len(tuples), np.int64),)
        return (arrow_buffers.validity(arrow_buffers.single(tuples.columns[self.argument])).astype(np.int64),)

    def rows(self, parts: Parts) -> Counts:
        return Counts(*parts)

    def trail(self, windows: int) -> AccumulatorLog:
        return PrefixSumLog(self)


@compiled_methods
class Counts(NamedTuple):
    """The parts of a count."""

    counts: Array

    def value(self, row: Whole) -> Whole:
        return np.int64(self.counts[row])

    def put(self, row: Whole, value: Whole) -> None:
        self.counts[row] = value

    def merge(self, value: Whole, later: Whole) -> Whole:
        return value + later

    def subtract(self, value: Whole, earlier: Whole) -> Whole:
        return value - earlier
