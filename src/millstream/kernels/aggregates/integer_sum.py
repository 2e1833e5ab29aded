"""Exact sums of integers and decimals in 128 bits, in which every sum of 64 bits fits."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.jit import compiled_methods
from millstream.kernels.aggregates.accumulator import AccumulatorLog, FixedWidthAccumulator, Parts
from millstream.kernels.aggregates.prefix_sums import PrefixSumLog
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Whole
from millstream.kernels.core.column_codec import Column, halves
from millstream.kernels.core.kernel import Tuples

Half = Literal["", "high", "low"]


class IntegerSum(FixedWidthAccumulator):
    """The sum of an argument of at most 64 bits, or of one half of longer ones."""

    parts: ClassVar = {"low": np.int64, "high": np.int64}

    def __init__(self, argument: str, type_: pa.DataType, half: Half = "") -> None:
        super().__init__(argument)
        self._type = type_
        self._half = half

    @property
    def name(self) -> str:
        return f"{super().name}{self._half}"

    def of_tuples(self, tuples: Tuples) -> Parts:
        column = tuples.columns[self.argument]
        if not self._half:
            return Column(self._type).encode(column)[0], NO_INTEGERS
        high, low, valid = halves(column)
        # A NULL adds 0, and not -2**63.
        return (high if self._half == "high" else np.where(valid, low, 0)), NO_INTEGERS

    def rows(self, parts: Parts) -> IntegerSums:
        return IntegerSums(*parts)

    def trail(self, windows: int) -> AccumulatorLog:
        return PrefixSumLog(self)


Long = tuple[Whole, Whole]
"""The low and the high 64 bits of a sum; they wrap around, so differences of sums stay exact."""


@compiled_methods
class IntegerSums(NamedTuple):
    """The parts of a sum; those of single values have no ``high``, which is the sign of ``low``."""

    low: Array
    high: Array

    def value(self, row: Whole) -> Long:
        low = np.int64(self.low[row])
        return low, (np.int64(self.high[row]) if len(self.high) else low >> 63)

    def put(self, row: Whole, value: Long) -> None:
        self.low[row], self.high[row] = value

    def merge(self, value: Long, later: Long) -> Long:
        low = value[0] + later[0]
        carry = np.uint64(low) < np.uint64(value[0])
        return low, value[1] + later[1] + (1 if carry else 0)

    def subtract(self, value: Long, earlier: Long) -> Long:
        borrow = np.uint64(value[0]) < np.uint64(earlier[0])
        return value[0] - earlier[0], value[1] - earlier[1] - (1 if borrow else 0)
