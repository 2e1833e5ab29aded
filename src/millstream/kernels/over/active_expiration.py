"""ActiveAggregate: an aggregate over a time range that is also emitted when a tuple expires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.catalog.builtin_aggregates import accumulator_row
from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import WindowBatch
from millstream.kernels.aggregates.accumulator_selection import argument_types, check
from millstream.kernels.core.buffers import NO_BYTES, Array, Codes, Integers, frozen
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.core.time_order import as_order, earlier, order_of
from millstream.kernels.over.expiring_tuples import ORIGINS, ExpiringTuples, expirations
from millstream.kernels.over.frame_aggregates import FrameAggregates
from millstream.kernels.over.requested_results import RequestedResults
from millstream.kernels.over.tuple_log import RangeWindow
from millstream.kernels.specs import USER, OverSpec
from millstream.kernels.udas.returned_rows import merged


class ActiveAggregate(Kernel):
    """A kernel that takes tuples in order and emits each when it comes and when it expires.

    A tuple expires ``range`` after its own time, when the watermark is beyond that. It is then stamped with
    that instant, and has the aggregate of the tuples left in the window. Tuples are held until then.
    """

    def __init__(self, call: OverSpec, origins: int = ORIGINS) -> None:
        assert call.range is not None
        check([call.aggregate])
        self._call, self._reach = call, call.range
        self._window = _Window(call)
        self._held = ExpiringTuples(origins)

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        self._held.add(tuples)
        events = self._window.events(tuples, frontier)
        rows = events.rows - events.first
        time = np.where(
            events.expired, expirations(self._held.times[rows], self._reach), self._held.times[rows]
        )
        given = self._held.taken(rows, events.expired, time, {})
        results = self._window.answers(given, events)
        columns = given.columns.append_column(self._call.aggregate.result, results)
        if frontier.is_end:
            self._held.clear()
        else:
            self._held.forget(int(events.expired.sum()))
        self._window.tidy()
        return Tuples(columns, given.time, given.origin, given.number)

    def passes(self, frontier: Frontier) -> Frontier:
        """Return the frontier of results: tuples that expire at it come after all tuples of that instant."""
        return frontier if frontier.is_end else Frontier(frontier.time, -1)

    def snapshot(self) -> Change:
        return merged([self._window.snapshot(), self._held.snapshot()])

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._window.restore(meta, chunks)
        self._held.restore(meta, chunks)

    @property
    def rows(self) -> int:
        return self._window.rows + len(self._held)


class _Events:
    """Arrivals and expirations of tuples, in order.

    ``rows`` are their rows in the log, where those that are held begin with the ``first``; ``starts`` and
    ``ends`` are those of the window then, the first of them -1 if it is empty.
    """

    def __init__(self, first: int, count: int) -> None:
        self.first = first
        self.rows = np.empty(count, np.int64)
        self.expired = np.zeros(count, np.bool_)
        self.codes = np.empty(count, np.int32)
        self.starts, self.ends = np.empty(count, np.int32), np.empty(count, np.int32)


class _Window(FrameAggregates):
    """The window of one call, and the order of arrivals and expirations."""

    def __init__(self, call: OverSpec) -> None:
        super().__init__([call], "log")

    def events(self, tuples: Tuples, frontier: Frontier) -> _Events:
        """Take tuples, which come in order, and return the events."""
        if self._types is None:
            self._types = argument_types((call.aggregate for call in self._calls), tuples.columns.schema)
            self._start_over()
        self._frontier, self._is_float = frontier, tuples.time.dtype == np.float64
        window = self._windows[0]
        assert isinstance(window, RangeWindow)
        first, fresh = window.passed, len(self._log)
        order = as_order(tuples.time)
        parts = [measure.of_tuples(tuples) for measure in self._measures]
        rows, (starts,) = self._append(order, self._keys.of(tuples.columns), parts)
        if frontier.is_end:
            window.passed = len(self._log)
        else:
            window.expire(self._log, self._bound)
        gone = np.arange(first, window.passed)
        # A tuple expires before the first tuple whose window does not have it.
        before = np.searchsorted(
            earlier(order, self._is_float, window.distance), self._log.times.view[gone], "right"
        )
        events = _Events(first, len(rows) + len(gone))
        events.expired[before + np.arange(len(gone))] = True
        came = ~events.expired
        events.rows[came], events.rows[events.expired] = rows, gone
        events.codes[:] = self._log.codes.view[events.rows]
        events.starts[came] = starts
        latest = np.full(len(self._keys), -1, np.int32)
        latest[self._log.codes.view[first:fresh]] = np.arange(first, fresh)
        _follow(
            (frozen(events.rows), frozen(events.expired), frozen(events.codes)),
            self._log.following.view,
            latest,
            events.starts,
            events.ends,
        )
        return events

    def answers(self, given: Tuples, events: _Events) -> pa.Array:
        """Return the aggregate of the window at each event."""
        some = np.flatnonzero(events.starts >= 0)
        wanted = RequestedResults(given, some)
        aggregate, spec = self._aggregates[0], self._calls[0].aggregate
        codes, starts, ends = (array[some] for array in (events.codes, events.starts, events.ends))
        asked = WindowBatch(len(self._keys), codes, starts, ends, self._log.previous.view, NO_BYTES)
        parts = [self._trails[number].ask(0, asked) for number in aggregate.measures]
        known = wanted.answer(aggregate, self._measures[aggregate.measures[0]], parts)
        if len(some) == len(given):
            return known
        nothing = None if spec.function == USER else accumulator_row(spec.function).empty
        both = pa.concat_arrays([known.cast(spec.type), pa.array([nothing], spec.type)])
        places = np.full(len(given), len(some))
        places[some] = np.arange(len(some))
        return both.take(pa.array(places))

    def tidy(self) -> None:
        self._expire()

    @property
    def _bound(self) -> int:
        """Time before which tuples expire now."""
        window = self._windows[0]
        assert isinstance(window, RangeWindow)
        now: Integers = np.array([order_of(self._frontier.time, self._is_float)])
        return int(earlier(now, self._is_float, window.distance)[0])


@njit(cache=True)
def _follow(
    events: tuple[Array, Array, Array], following: Codes, latest: Codes, starts: Codes, ends: Codes
) -> None:
    rows, expired, codes = events
    for i in range(len(rows)):
        key = codes[i]
        if expired[i]:
            after = following[rows[i]]
            # Rows that come after the event are not in its window.
            starts[i] = after if after <= latest[key] else -1
        else:
            latest[key] = rows[i]
        ends[i] = latest[key]
