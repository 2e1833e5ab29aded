"""UDAs over windows whose edges fall inside panes of time, as those of OVER with SLIDE INTERVAL.

A window ends at the last tuple of its slot, so its lower edge may be anywhere: tuples are stored, as for
built-in aggregates. Only those at the edges are aggregated for each window; whole panes are aggregated once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import AccumulatorLog, Parts, WindowBatch
from millstream.kernels.aggregates.content_aggregates import (
    ContentLog,
    Elements,
    Recomputed,
    concatenated,
    portions,
)
from millstream.kernels.aggregates.value_lists import within
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.buffers import NO_BYTES, Buffer, Codes, Integers, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.udas.content_uda import ContentUda
from millstream.kernels.udas.returned_rows import converted
from millstream.program.program import Program

_LEAST = np.iinfo(np.int64).min


class PanedContent(Recomputed):
    """An accumulator of the arguments of tuples with their times; panes are so long."""

    def __init__(
        self,
        label: str,
        arguments: Mapping[str, pa.DataType],
        programs: tuple[Program, Program],
        length: int,
        condition: str | None,
    ) -> None:
        combined, pane = programs
        super().__init__(
            label,
            arguments,
            ContentUda(pane),
            needed=(),
            condition=condition,
            distinct=False,
            in_order=False,
        )
        self.combined, self.length = combined, length
        self.combine = ContentUda(combined)

    def trail(self, windows: int) -> AccumulatorLog:
        return _PanedLog(self)


class _PanedLog(ContentLog):
    def __init__(self, measure: PanedContent) -> None:
        super().__init__(measure)
        self._paned = measure
        self._slots, self._firsts = Buffer(np.int64), Buffer(np.int32)
        """Pane of each row, and the first row of the same key and pane."""

        self._known = Buffer(np.int64)
        """Number of the first result of the pane whose last row this is; -1 before it is computed."""

        self._counts = Buffer(np.int64)
        self._results = _Results(measure.combined)

    def append(self, parts: Parts, previous: Codes) -> None:
        first = len(self._slots)
        super().append(parts, previous)
        offsets = self._rows.offsets[first:]
        slots = np.full(len(offsets) - 1, _LEAST)
        has_tuple = np.diff(offsets) > 0
        slots[has_tuple] = self._rows.columns[-3][offsets[0] :] // self._paned.length
        firsts = np.empty(len(slots), np.int32)
        self._slots.extend(slots)
        self._firsts.extend(firsts)
        _begin(frozen(previous), first, self._slots.view, self._firsts.view)
        self._known.extend(np.full(len(slots), -1))
        self._counts.extend(np.zeros(len(slots), np.int64))

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        links = frozen(batch.previous), frozen(self._firsts.view)
        windows = frozen(batch.starts), frozen(batch.ends)
        numbers, nothing = np.zeros(len(batch), np.int64), np.zeros(0, np.int32)
        _divide(windows, links, numbers, (nothing, nothing, nothing))
        answers = [self._answered(batch, numbers, *portion) for portion in portions(numbers)]
        return answers[0] if len(answers) == 1 else (concatenated([answer for (answer,) in answers]),)

    def _answered(self, batch: WindowBatch, numbers: Integers, start: int, end: int) -> Parts:
        """Return the results of some windows; the number of runs of tuples of each is known."""
        links = frozen(batch.previous), frozen(self._firsts.view)
        windows = frozen(batch.starts[start:end]), frozen(batch.ends[start:end])
        own = numbers[start:end]
        begins, ends, whole = (np.empty(int(own.sum()), np.int32) for _ in range(3))
        _divide(windows, links, own, (begins, ends, whole))
        new = np.unique(ends[(whole != 0) & (self._known.view[ends] < 0)])
        edges = np.flatnonzero(whole == 0)
        first = len(self._results)
        runs = np.concatenate([self._firsts.view[new], begins[edges]]), np.concatenate([new, ends[edges]])
        counts = self._results.add(self._run(batch, *runs))
        starts = first + np.cumsum(counts) - counts
        self._known.view[new], self._counts.view[new] = starts[: len(new)], counts[: len(new)]
        from_, lengths = self._known.view[ends], self._counts.view[ends]
        from_[edges], lengths[edges] = starts[len(new) :], counts[len(new) :]
        owners = np.repeat(np.repeat(np.arange(end - start), own), lengths)
        elements = self._results.elements(within(from_, lengths), owners, end - start)
        answer = self._paned.combine(elements)
        self._results.keep(first + int(counts[: len(new)].sum()))
        return answer

    def _run(self, batch: WindowBatch, begins: Codes, ends: Codes) -> pa.ListArray:
        """Return the rows of the aggregate of panes for runs of tuples."""
        runs = WindowBatch(batch.keys, ends, begins, ends, batch.previous, NO_BYTES)
        (lists,) = super().ask(0, runs)
        return lists


class _Results:
    """Rows returned for panes, as the combining aggregate takes them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._columns = [Column(arrow_type(field.type)) for field in program.parameters]
        self._codes: Sequence[Buffer] = [Buffer(np.int64) for _ in self._columns]
        self._valid: Sequence[Buffer] = [Buffer(np.uint8) for _ in self._columns]

    def __len__(self) -> int:
        return len(self._codes[0])

    def add(self, lists: pa.ListArray) -> Integers:
        """Add the rows of lists; return how many each has."""
        lengths: Integers = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        sources = np.repeat(np.arange(len(lengths)), lengths)
        fields = lists.flatten().flatten()
        for column, codes, valid, field in zip(self._columns, self._codes, self._valid, fields, strict=True):
            encoded, present = column.encode(converted(self._program.name, field, column.type, sources))
            codes.extend(encoded)
            valid.extend(present)
        return lengths

    def keep(self, count: int) -> None:
        """Forget what was added after the first rows."""
        for buffer in (*self._codes, *self._valid):
            buffer.size = count

    def elements(self, rows: Integers, windows: Integers, count: int) -> Elements:
        codes = [buffer.view[rows] for buffer in self._codes]
        return Elements(windows, count, self._columns, codes, [buffer.view[rows] for buffer in self._valid])


@njit(cache=True)
def _begin(previous: Codes, first: int, slots: Integers, firsts: Codes) -> None:
    """Find the first row of the pane of each new row; a row without a tuple is in the pane before it."""
    for row in range(first, len(slots)):
        before = previous[row]
        if before >= 0 and slots[row] == _LEAST:
            slots[row] = slots[before]
        firsts[row] = firsts[before] if before >= 0 and slots[row] == slots[before] else row


@njit(cache=True)
def _divide(
    windows: tuple[Codes, Codes],
    links: tuple[Codes, Codes],
    numbers: Integers,
    runs: tuple[Codes, Codes, Codes],
) -> None:
    """Divide windows into runs of tuples of one pane; count the runs unless there is room for them."""
    starts, lasts = windows
    previous, firsts = links
    begins, ends, whole = runs
    place = 0
    for i in range(len(starts)):
        place += numbers[i]
        at = place
        row, is_newest = lasts[i], True
        while True:
            begin = max(firsts[row], starts[i])
            if len(begins):
                at -= 1
                begins[at], ends[at] = begin, row
                whole[at] = begin == firsts[row] and not is_newest
            else:
                numbers[i] += 1
            if begin == starts[i]:
                break
            row, is_newest = previous[begin], False
