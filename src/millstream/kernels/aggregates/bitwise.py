"""AND, OR and exclusive OR of the bits of integers."""

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
from millstream.kernels.aggregates.two_stacks import TwoStacksLog
from millstream.kernels.core.buffers import Array, Codes, Whole, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Tuples

_AND, _OR, _XOR = 0, 1, 2


class Bits(Accumulator):
    """The values of a window combined bit by bit; nothing if there are none."""

    parts: ClassVar = {"value": np.int64, "some": np.uint8}

    def __init__(
        self, argument: str, type_: pa.DataType, function: Literal["bit_and", "bit_or", "bit_xor"]
    ) -> None:
        super().__init__(argument)
        self.column = Column(type_)
        self._function = function
        self.operation = {"bit_and": _AND, "bit_or": _OR, "bit_xor": _XOR}[function]

    @property
    def name(self) -> str:
        return f"{self._function}({self.argument})"

    def of_tuples(self, tuples: Tuples) -> Parts:
        return self.column.encode(tuples.columns[self.argument])

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        return {self.name: self.column.decode(*parts)}

    def of_table(self, table: pa.Table) -> Parts:
        return self.column.encode(table[self.name])

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        out = self.zeros(len(groups) if running else 0)
        _fold(frozen(groups), frozen_parts(parts), self.operation, into, out)
        return out

    def trail(self, windows: int) -> AccumulatorLog:
        return _BitsLog(self, windows)


class _BitsLog(TwoStacksLog):
    def __init__(self, measure: Bits, windows: int) -> None:
        super().__init__(measure, windows, measure.parts)
        self._measure = measure

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        out = self._measure.zeros(len(batch))
        operation = self._measure.operation
        _slide(batch.windows, batch.previous, self.parts, operation, self.stacks(window, batch), out)
        return out


@njit(cache=True)
def _both(value: Whole, some: Whole, other: Whole, any_other: Whole, operation: int) -> tuple[Whole, Whole]:
    if not any_other:
        return value, some
    if not some:
        return other, any_other
    if operation == _AND:
        return value & other, some
    return (value | other if operation == _OR else value ^ other), some


@njit(cache=True)
def _fold(groups: Codes, parts: Parts, operation: int, into: Parts, out: Parts) -> None:
    values, some = parts
    total, any_total = into
    out_value, out_some = out
    for i in range(len(groups)):
        group = groups[i]
        both = _both(total[group], any_total[group], values[i], some[i], operation)
        total[group], any_total[group] = both
        if len(out_value):
            out_value[i], out_some[i] = both


@njit(cache=True)
def _slide(
    windows: Parts, previous: Codes, parts: Parts, operation: int, stacks: tuple[Array, Array], out: Parts
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
        total: tuple[Whole, Whole] = 0, 0
        if start >= key.bound or (len(rebuild) and rebuild[i]):
            while True:
                total = _both(values[row], np.int64(some[row]), total[0], total[1], operation)
                older[row].value, older[row].some = total
                if row == start:
                    break
                row = previous[row]
            key.bound = end + 1
            key.some = 0
        else:
            total = key.value, np.int64(key.some)
            while row != key.latest:
                total = _both(values[row], np.int64(some[row]), total[0], total[1], operation)
                row = previous[row]
            key.value, key.some = total
            total = _both(older[start].value, np.int64(older[start].some), total[0], total[1], operation)
        key.latest = end
        out_value[i], out_some[i] = total
