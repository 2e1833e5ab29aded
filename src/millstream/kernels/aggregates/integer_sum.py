"""Sums of integers and decimals, exact: 128 bits, in which every sum of 64 bits fits."""

from __future__ import annotations

from typing import ClassVar, Literal

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
from millstream.kernels.core.buffers import NO_INTEGERS, Buffer, Codes, frozen
from millstream.kernels.core.column_codec import Column, halves
from millstream.kernels.core.kernel import Tuples

Half = Literal["", "high", "low"]


class IntegerSum(Accumulator):
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
        # A NULL counts for nothing: less 2**63 it would, were it not left out here.
        return (high if self._half == "high" else np.where(valid, low, 0)), NO_INTEGERS

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        out = self.zeros(len(groups) if running else 0)
        _fold(frozen(groups), frozen_parts(parts), into, out)
        return out

    def trail(self, windows: int) -> AccumulatorLog:
        return _SumLog(self)


class _SumLog(AccumulatorLog):
    """With each row the sum before it of its key; in 128 bits that wrap around, differences stay exact."""

    def __init__(self, measure: IntegerSum) -> None:
        super().__init__(measure)
        self._before = Buffer(np.int64), Buffer(np.int64)

    def append(self, parts: Parts, previous: Codes) -> None:
        first = len(self._before[0])
        super().append(parts, previous)
        low, high = self._before
        rows = len(self.parts[0])
        _add_up(previous, self.parts, (low.resize(rows), high.resize(rows)), first)

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        out = np.empty(len(batch), np.int64), np.empty(len(batch), np.int64)
        low, high = self._before
        _difference(batch.windows, self.parts, (low.view, high.view), out)
        return out


@njit(cache=True)
def _plus(low: int, high: int, other_low: int, other_high: int) -> tuple[int, int]:
    total = low + other_low
    carry = np.uint64(total) < np.uint64(low)
    return total, high + other_high + (1 if carry else 0)


@njit(cache=True)
def _minus(low: int, high: int, other_low: int, other_high: int) -> tuple[int, int]:
    borrow = np.uint64(low) < np.uint64(other_low)
    return low - other_low, high - other_high - (1 if borrow else 0)


@njit(cache=True)
def _fold(groups: Codes, parts: Parts, into: Parts, out: Parts) -> None:
    low, high = parts
    total_low, total_high = into
    out_low, out_high = out
    for i in range(len(groups)):
        group = groups[i]
        upper = high[i] if len(high) else low[i] >> 63
        total = _plus(total_low[group], total_high[group], low[i], upper)
        total_low[group], total_high[group] = total
        if len(out_low):
            out_low[i], out_high[i] = total


@njit(cache=True)
def _add_up(previous: Codes, parts: Parts, before: Parts, first: int) -> None:
    low, high = parts
    before_low, before_high = before
    for row in range(first, len(low)):
        last = previous[row]
        if last < 0:
            before_low[row] = before_high[row] = 0
        else:
            upper = high[last] if len(high) else low[last] >> 63
            before_low[row], before_high[row] = _plus(before_low[last], before_high[last], low[last], upper)


@njit(cache=True)
def _difference(windows: Parts, parts: Parts, before: Parts, out: Parts) -> None:
    _, starts, ends, _ = windows
    low, high = parts
    before_low, before_high = before
    out_low, out_high = out
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        upper = high[end] if len(high) else low[end] >> 63
        total_low, total_high = _plus(before_low[end], before_high[end], low[end], upper)
        out_low[i], out_high[i] = _minus(total_low, total_high, before_low[start], before_high[start])
