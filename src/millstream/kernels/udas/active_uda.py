"""ActiveUda: a window UDA that also returns rows when a tuple expires (ACTIVE EXPIRATION)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Array, Buffer, frozen
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.core.time_order import MOST, as_order, from_order, order_of
from millstream.kernels.over.expiring_tuples import ORIGINS, ExpiringTuples, expirations
from millstream.kernels.specs import OverUdaSpec
from millstream.kernels.udas.compiled_machine import Returned, UserAggregateError
from millstream.kernels.udas.machine_state import MachineState
from millstream.kernels.udas.returned_rows import located, merged


class ActiveUda(Kernel):
    """A kernel that takes tuples in order and calls the UDA when a tuple comes and when it expires.

    A tuple expires ``range`` after its own time, when the watermark is beyond that. Rows returned then have
    the columns of the expiring tuple and the time of expiration; so tuples are held until then.
    """

    def __init__(self, call: OverUdaSpec, origins: int = ORIGINS) -> None:
        assert call.range is not None
        self._spec, self._reach = call, call.range
        self._state = MachineState(call.user.program, "user")
        self._held = ExpiringTuples(origins)
        self._clear()

    def _clear(self) -> None:
        self._held.clear()
        self._queue = {
            "q_when": Buffer(np.int64),
            "q_code": Buffer(np.int32),
            "q_row": Buffer(np.int32),
            "q_id": Buffer(np.int64),
        }

    # ------------------------------------------------------------ tuples

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        state = self._state
        codes = state.codes(tuples.columns)
        self._held.add(tuples)
        places = as_order(tuples.time)
        upto = MOST if frontier.is_end else order_of(frontier.time, self._held.is_float)
        queue, pending = self._queue, len(self._queue["q_when"])
        arrays: dict[str, Array] = {
            name: buffer.reserve(pending + len(tuples)) for name, buffer in queue.items()
        }
        parameters = state.machine.encoded(tuples.columns, self._spec.user.arguments)
        span = np.array([0, pending])
        when = as_order(expirations(tuples.time, self._reach))
        arguments = codes, frozen(places), frozen(when), np.int64(upto), span
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
        self._held.forget(first)
        if frontier.is_end:
            self._clear()
        elif state.is_wasteful():
            state.start_over()
            self._line_up()
        return out

    def _results(self, returned: Returned, count: int) -> Tuples:
        sources, held = returned.sources, self._held
        rows = np.where(sources >= 0, len(held) - count + sources, -1 - sources - held.base)
        results = dict(zip(self._spec.user.results, returned.columns, strict=True))
        return held.taken(rows, sources < 0, from_order(returned.times, held.is_float), results)

    def passes(self, frontier: Frontier) -> Frontier:
        """Return the frontier of results: tuples that expire at it come after all tuples of that instant."""
        return frontier if frontier.is_end else Frontier(frontier.time, -1)

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        return merged([self._held.snapshot(), self._state.snapshot()])

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._state.restore(meta, chunks)
        self._held.restore(meta, chunks)
        self._line_up()

    def _line_up(self) -> None:
        """Rebuild the queue from the tuples that are held."""
        self._queue = {name: Buffer(buffer.data.dtype) for name, buffer in self._queue.items()}
        held, state = self._held, self._state
        if held.table is None or not len(held):
            return
        table = next(t for t in state.machine.kept if t.is_window)
        ids = held.numbers
        row = table.rows_of(ids)
        codes = state.keys.of(held.table)
        state.machine.reserve(len(state.keys), 0)
        self._queue["q_when"].extend(as_order(expirations(held.times, self._reach)))
        self._queue["q_code"].extend(codes)
        self._queue["q_row"].extend(row)
        self._queue["q_id"].extend(ids)

    @property
    def rows(self) -> int:
        return self._state.rows + len(self._held)
