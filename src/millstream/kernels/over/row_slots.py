"""Panes of rows, for SLIDE n ROWS: tuples are counted, and those of a pane become one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Parts
from millstream.kernels.aggregates.keyed_state import KeyedState
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers, frozen
from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.specs import AggregateSpec, SlideSpec
from millstream.windows.slot_panes import Panes

NOTHING, PARTIAL, WHOLE = 0, 1, 2
"""Results of a tuple."""

_CONTINUED, _FULL = 1, 2
_NO_PANE = -1

_COUNT = "__ms_count"


@dataclass(frozen=True)
class FilledSlots:
    """Results of tuples, and the panes that they filled, by their last tuples in order."""

    gives: Bytes
    lasts: Integers
    panes: pa.Table


class RowSlots(KeyedState):
    """The number of tuples of each key, and the accumulators of the pane that is being filled.

    Tuples that no window has (of a tumble, those before its window) are only counted.
    """

    def __init__(
        self, slide: SlideSpec, panes: Panes | None, specs: Sequence[AggregateSpec], reach: int
    ) -> None:
        assert slide.rows is not None, "these are slots of tuples"
        self._rule = np.array(
            [slide.rows, slide.emit or slide.rows, reach, 0 if panes is None else panes.period]
        )
        self._starts = np.array([] if panes is None else panes.starts, np.int64)
        super().__init__(() if panes is None else specs, "slots")

    def _start_over(self) -> None:
        super()._start_over()
        self._counts = Buffer(np.int64, 0)
        self._open = Buffer(np.int32, -1)

    def fill(self, tuples: Tuples, frontier: Frontier) -> FilledSlots:
        """Take tuples, which come in order, and return results and filled panes."""
        codes = self._codes(tuples)
        count = len(tuples)
        gives, groups = np.empty(count, np.uint8), np.empty(count, np.int32)
        keys, lasts, flags = np.empty(count, np.int32), np.empty(count, np.int64), np.empty(count, np.uint8)
        per_key = self._counts.resize(len(self._keys)), self._open.resize(len(self._keys))
        size = _fill(
            frozen(codes),
            frozen(self._rule),
            frozen(self._starts),
            per_key,
            gives,
            groups,
            (keys, lasts, flags),
        )
        filled = FilledSlots(gives, lasts[:0], pa.table({}))
        if self._measures:
            filled = self._fold(tuples, gives, groups, (keys[:size], lasts[:size], flags[:size]))
        if frontier.is_end:
            self._start_over()
        else:
            self._tidy()
        return filled

    def _fold(
        self, tuples: Tuples, gives: Bytes, groups: Codes, panes: tuple[Codes, Integers, Bytes]
    ) -> FilledSlots:
        """Aggregate panes, and keep those that are not full."""
        keys, lasts, flags = panes
        if (groups < 0).any():
            needed = groups >= 0
            tuples, groups = tuples.take(needed), groups[needed]
        continued = np.flatnonzero(flags & _CONTINUED)
        full, rest = np.flatnonzero(flags & _FULL), np.flatnonzero(flags & _FULL == 0)
        full = full[np.argsort(lasts[full])]
        columns: dict[str, pa.Array] = {}
        for number, measure in enumerate(self._measures):
            kept, into = self._grown(number), measure.zeros(len(keys))
            _move(kept, keys[continued], into, continued)
            measure.fold(groups, measure.of_tuples(tuples), into, running=False)
            _move(measure.zeros(len(keys)), full, kept, keys[full])
            _move(into, rest, kept, keys[rest])
            columns |= measure.to_table(tuple(part[full] if len(part) else part for part in into))
        return FilledSlots(gives, lasts[full], pa.table(columns))

    def _columns(self, codes: Array) -> dict[str, pa.Array]:
        return super()._columns(codes) | {_COUNT: pa.array(self._counts.view[codes])}

    def _import(self, table: pa.Table) -> Codes:
        codes = super()._import(table)
        self._counts.resize(len(self._keys))[codes] = arrow_buffers.single(table[_COUNT]).to_numpy()
        return codes


def _move(source: Parts, rows: Array, target: Parts, places: Array) -> None:
    for parts, others in zip(source, target, strict=True):
        if len(others):
            others[places] = parts[rows]


@njit(cache=True)
def _fill(
    codes: Codes,
    rule: Integers,
    starts: Integers,
    per_key: tuple[Integers, Codes],
    gives: Bytes,
    groups: Codes,
    panes: tuple[Codes, Integers, Bytes],
) -> int:
    """Compute the result and pane of each tuple, and key, last tuple and flags of each pane; count panes."""
    slide, emit, reach, period = rule
    counts, current = per_key
    keys, lasts, flags = panes
    size = 0
    for i in range(len(codes)):
        key = codes[i]
        number = counts[key] + 1
        counts[key] = number
        to_slide, to_emit = -number % slide, -number % emit
        gives[i] = WHOLE if to_slide == 0 else PARTIAL if to_emit == 0 else NOTHING
        if period == 0 or min(to_slide, to_emit) >= reach:
            groups[i] = _NO_PANE
            continue
        begins = ends = False
        for start in starts:
            begins |= (number - 1) % period == start
            ends |= number % period == start
        pane = current[key]
        if pane < 0:
            pane = size
            size += 1
            current[key] = pane
            keys[pane] = key
            flags[pane] = 0 if begins else _CONTINUED
        groups[i] = pane
        lasts[pane] = i
        if ends:
            flags[pane] |= _FULL
            current[key] = _NO_PANE
    for pane in range(size):
        current[keys[pane]] = _NO_PANE
    return size
