"""Aggregates that are recomputed from the content of each window: lists, DISTINCT, rare ones of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates import value_lists
from millstream.kernels.aggregates.accumulator import Accumulator, AccumulatorLog, Parts, WindowBatch
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import as_order

_AT_ONCE = 1 << 20
"""Number of elements of windows that are processed at a time."""


@dataclass(frozen=True)
class Elements:
    """Elements of windows, one window after the other, in the order of the stream."""

    windows: Integers
    """Window of each element, from 0."""

    count: int
    """Number of windows, including empty ones."""

    columns: Sequence[Column]
    codes: Sequence[Integers]
    valid: Sequence[Array]

    @property
    def lengths(self) -> Integers:
        return np.bincount(self.windows, minlength=self.count)

    def array(self, argument: int) -> pa.Array:
        """Return the values of an argument."""
        return self.columns[argument].decode(self.codes[argument], self.valid[argument])

    def places(self, argument: int) -> Integers:
        """Return integers in the order of the values of an argument."""
        column, codes = self.columns[argument], self.codes[argument]
        if column.dictionary is not None:
            return column.dictionary.labels[codes]
        if pa.types.is_floating(column.type):
            places = codes ^ ((codes >> 63) & np.int64(2**63 - 1))
            return np.where(places == -1, 0, places)
        return codes

    def take(self, rows: Array) -> Elements:
        return replace(
            self,
            windows=self.windows[rows],
            codes=[codes[rows] for codes in self.codes],
            valid=[valid[rows] for valid in self.valid],
        )

    def distinct(self) -> Elements:
        """Keep only the first of equal elements of a window."""
        keys = [
            key for i in range(len(self.columns)) for key in (self.places(i) * self.valid[i], self.valid[i])
        ]
        keys.append(self.windows)
        order = np.lexsort(keys)
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = False
        for key in keys:
            ordered = key[order]
            is_new[1:] |= ordered[1:] != ordered[:-1]
        return self.take(np.sort(order[is_new]))


Summary = Callable[[Elements], Parts]
"""A function from the elements of windows to their aggregates."""


class Recomputed(Accumulator):
    """An accumulator of the values of all arguments, with positions where tuples come out of order.

    Tuples do not count that lack one of the ``needed`` arguments, or for which the condition does not hold.
    """

    parts: ClassVar = {"content": object}

    def __init__(
        self,
        label: str,
        arguments: Mapping[str, pa.DataType],
        summary: Summary,
        *,
        needed: Sequence[str],
        condition: str | None,
        distinct: bool,
        in_order: bool,
    ) -> None:
        super().__init__(next(iter(arguments)))
        self._label = label
        self.columns = {name: Column(type_) for name, type_ in arguments.items()}
        self.summary = summary
        self._needed, self._condition = needed, condition
        self.distinct = distinct
        self.in_order = in_order
        self._growth = value_lists.GarbageEstimate()

    @property
    def name(self) -> str:
        return self._label

    @property
    def words(self) -> int:
        words = [column.words for column in self.columns.values()]
        if isinstance(self.summary, DistinctValues):
            words += [measure.words for measure in self.summary.measures]
        return self._growth.reported(max(words))

    @property
    def width(self) -> int:
        return 2 * len(self.columns) + (0 if self.in_order else 3)

    def of_tuples(self, tuples: Tuples) -> Parts:
        encoded = {name: column.encode(tuples.columns[name]) for name, column in self.columns.items()}
        numbers: list[Array] = [part for pair in encoded.values() for part in pair]
        if not self.in_order:
            numbers += [as_order(tuples.time), tuples.origin, tuples.number]
        present = np.ones(len(tuples), np.uint8)
        for name in self._needed:
            present &= encoded[name][1]
        if self._condition is not None:
            holds, known = Column(pa.bool_()).encode(tuples.columns[self._condition])
            present &= known & holds.astype(np.uint8)
        return (value_lists.singles(numbers, present),)

    @property
    def arguments(self) -> tuple[str, ...]:
        return (*self.columns, *([] if self._condition is None else [self._condition]))

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        return self.fold_for(np.arange(len(groups)) if running else None, groups, parts, into)

    def fold_for(self, rows: Array | None, groups: Codes, parts: Parts, into: Parts) -> Parts:
        """Merge rows into their groups; return the state of the group after some of them only."""
        out = () if rows is None else self._running(rows, groups, parts[0], into[0])
        value_lists.gathered(groups, parts[0], into[0], self.width)
        return out

    def _running(
        self, rows: Array, groups: Codes, contents: value_lists.Contents, into: value_lists.Contents
    ) -> Parts:
        """Aggregate as over a log that begins with the state of each group."""
        touched, places = np.unique(groups, return_inverse=True)
        codes = places.astype(np.int32)
        count = len(touched)
        previous = _linked(frozen(codes), count)
        trail = self.trail(1)
        trail.append((np.concatenate([into[touched], contents]),), previous)
        asked = codes[rows], (count + rows).astype(np.int32)
        return trail.ask(0, WindowBatch(count, asked[0], asked[0], asked[1], previous, np.zeros(0, np.uint8)))

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        lengths, elements = value_lists.flat(parts[0], self.width)
        numbers = [np.ascontiguousarray(elements[:, i]) for i in range(self.width)]
        table = {
            f"{self.name}.{name}": value_lists.as_list(column, lengths, numbers[2 * i], numbers[2 * i + 1])
            for i, (name, column) in enumerate(self.columns.items())
        }
        whole = Column(pa.int64())
        for name, values in zip(_POSITION, numbers[2 * len(self.columns) :], strict=False):
            table[f"{self.name}.{name}"] = value_lists.as_list(whole, lengths, values)
        return table

    def of_table(self, table: pa.Table) -> Parts:
        numbers: list[Array] = []
        lengths = np.zeros(0, np.int64)
        for name, column in self.columns.items():
            lengths, codes, valid = value_lists.of_list(column, table[f"{self.name}.{name}"])
            numbers += [codes, valid]
        if not self.in_order:
            whole = Column(pa.int64())
            numbers += [value_lists.of_list(whole, table[f"{self.name}.{name}"])[1] for name in _POSITION]
        self._growth.saw(int(lengths.sum()))
        return (value_lists.pieces(lengths, np.stack([n.astype(np.int64) for n in numbers], axis=1)),)

    def trail(self, windows: int) -> AccumulatorLog:
        return ContentLog(self)


_POSITION = ("__time", "__origin", "__number")


class ContentLog(AccumulatorLog):
    """A log of the values of tuples."""

    def __init__(self, measure: Recomputed) -> None:
        super().__init__(measure)
        self._measure = measure
        self._rows = value_lists.ValueLists(measure.width)

    def append(self, parts: Parts, previous: Codes) -> None:
        self._rows.append(parts[0])

    def rows(self, indices: Integers) -> Parts:
        return (self._rows.contents(indices),)

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        sizes = np.empty(len(batch), np.int64)
        log = frozen(batch.previous), frozen(self._rows.offsets)
        _measure(batch.windows, log, sizes)
        answers = [self._answer(batch, log, sizes, start, end) for start, end in portions(sizes)]
        if len(answers) == 1:
            return answers[0]
        return tuple(concatenated(parts) for parts in zip(*answers, strict=True))

    def _answer(
        self, batch: WindowBatch, log: tuple[Array, Array], sizes: Integers, start: int, end: int
    ) -> Parts:
        measure, wanted = self._measure, sizes[start:end]
        rows = np.empty(int(wanted.sum()), np.int64)
        _lay_out(tuple(frozen(part[start:end]) for part in batch.windows[:3]), log, frozen(wanted), rows)
        windows = np.repeat(np.arange(end - start), wanted)
        columns = self._rows.columns
        if not measure.in_order:
            time, origin, number = (column[rows] for column in columns[-3:])
            order = np.lexsort((number, origin, time, windows))
            rows = rows[order]
        count = 2 * len(measure.columns)
        elements = Elements(
            windows,
            end - start,
            list(measure.columns.values()),
            [column[rows] for column in columns[:count:2]],
            [column[rows].astype(np.uint8) for column in columns[1:count:2]],
        )
        return measure.summary(elements.distinct() if measure.distinct else elements)


def portions(sizes: Integers) -> Iterator[tuple[int, int]]:
    """Split windows into portions with a limited number of elements; yield at least one."""
    start, total = 0, 0
    for i, size in enumerate(sizes.tolist()):
        if total + size > _AT_ONCE and i > start:
            yield start, i
            start, total = i, 0
        total += size
    yield start, len(sizes)


def concatenated(parts: Sequence[Array | pa.Array]) -> Array | pa.Array:
    return pa.concat_arrays(parts) if isinstance(parts[0], pa.Array) else np.concatenate(parts)


class DistinctValues:
    """A summary that applies another aggregate, through its accumulators, to distinct values only."""

    def __init__(self, arguments: Sequence[str], measures: Sequence[Accumulator]) -> None:
        self._arguments = arguments
        self.measures = measures
        self._widths = [0] * len(measures)

    def split(self, parts: Parts) -> list[Parts]:
        """Return the parts of each accumulator."""
        ends = np.cumsum(self._widths).tolist()
        return [parts[end - width : end] for end, width in zip(ends, self._widths, strict=True)]

    def __call__(self, elements: Elements) -> Parts:
        count = len(elements.windows)
        table = pa.table({name: elements.array(i) for i, name in enumerate(self._arguments)})
        numbers = np.arange(count)
        tuples = Tuples(table, numbers, np.zeros(count, np.int32), numbers)
        out: list[Array] = []
        for i, measure in enumerate(self.measures):
            answers = gathered(measure, tuples, elements.windows.astype(np.int32), elements.count)
            self._widths[i] = len(answers)
            out += answers
        return tuple(out)


def gathered(accumulator: Accumulator, tuples: Tuples, groups: Codes, count: int) -> Parts:
    """Return the aggregates of groups of tuples."""
    parts = accumulator.zeros(count)
    accumulator.fold(groups, accumulator.of_tuples(tuples), parts, running=False)
    each, nothing = np.arange(count, dtype=np.int32), np.full(count, -1, np.int32)
    trail = accumulator.trail(1)
    trail.append(parts, nothing)
    return trail.ask(0, WindowBatch(count, each, each, each, nothing, np.zeros(0, np.uint8)))


# ---------------------------------------------------------------- compiled


@njit(cache=True)
def _linked(codes: Codes, count: int) -> Codes:
    """Link the rows of a log that begins with a row for each group: return the previous row of each."""
    latest = np.arange(count).astype(np.int32)
    previous = np.full(count + len(codes), -1, np.int32)
    for i in range(len(codes)):
        previous[count + i] = latest[codes[i]]
        latest[codes[i]] = count + i
    return previous


@njit(cache=True)
def _measure(windows: Parts, log: tuple[Codes, Integers], sizes: Integers) -> None:
    """Count the elements of windows; one that ends at no row is empty."""
    _, starts, ends, _ = windows
    previous, offsets = log
    for i in range(len(starts)):
        row = np.int64(ends[i])
        if row < 0:
            sizes[i] = 0
            continue
        size = offsets[row + 1] - offsets[row]
        while row != starts[i]:
            row = np.int64(previous[row])
            size += offsets[row + 1] - offsets[row]
        sizes[i] = size


@njit(cache=True)
def _lay_out(windows: Parts, log: tuple[Codes, Integers], sizes: Integers, out: Integers) -> None:
    """Write the elements of windows to ``out``, those of each in the order of the log."""
    _, starts, ends = windows
    previous, offsets = log
    place = 0
    for i in range(len(starts)):
        place += sizes[i]
        last = place
        row = np.int64(ends[i])
        while row >= 0:
            for k in range(offsets[row + 1] - 1, offsets[row] - 1, -1):
                last -= 1
                out[last] = k
            if row == starts[i]:
                break
            row = np.int64(previous[row])
