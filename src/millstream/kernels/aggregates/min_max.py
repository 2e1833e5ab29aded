"""Smallest and largest values, by Spark's order: NaN is above everything, and -0.0 equals 0.0."""

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
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Codes, Integers, Whole, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Tuples

_AS_INTEGERS, _AS_DOUBLES, _AS_LABELS = 0, 1, 2
"""How the 64 bits of two values are compared: as they are, as bits of doubles, by a dictionary's labels."""

_MOST = 0x7FFF_FFFF_FFFF_FFFF

Comparing = tuple[int, Integers, bool]
"""How to compare, the labels to compare by, and whether the largest is wanted."""


class Extreme(Accumulator):
    """The smallest or the largest value; of equal ones the first that came."""

    parts: ClassVar = {"value": np.int64, "some": np.uint8}

    def __init__(self, argument: str, type_: pa.DataType, *, largest: bool) -> None:
        super().__init__(argument)
        self.column = Column(type_)
        self.largest = largest

    @property
    def name(self) -> str:
        return f"{'max' if self.largest else 'min'}({self.argument})"

    @property
    def words(self) -> int:
        return self.column.words

    def of_tuples(self, tuples: Tuples) -> Parts:
        return self.column.encode(tuples.columns[self.argument])

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        return {self.name: self.column.decode(*parts)}

    def of_table(self, table: pa.Table) -> Parts:
        return self.column.encode(table[self.name])

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        out = self.zeros(len(groups) if running else 0)
        _fold(frozen(groups), frozen_parts(parts), self.comparing(), into, out)
        return out

    def comparing(self) -> Comparing:
        return comparing(self.column, largest=self.largest)

    def trail(self, windows: int) -> AccumulatorLog:
        return _MinMaxLog(self, windows)


def comparing(column: Column, *, largest: bool) -> Comparing:
    """How the values of a column are compared now; its labels may change when there are new values."""
    words = column.dictionary
    if words is not None:
        return _AS_LABELS, frozen(words.labels), largest
    is_double = pa.types.is_floating(column.type)
    return _AS_DOUBLES if is_double else _AS_INTEGERS, frozen(NO_INTEGERS), largest


class _MinMaxLog(TwoStacksLog):
    def __init__(self, measure: Extreme, windows: int) -> None:
        super().__init__(measure, windows, measure.parts)
        self._measure = measure

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        out = self._measure.zeros(len(batch))
        comparing = self._measure.comparing()
        _slide(batch.windows, batch.previous, self.parts, comparing, self.stacks(window, batch), out)
        return out


@njit(cache=True)
def _place(value: Whole, comparison: int, labels: Integers) -> Whole:
    """Where a value is in the order of its type."""
    if comparison == _AS_INTEGERS:
        return value
    if comparison == _AS_DOUBLES:
        place = value ^ ((value >> 63) & _MOST)
        return 0 if place == -1 else place
    label: np.int64 = labels[value]
    return label


@njit(cache=True)
def _first_of(
    value: Whole, some: Whole, later: Whole, any_later: Whole, comparing: Comparing
) -> tuple[Whole, Whole]:
    """The better of two; if they are equal, the one that came first."""
    if not any_later:
        return value, some
    if not some:
        return later, any_later
    comparison, labels, largest = comparing
    one, other = _place(value, comparison, labels), _place(later, comparison, labels)
    if (one < other) if largest else (other < one):
        return later, any_later
    return value, some


@njit(cache=True)
def _fold(groups: Codes, parts: Parts, comparing: Comparing, into: Parts, out: Parts) -> None:
    values, some = parts
    best, any_best = into
    out_value, out_some = out
    for i in range(len(groups)):
        group = groups[i]
        first = _first_of(best[group], any_best[group], values[i], some[i], comparing)
        best[group], any_best[group] = first
        if len(out_value):
            out_value[i], out_some[i] = first


@njit(cache=True)
def _slide(
    windows: Parts,
    previous: Codes,
    parts: Parts,
    comparing: Comparing,
    stacks: tuple[Array, Array],
    out: Parts,
) -> None:
    """Windows one after the other, by two stacks."""
    codes, starts, ends, rebuild = windows
    values, some = parts
    older, newer = stacks
    out_value, out_some = out
    for i in range(len(codes)):
        start, end = starts[i], ends[i]
        key = newer[codes[i]]
        row = end
        best: tuple[Whole, Whole] = 0, 0
        if start >= key.bound or (len(rebuild) and rebuild[i]):
            while True:
                best = _first_of(values[row], np.int64(some[row]), best[0], best[1], comparing)
                older[row].value, older[row].some = best
                if row == start:
                    break
                row = previous[row]
            key.bound = end + 1
            key.some = 0
        else:
            while row != key.latest:
                best = _first_of(values[row], np.int64(some[row]), best[0], best[1], comparing)
                row = previous[row]
            best = _first_of(key.value, np.int64(key.some), best[0], best[1], comparing)
            key.value, key.some = best
            best = _first_of(older[start].value, np.int64(older[start].some), best[0], best[1], comparing)
        key.latest = end
        out_value[i], out_some[i] = best
