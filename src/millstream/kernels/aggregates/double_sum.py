"""Sums of doubles that do not rot: twice the precision, and no subtraction.

A sum is two doubles whose sum it is (Knuth's two-sum), so that it hardly depends on the order of adding.
Infinities and NaNs are noted apart from the finite rest: inside the sum they would never go away. Values so
large that adding them could overflow make the whole sum a scaled one.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import (
    Accumulator,
    AccumulatorLog,
    Parts,
    WindowBatch,
    frozen_parts,
)
from millstream.kernels.aggregates.two_stacks import TwoStacksLog
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import NO_DOUBLES, Array, Bytes, Codes, Doubles, Whole, frozen
from millstream.kernels.core.kernel import Tuples

SOME = 1
NAN = 2
PLUS_INFINITY = 4
MINUS_INFINITY = 8
SCALED = 16
"""What is known of a sum: that it has any value, what is in it besides finite ones, that it is scaled."""

SCALE = 2.0**-64
_LARGE = 2.0**990


class DoubleSum(Accumulator):
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

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        out = self.zeros(len(groups) if running else 0)
        _fold(frozen(groups), frozen_parts(parts), into, out)
        return out

    def trail(self, windows: int) -> AccumulatorLog:
        return _SumLog(self, windows, self.parts)


class _SumLog(TwoStacksLog):
    def ask(self, window: int, batch: WindowBatch) -> Parts:
        count = len(batch)
        out = np.empty(count), np.empty(count), np.empty(count, np.uint8)
        _slide(batch.windows, batch.previous, self.parts, self.stacks(window, batch), out)
        return out


def total(parts: Parts) -> tuple[Doubles, Array]:
    """Sums as doubles, and where there are any."""
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
    """Single values as sums; ``flags`` tells NULLs from values when it comes."""
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


@njit(cache=True)
def _merge(
    high: float, low: float, flags: Whole, other_high: float, other_low: float, other_flags: Whole
) -> tuple[float, float, Whole]:
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


@njit(cache=True)
def _fold(groups: Codes, parts: Parts, into: Parts, out: Parts) -> None:
    high, low, flags = parts
    total_high, total_low, total_flags = into
    out_high, out_low, out_flags = out
    for i in range(len(groups)):
        group = groups[i]
        lower = low[i] if len(low) else 0.0
        total = _merge(total_high[group], total_low[group], total_flags[group], high[i], lower, flags[i])
        total_high[group], total_low[group], total_flags[group] = total
        if len(out_high):
            out_high[i], out_low[i], out_flags[i] = total


@njit(cache=True)
def _slide(windows: Parts, previous: Codes, parts: Parts, stacks: tuple[Array, Array], out: Parts) -> None:
    """Windows one after the other, by two stacks."""
    codes, starts, ends, rebuild = windows
    high, low, flags = parts
    older, newer = stacks
    out_high, out_low, out_flags = out
    for i in range(len(codes)):
        start, end = starts[i], ends[i]
        key = newer[codes[i]]
        row = end
        total: tuple[float, float, Whole]
        if start >= key.bound or (len(rebuild) and rebuild[i]):
            # The older part has left. What is there now becomes the older part, from its end backwards.
            total = 0.0, 0.0, 0
            while True:
                lower = low[row] if len(low) else 0.0
                total = _merge(total[0], total[1], total[2], high[row], lower, flags[row])
                older[row].high, older[row].low, older[row].flags = total
                if row == start:
                    break
                row = previous[row]
            key.bound = end + 1
            key.high, key.low, key.flags = 0.0, 0.0, 0
        else:
            total = key.high, key.low, np.int64(key.flags)
            while row != key.latest:
                lower = low[row] if len(low) else 0.0
                total = _merge(total[0], total[1], total[2], high[row], lower, flags[row])
                row = previous[row]
            key.high, key.low, key.flags = total
            first = older[start]
            total = _merge(first.high, first.low, first.flags, total[0], total[1], total[2])
        key.latest = end
        out_high[i], out_low[i], out_flags[i] = total
