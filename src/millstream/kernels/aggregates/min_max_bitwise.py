"""Aggregates that reduce values pairwise to one value: min, max, bit_and, bit_or, bit_xor.

Values are compared in Spark's order: NaN is above everything, and -0.0 equals 0.0.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.jit import compiled_methods
from millstream.kernels.aggregates.accumulator import AccumulatorLog, FixedWidthAccumulator, Parts
from millstream.kernels.aggregates.two_stacks import TwoStacksLog
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Integers, Whole, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Tuples

_AS_INTEGERS, _AS_DOUBLES, _BY_LABELS = 0, 1, 2
"""Comparison of the 64 bits of two values: as integers, as bits of doubles, by a dictionary's labels."""

_MOST = 0x7FFF_FFFF_FFFF_FFFF
_MIN, _MAX, _AND, _OR, _XOR = 0, 1, 2, 3, 4
_OPERATIONS = {"min": _MIN, "max": _MAX, "bit_and": _AND, "bit_or": _OR, "bit_xor": _XOR}


class MinMaxBitwise(FixedWidthAccumulator):
    """The smallest or largest value (of equal ones the first that came), or all values combined bitwise."""

    parts: ClassVar = {"value": np.int64, "some": np.uint8}

    def __init__(
        self,
        argument: str,
        type_: pa.DataType,
        function: str,
    ) -> None:
        super().__init__(argument)
        self.column = Column(type_)
        self._function = function

    @property
    def name(self) -> str:
        return f"{self._function}({self.argument})"

    @property
    def words(self) -> int:
        return self.column.words

    def of_tuples(self, tuples: Tuples) -> Parts:
        return self.column.encode(tuples.columns[self.argument])

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        return {self.name: self.column.decode(*parts)}

    def of_table(self, table: pa.Table) -> Parts:
        return self.column.encode(table[self.name])

    def rows(self, parts: Parts) -> ReducedValues:
        values, some = parts
        return ReducedValues(values, some, _OPERATIONS[self._function], value_order(self.column))

    def trail(self, windows: int) -> AccumulatorLog:
        return TwoStacksLog(self, windows)


def value_order(column: Column) -> ValueOrder:
    """Return the present order of a column's values; labels may change when there are new values."""
    words = column.dictionary
    if words is not None:
        return ValueOrder(_BY_LABELS, frozen(words.labels))
    is_double = pa.types.is_floating(column.type)
    return ValueOrder(_AS_DOUBLES if is_double else _AS_INTEGERS, frozen(NO_INTEGERS))


@compiled_methods
class ValueOrder(NamedTuple):
    """The order of values of 64 bits."""

    comparison: int
    labels: Integers

    def place(self, value: Whole) -> Whole:
        """Return an integer that compares as the value does."""
        if self.comparison == _AS_INTEGERS:
            return value
        if self.comparison == _AS_DOUBLES:
            place = value ^ ((value >> 63) & _MOST)
            return 0 if place == -1 else place
        return np.int64(self.labels[value])


Reduced = tuple[Whole, Whole]
"""A value, and 1 if there is one."""


@compiled_methods
class ReducedValues(NamedTuple):
    """The parts of an aggregate that reduces values."""

    values: Array
    some: Array
    operation: int
    order: ValueOrder

    def value(self, row: Whole) -> Reduced:
        return np.int64(self.values[row]), np.int64(self.some[row])

    def put(self, row: Whole, value: Reduced) -> None:
        self.values[row], self.some[row] = value

    def load(self, record: Any) -> Reduced:
        return record.value, np.int64(record.some)

    def store(self, record: Any, value: Reduced) -> None:
        record.value, record.some = value

    def merge(self, value: Reduced, later: Reduced) -> Reduced:
        if not later[1]:
            return value
        if not value[1]:
            return later
        if self.operation <= _MAX:
            one, other = self.order.place(value[0]), self.order.place(later[0])
            is_better = one < other if self.operation == _MAX else other < one
            return later if is_better else value
        if self.operation == _AND:
            return value[0] & later[0], value[1]
        return (value[0] | later[0] if self.operation == _OR else value[0] ^ later[0]), value[1]
