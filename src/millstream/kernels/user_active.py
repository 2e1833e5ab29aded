"""UserActive: a window aggregate of the user's that also speaks when a tuple leaves (ACTIVE EXPIRATION)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.arrays import Array, Buffer, Integers, frozen
from millstream.kernels.base import Change, Frontier, Kernel, Times, Tuples
from millstream.kernels.chunks import Ledger
from millstream.kernels.specs import UserOverSpec
from millstream.kernels.times import MOST, as_order, from_order, order_of
from millstream.kernels.user_base import merged
from millstream.kernels.user_machine import UserAggregateError
from millstream.kernels.user_rows import located
from millstream.kernels.user_state import UserState

AFTER_ALL = 1 << 30
"""The origin of what happens at an instant after all tuples of that instant."""

_ID, _TIME, _ORIGIN, _NUMBER = "__ms_held_id", "__ms_held_time", "__ms_held_origin", "__ms_held_number"


class UserActive(Kernel):
    """Takes tuples in order. A tuple leaves so long after its own time, when punctuation is beyond that.

    What EXPIRE returns comes with the columns of the tuple that leaves, stamped with the instant at which it
    does; so tuples are held until then.
    """

    def __init__(self, spec: UserOverSpec) -> None:
        assert spec.range is not None
        self._spec, self._reach = spec, spec.range
        self._state = UserState(spec.user.program, "user")
        self._ledger = Ledger("held")
        self._is_float = False
        self._expired = 0
        self._clear()

    def _clear(self) -> None:
        self._held: pa.Table | None = None
        self._base = 0
        """The number of the first tuple that is held."""

        self._fresh: list[pa.Table] = []
        self._queue = {
            "q_when": Buffer(np.int64),
            "q_code": Buffer(np.int32),
            "q_row": Buffer(np.int32),
            "q_id": Buffer(np.int64),
        }

    # ------------------------------------------------------------ tuples

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        self._is_float = tuples.time.dtype == np.float64
        state = self._state
        codes = state.codes(tuples.columns)
        self._hold(tuples)
        places = as_order(tuples.time)
        leaving = as_order(self._leaving(tuples.time))
        upto = MOST if frontier.is_end else order_of(frontier.time, self._is_float)
        queue, pending = self._queue, len(self._queue["q_when"])
        arrays: dict[str, Array] = {
            name: buffer.reserve(pending + len(tuples)) for name, buffer in queue.items()
        }
        parameters = state.machine.encoded(tuples.columns, self._spec.user.arguments)
        span = np.array([0, pending])
        arguments = codes, frozen(places), frozen(leaving), np.int64(upto), span
        try:
            returned = state.machine.call(
                "run", len(tuples), arguments, {**parameters, **arrays}, pending + len(tuples)
            )
        except UserAggregateError as failure:
            raise located(failure, tuples, self._spec.user.arguments) from None
        first, last = span.tolist()
        state.touch(np.unique(arrays["q_code"][:first]))
        out = self._results(returned, len(tuples))
        for name, buffer in queue.items():
            buffer.size = last
            rest = Buffer(buffer.data.dtype)
            rest.extend(buffer.view[first:])
            queue[name] = rest
        self._forget(first)
        if frontier.is_end:
            self._clear()
        elif state.is_wasteful():
            state.start_over()
            self._line_up()
        return out

    def _leaving(self, time: Times) -> Times:
        """When tuples leave; what is beyond all times never does."""
        if self._is_float:
            return time + np.float64(self._reach)
        reach = int(self._reach)
        return np.where(time > MOST - 1 - reach, MOST - 1, time + reach)

    def _hold(self, tuples: Tuples) -> None:
        count = len(tuples)
        if not count and self._held is not None:
            return
        held = 0 if self._held is None else self._held.num_rows
        table = tuples.columns
        for name, values in (
            (_ID, np.arange(self._base + held, self._base + held + count)),
            (_TIME, as_order(tuples.time)),
            (_ORIGIN, tuples.origin),
            (_NUMBER, tuples.number),
        ):
            table = table.append_column(name, pa.array(values))
        self._fresh.append(table)
        self._held = table if self._held is None else pa.concat_tables([self._held, table])

    def _forget(self, count: int) -> None:
        if self._held is not None and count:
            self._held = self._held.slice(count)
            if self._held.num_rows < count:
                self._held = self._held.combine_chunks()  # so as not to hold on to what is gone
        self._base += count

    def _results(self, returned: Any, count: int) -> Tuples:
        assert self._held is not None, "there has been a batch, if only an empty one"
        newest = self._held.num_rows - count
        sources = returned.sources
        rows = np.where(sources >= 0, newest + sources, -1 - sources - self._base)
        held = self._held.take(pa.array(rows))
        expired = sources < 0
        number = np.asarray(held[_NUMBER]).copy()
        number[expired] = self._expired + np.arange(int(expired.sum()))
        self._expired += int(expired.sum())
        origin = np.where(expired, AFTER_ALL, np.asarray(held[_ORIGIN])).astype(np.int32)
        columns = held.drop_columns([_ID, _TIME, _ORIGIN, _NUMBER])
        for name, column in zip(self._spec.user.results, returned.columns, strict=True):
            columns = columns.append_column(name, column)
        return Tuples(columns, from_order(returned.times, self._is_float), origin, number)

    def passes(self, frontier: Frontier) -> Frontier:
        """What leaves at the frontier leaves after all tuples of that instant, which are still to come."""
        return frontier if frontier.is_end else Frontier(frontier.time, -1)

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        ledger = self._ledger
        dropped = ledger.drop_before((self._base, 0))
        added: dict[str, pa.Table] = {}
        held = 0 if self._held is None else self._held.num_rows
        if ledger.should_be_rewritten(sum(t.num_rows for t in self._fresh), held):
            dropped += ledger.drop_all()
            self._fresh = [] if self._held is None else [self._held]
        for table in (table for table in self._fresh if table.num_rows):
            last = int(table[_ID][-1].as_py())
            if last >= self._base:
                added |= ledger.add(table, (last, 0))
        self._fresh = []
        meta = {**ledger.meta(), "base": self._base, "is_float": self._is_float, "expired": self._expired}
        return merged([Change(added, dropped, meta), self._state.snapshot()])

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._state.restore(meta, chunks)
        self._clear()
        self._base = int(meta.get("base", 0))
        self._is_float = bool(meta.get("is_float", False))
        self._expired = int(meta.get("expired", 0))
        mine = self._ledger.restored(meta, chunks)
        for name, table in mine:
            self._ledger.marks[name] = (int(table[_ID][-1].as_py()), 0)
        if mine:
            everything = pa.concat_tables([table for _, table in mine])
            before = int(np.searchsorted(np.asarray(everything[_ID]), self._base))
            self._held = everything.slice(before)
        self._line_up()

    def _line_up(self) -> None:
        """The queue again, from the tuples that are held."""
        self._queue = {name: Buffer(buffer.data.dtype) for name, buffer in self._queue.items()}
        if self._held is None or not self._held.num_rows:
            return
        state = self._state
        table = next(t for t in state.machine.kept if t.is_window)
        ids: Integers = np.asarray(self._held[_ID])
        row = table.rows_of(ids)
        codes = state.keys.of(self._held)
        state.machine.reserve(len(state.keys), 0)
        times = from_order(np.asarray(self._held[_TIME]), self._is_float)
        self._queue["q_when"].extend(as_order(self._leaving(times)))
        self._queue["q_code"].extend(codes)
        self._queue["q_row"].extend(row)
        self._queue["q_id"].extend(ids)

    @property
    def rows(self) -> int:
        return self._state.rows + (0 if self._held is None else self._held.num_rows)
