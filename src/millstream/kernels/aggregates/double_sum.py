"""Sums of doubles without accumulated rounding errors: twice the precision, and no subtraction.

A sum is two doubles (Knuth's two-sum), so that it hardly depends on the order of addition. Infinities and
NaNs are flags beside the finite rest: inside the sum they would never go away. Values so large that a sum
could overflow make the whole sum a scaled one.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.jit import compiled_methods, njit
from millstream.kernels.aggregates.accumulator import AccumulatorLog, FixedWidthAccumulator, Parts
from millstream.kernels.aggregates.two_stacks import TwoStacksLog
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import NO_DOUBLES, Array, Bytes, Doubles, Whole, frozen
from millstream.kernels.core.kernel import Tuples

SOME = 1
NAN = 2
PLUS_INFINITY = 4
MINUS_INFINITY = 8
SCALED = 16
"""Flags of a sum: it has a value, it contains values that are not finite, it is scaled."""

SCALE = 2.0**-64
_LARGE = 2.0**990


class DoubleSum(FixedWidthAccumulator):
    parts: ClassVar = {"high": np.float64, "low": np.float64, "flags": np.uint8}

    def of_tuples(self, tuples: Tuples) -> Parts:
        array = arrow_buffers.single(tuples.columns[self.argument])
        count = len(array)
        if pa.types.is_null(array.type):
            return np.zeros(count), NO_DOUBLES, np.zeros(count, np.uint8)
        plain = arrow_buffers.values(array, np.float32 if pa.types.is_float32(array.type) else np.float64)
        high, flags = np.empty(count), arrow_buffers.validity(array)
        _classify(frozen(plain.astype(np.float64, copy=False)), high, flags)
        return high, NO_DOUBLES, flags

    def rows(self, parts: Parts) -> DoubleSums:
        return DoubleSums(*parts)

    def trail(self, windows: int) -> AccumulatorLog:
        return TwoStacksLog(self, windows)


def total(parts: Parts) -> tuple[Doubles, Array]:
    """Return sums as doubles, and where there are any."""
    high, _, flags = parts
    if not (flags & ~np.uint8(SOME)).any():
        return high, flags
    with np.errstate(over="ignore"):
        result = np.where(flags & SCALED, high / SCALE, high)
    result[flags & PLUS_INFINITY > 0] = np.inf
    result[flags & MINUS_INFINITY > 0] = -np.inf
    both = PLUS_INFINITY | MINUS_INFINITY
    result[(flags & NAN > 0) | (flags & both == both)] = np.nan
    return result, flags & SOME


@njit(cache=True)
def _classify(values: Doubles, high: Doubles, flags: Bytes) -> None:
    """Convert single values to sums; ``flags`` tells NULLs from values on entry."""
    for i in range(len(values)):
        value = values[i]
        if not flags[i]:
            high[i] = 0.0
        elif abs(value) <= _LARGE:
            high[i] = value
        elif np.isnan(value):
            high[i], flags[i] = 0.0, SOME | NAN
        elif np.isinf(value):
            high[i], flags[i] = 0.0, SOME | (PLUS_INFINITY if value > 0 else MINUS_INFINITY)
        else:
            high[i], flags[i] = value * SCALE, SOME | SCALED


Sum = tuple[float, float, Whole]
"""The two doubles of a sum and its flags."""


@compiled_methods
class DoubleSums(NamedTuple):
    """The parts of a sum; those of single values have no ``low``, which is 0."""

    high: Array
    low: Array
    flags: Array

    def value(self, row: Whole) -> Sum:
        return self.high[row], (self.low[row] if len(self.low) else 0.0), np.int64(self.flags[row])

    def put(self, row: Whole, value: Sum) -> None:
        self.high[row], self.low[row], self.flags[row] = value

    def load(self, record: Any) -> Sum:
        return record.high, record.low, np.int64(record.flags)

    def store(self, record: Any, value: Sum) -> None:
        record.high, record.low, record.flags = value

    def merge(self, value: Sum, later: Sum) -> Sum:
        high, low, flags = value
        other_high, other_low, other_flags = later
        both = flags | other_flags
        if both & SCALED:
            if not flags & SCALED:
                high *= SCALE
                low *= SCALE
            if not other_flags & SCALED:
                other_high *= SCALE
                other_low *= SCALE
        upper = high + other_high
        part = upper - high
        upper_error = (high - (upper - part)) + (other_high - part)
        lower = low + other_low
        part = lower - low
        lower_error = (low - (lower - part)) + (other_low - part)
        upper_error += lower
        high = upper + upper_error
        low = upper_error - (high - upper) + lower_error
        result = high + low
        return result, low - (result - high), both
