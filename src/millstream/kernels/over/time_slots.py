"""Time slots, for SLIDE by time: the last tuple of a slot is known when the watermark passes its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen
from millstream.kernels.core.kernel import BEGINNING, Change, Frontier, Times, Tuples
from millstream.kernels.core.kernel_errors import KernelError
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.state_chunks import Ledger
from millstream.kernels.core.time_order import LEAST, order_of
from millstream.kernels.core.tuple_batch import (
    as_table,
    from_table,
    frontier_as_data,
    frontier_from_data,
    joined,
)
from millstream.kernels.over.requested_results import position
from millstream.kernels.specs import AggregateSpec, SlideSpec

UNFIT = "__ms_unfit"
"""A column with the name of a result that did not fit its type; an error once the result is emitted."""


class TimeSlots:
    """A buffer for the results of tuples that may be the last of their slot, until that is known.

    It holds one tuple of each key at most, if tuples do not come before the watermark allows them to. With
    EMIT EVERY it is also emitted at the instants before the slot's end.
    """

    def __init__(self, slide: SlideSpec, specs: Mapping[str, AggregateSpec]) -> None:
        assert slide.time is not None, "these are slots of time"
        self._slide = slide
        self._every = slide.time
        self._specs = specs
        self._frontier = BEGINNING
        self._held: Tuples | None = None
        self._is_saved = np.zeros(0, np.bool_)
        """Tuples that snapshots have written."""

        self._ledger = Ledger("held")

    def passes(self, frontier: Frontier) -> Frontier:
        """Return the beginning of the open slot: the last of its tuples may be its first."""
        if frontier.is_end or not np.isfinite(frontier.time):
            return frontier
        return Frontier(max(int(frontier.time // self._every) * self._every, LEAST), -1)

    def candidates(self, tuples: Tuples) -> Integers:
        """Return the tuples whose results may be due: the last of a key before some instant."""
        spans = self._slots(tuples)
        if self._slide.emit is not None:
            # Neither ever falls, so that their sum is the same only where both are.
            spans = spans + _whole(tuples.time) // self._slide.emit
        return np.flatnonzero(_following(tuples, spans) < 0)

    def process(self, results: Tuples, frontier: Frontier) -> Tuples:
        """Take the results of candidates, in order; return those that are due, by the instant of that."""
        before, self._frontier = self._frontier, frontier
        # Tuples of an empty batch may have columns that are declared a little differently.
        held = self._held
        tuples = (
            results if held is None or not len(held) else joined([held, results] if len(results) else [held])
        )
        self._is_saved = np.concatenate([self._is_saved, np.zeros(len(results), np.bool_)])
        slots = self._slots(tuples)
        following = _following(tuples, slots)
        due, instants, is_whole = self._due(tuples, slots, following, before)
        self._keep(tuples, slots, following)
        given = tuples.take(due)
        self._check(given)
        columns = given.columns.drop_columns([UNFIT])
        if self._slide.complete is not None:
            columns = columns.append_column(self._slide.complete, pa.array(is_whole))
        return Tuples(columns, np.where(is_whole, given.time, instants), given.origin, given.number)

    def _due(
        self, tuples: Tuples, slots: Integers, following: Codes, before: Frontier
    ) -> tuple[Integers, Integers, Array]:
        """Return the results to emit, the instant at which each is due, and whether its slot is complete."""
        is_closed = np.full(len(tuples), True) if self._frontier.is_end else slots < self._open
        whole = np.flatnonzero(is_closed & (following < 0))
        rows, instants = [whole], [(slots[whole] + 1) * self._every]
        if self._slide.emit is not None and not self._frontier.is_end:
            emit, reached = self._slide.emit, order_of(self._frontier.time, False)
            first = np.maximum(tuples.time // emit, order_of(before.time, False) // emit) + 1
            last = np.minimum(self._reported_until(tuples, slots, following) // emit, reached // emit)
            count = np.where(first <= last, last - first + 1, 0)
            partial = np.repeat(np.arange(len(tuples)), count)
            steps = np.arange(len(partial)) - np.repeat(np.cumsum(count) - count, count)
            rows.append(partial)
            instants.append((first[partial] + steps) * emit)
        row, instant = np.concatenate(rows), np.concatenate(instants)
        order = np.lexsort((row, instant))
        return row[order], instant[order], (np.arange(len(row)) < len(whole))[order]

    def _keep(self, tuples: Tuples, slots: Integers, following: Codes) -> None:
        """Hold those that have not been emitted for the last time."""
        kept = following < 0
        if self._slide.emit is not None:
            until = self._reported_until(tuples, slots, following)
            instant = until // self._slide.emit * self._slide.emit
            kept |= (instant > tuples.time) & (instant > order_of(self._frontier.time, False))
        kept &= (slots >= self._open) & (not self._frontier.is_end)
        self._held = tuples.take(kept)
        self._is_saved = self._is_saved[kept]

    @property
    def _open(self) -> int:
        """Slot of the frontier."""
        return max(order_of(self._frontier.time, False), LEAST + self._every) // self._every

    def _slots(self, tuples: Tuples) -> Integers:
        return _whole(tuples.time) // self._every

    def _reported_until(self, tuples: Tuples, slots: Integers, following: Codes) -> Integers:
        """Return the last instant at which each is the latest of its slot, if the slot does not end then."""
        return np.where(following < 0, slots * self._every + (self._every - 1), tuples.time[following])

    def _check(self, given: Tuples) -> None:
        names = given.columns[UNFIT]
        if names.null_count < len(names):
            row = int(np.argmax(np.asarray(pc.is_valid(names))))
            spec = self._specs[names[row].as_py()]
            raise KernelError(spec.function, spec.text or spec.argument, spec.type, position(given, row))

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        ledger = self._ledger
        dropped = ledger.drop_before((self._open * self._every, 0))
        added: dict[str, pa.Table] = {}
        if self._held is None or not len(self._held):
            dropped += ledger.drop_all()
        else:
            fresh = np.flatnonzero(~self._is_saved)
            if ledger.should_be_rewritten(len(fresh), len(self._held)):
                dropped += ledger.drop_all()
                fresh = np.arange(len(self._held))
            written = self._held.take(fresh)
            added = ledger.add(as_table(written), (int(written.time.max(initial=LEAST)), 0))
            self._is_saved[:] = True
        return Change(added, dropped, {"held-frontier": frontier_as_data(self._frontier), **ledger.meta()})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._frontier = frontier_from_data(meta.get("held-frontier"))
        mine = self._ledger.restored(meta, chunks)
        for name, table in mine:
            self._ledger.marks[name] = (int(from_table(table).time.max()), 0)
        if mine:
            written = from_table(pa.concat_tables([table for _, table in mine]))
            self._is_saved = np.ones(len(written), np.bool_)
            slots = self._slots(written)
            self._keep(written, slots, _following(written, slots))

    @property
    def rows(self) -> int:
        return 0 if self._held is None else len(self._held)


def _whole(times: Times) -> Integers:
    """Return whole numbers: only they have slots."""
    return times.astype(np.int64, copy=False)


def _following(tuples: Tuples, slots: Integers) -> Codes:
    """Return the next tuple of the same key and slot for each; -1 if there is none."""
    keys = KeyTable()
    codes = keys.of(tuples.columns)
    following = np.empty(len(codes), np.int32)
    _link(frozen(codes), frozen(slots), np.full(len(keys), -1, np.int32), following)
    return following


@njit(cache=True)
def _link(codes: Codes, slots: Integers, latest: Codes, following: Codes) -> None:
    for i in range(len(codes) - 1, -1, -1):
        after = latest[codes[i]]
        following[i] = after if after >= 0 and slots[after] == slots[i] else -1
        latest[codes[i]] = i
