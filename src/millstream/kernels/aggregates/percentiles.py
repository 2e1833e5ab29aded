"""Order statistics: percentiles, the most frequent value, the number of different values."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates import value_lists
from millstream.kernels.aggregates.accumulator import Accumulator, AccumulatorLog, Parts, WindowBatch
from millstream.kernels.aggregates.min_max_bitwise import ValueOrder, value_order
from millstream.kernels.aggregates.treap import Percentages, SlidingTreaps, Treaps
from millstream.kernels.core.buffers import NO_INTEGERS, Codes, Doubles, Integers, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.specs import AggregateSpec

WAYS = {"percentile": 0, "percentile_disc": 1, "percentile_approx": 1}
"""Rank method of percentiles: 0 interpolates between two values, 1 takes the upper one."""


class OrderStatistics(Accumulator):
    """A multiset of values. Aggregates of an argument share it, each with its percentages.

    A row has its values as a content or, where values come one by one and never leave, as the root of a tree;
    never both.
    """

    parts: ClassVar = {"content": object, "root": np.int64}

    def __init__(self, argument: str, type_: pa.DataType, *, high: bool = False) -> None:
        super().__init__(argument)
        self.column = Column(type_)
        self.high = high
        """True if of equally frequent values the mode is the highest, False if the lowest."""

        self._wanted: list[tuple[float, int, int]] = []
        self._forest = Treaps()
        self._growth = value_lists.GarbageEstimate()

    @property
    def name(self) -> str:
        return f"{'high ' if self.high else ''}values({self.argument})"

    @property
    def words(self) -> int:
        return self._growth.reported(self.column.words)

    def want(self, spec: AggregateSpec) -> None:
        self._wanted += [one for one in _percentages(spec) if one not in self._wanted]

    def columns_of(self, spec: AggregateSpec) -> list[int]:
        """Return the columns of the percentiles that an aggregate needs."""
        return [self._wanted.index(one) for one in _percentages(spec)]

    def of_tuples(self, tuples: Tuples) -> Parts:
        codes, some = self.column.encode(tuples.columns[self.argument])
        return value_lists.singles([codes], some), np.zeros(len(codes), np.int64)

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        contents = self._contents(parts)
        if not running:
            value_lists.gathered(groups, contents, into[0], 1)
            return (NO_INTEGERS,)
        kept, roots = into
        self._plant(np.unique(groups), kept, roots)
        lengths, elements = value_lists.flat(contents, 1)
        rows = np.concatenate([[0], np.cumsum(lengths)]), elements[:, 0]
        return self._forest.run(groups, rows, roots, self.order(), self.percentages(), high=self.high)

    def _plant(self, groups: Integers, kept: value_lists.Contents, roots: Integers) -> None:
        """Build trees from the restored contents of groups, if they have any."""
        lengths, elements = value_lists.flat(kept[groups], 1)
        if len(elements):
            some = groups[lengths > 0]
            sizes = lengths[lengths > 0]
            roots[some] = self._forest.build(sizes, elements[:, 0], self.order(), high=self.high)
            kept[some] = 0

    def _contents(self, parts: Parts) -> value_lists.Contents:
        """Return the contents of rows of either kind."""
        contents, roots = parts
        if roots.any():
            contents = contents.copy()
            rows = np.flatnonzero(roots)
            sizes, values = self._forest.contents(roots[rows])
            contents[rows] = value_lists.pieces(sizes, values[:, None])
        return contents

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        lengths, elements = value_lists.flat(self._contents(parts), 1)
        return {self.name: value_lists.as_list(self.column, lengths, elements[:, 0])}

    def of_table(self, table: pa.Table) -> Parts:
        lengths, codes, _ = value_lists.of_list(self.column, table[self.name])
        self._growth.saw(len(codes))
        return value_lists.pieces(lengths, codes[:, None]), np.zeros(len(lengths), np.int64)

    def order(self) -> ValueOrder:
        return value_order(self.column)

    def percentages(self) -> Percentages:
        shares = np.array([share for share, _, _ in self._wanted], np.float64)
        ways = np.array([way for _, way, _ in self._wanted], np.int64)
        tops = np.array([top for _, _, top in self._wanted], np.int64)
        return frozen(shares), frozen(ways), frozen(tops)

    def trail(self, windows: int) -> AccumulatorLog:
        return _OrderLog(self, windows)


class _OrderLog(AccumulatorLog):
    """A log with a tree for each key and window, from which the values of expired rows are removed."""

    def __init__(self, measure: OrderStatistics, windows: int) -> None:
        super().__init__(measure)
        self._measure = measure
        self._rows = value_lists.ValueLists(1)
        self._forests = [SlidingTreaps() for _ in range(windows)]

    def append(self, parts: Parts, previous: Codes) -> None:
        self._rows.append(self._measure._contents(parts))

    def rows(self, indices: Integers) -> Parts:
        return self._rows.contents(indices), np.zeros(len(indices), np.int64)

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        measure = self._measure
        rows = self._rows.offsets, self._rows.columns[0]
        forest = self._forests[window]
        return forest.ask(batch, rows, measure.order(), measure.percentages(), high=measure.high)


def _percentages(spec: AggregateSpec) -> list[tuple[float, int, int]]:
    if spec.function not in WAYS:
        return []
    top = int(bool(spec.order) and spec.order[0].descending)
    return [(float(share), WAYS[spec.function], top) for share in spec.parameters]


def interpolated(
    column: Column, spec: AggregateSpec, sizes: Integers, values: tuple[Integers, Integers]
) -> Doubles:
    """Interpolate percentiles between two values, with Spark's weights."""
    low, high = (_numbers(column, part) for part in values)
    positions = np.maximum(sizes - 1, 0)[:, None] * np.array(spec.parameters, np.float64)[None, :]
    with np.errstate(invalid="ignore", over="ignore"):
        between = (np.ceil(positions) - positions) * low + (positions - np.floor(positions)) * high
    return np.where((np.ceil(positions) == np.floor(positions)) | (low == high), low, between)


def _numbers(column: Column, codes: Integers) -> Doubles:
    if pa.types.is_floating(column.type):
        return codes.view(np.float64)
    return codes.astype(np.float64)
