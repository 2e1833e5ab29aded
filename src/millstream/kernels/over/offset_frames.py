"""Aggregates over frames that end before the current tuple, or after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Parts, WindowBatch
from millstream.kernels.aggregates.content_aggregates import Recomputed
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import NO_BYTES, NO_INTEGERS, Array, Buffer, Codes, Integers, frozen
from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.core.state_chunks import is_wasteful
from millstream.kernels.core.time_order import LEAST, MOST, as_order, from_order, order_of
from millstream.kernels.core.tuple_batch import TIME
from millstream.kernels.over.frame_aggregates import FrameAggregates
from millstream.kernels.over.requested_results import RequestedResults
from millstream.kernels.specs import OverSpec

_ORDINAL = "__ms_ordinal"


@dataclass(frozen=True)
class Places:
    """Tuples by their key, their number among the tuples of the key, and their time as order."""

    codes: Codes
    ordinals: Integers
    order: Integers

    def take(self, rows: Array) -> Places:
        return Places(self.codes[rows], self.ordinals[rows], self.order[rows])


_NOTHING = Places(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))


class OffsetFrames(FrameAggregates):
    """Calls of a SELECT of which some do not end at the current tuple.

    Results of a key are requested in the order of its tuples, so that two pointers for each key and extent
    find the first and the last row of a frame. A frame without a beginning has only its last row: its calls
    are ``last``.
    """

    def __init__(self, calls: Sequence[OverSpec], name: str) -> None:
        self._pending = _NOTHING
        super().__init__(calls, name)

    def _start_over(self) -> None:
        super()._start_over()
        self._ordinals = Buffer(np.int64)
        self._firsts = Buffer(np.int32, -1)
        self._newest = Buffer(np.int64, 0)
        """Number of the newest tuple of each key."""

        self._pointers = [(Buffer(np.int32, -1), Buffer(np.int32, -1)) for _ in self._spans]

    # ------------------------------------------------------------ tuples and requests

    def results(
        self, requested: RequestedResults, frontier: Frontier, panes: pa.Table | None = None
    ) -> list[pa.Array]:
        """Return the results of all calls for some of the tuples, which come in order."""
        places = self.add(requested.tuples, frontier)
        results = self.ask(requested, places if requested.are_all else places.take(requested.rows))
        self.expire()
        return results

    def add(self, tuples: Tuples, frontier: Frontier) -> Places:
        """Add tuples to the log."""
        self._prepare(tuples, frontier)
        codes, order = self._keys.of(tuples.columns), as_order(tuples.time)
        ordinals = np.empty(len(codes), np.int64)
        newest = self._newest.resize(len(self._keys))
        _number(frozen(codes), newest, ordinals)
        self._put(order, codes, ordinals, [measure.of_tuples(tuples) for measure in self._measures])
        return Places(codes, ordinals, order)

    def places_of(self, tuples: Tuples, ordinals: Integers) -> Places:
        """Return the places of tuples that are in the log."""
        return Places(self._keys.of(tuples.columns), ordinals, as_order(tuples.time))

    def _put(self, order: Integers, codes: Codes, ordinals: Integers, parts: Sequence[Parts]) -> None:
        first, keys = len(self._log), len(self._keys)
        self._log.append(order, codes, keys)
        self._ordinals.extend(ordinals)
        _find_first(frozen(codes), first, self._firsts.resize(keys))
        for trail, part in zip(self._trails, parts, strict=True):
            trail.append(part, self._log.previous.view)

    def are_ready(self, places: Places) -> Array:
        """Tell which tuples have all rows of all their frames in the log."""
        ready = np.ones(len(places.codes), np.bool_)
        if self._frontier.is_end:
            return ready
        reached = order_of(self._frontier.time, self._is_float)
        for _, _, rows_until, range_until in self._spans:
            if rows_until < 0:
                ready &= self._newest.view[places.codes] >= places.ordinals - rows_until
            if range_until < 0:
                ready &= self._instants(places.order, range_until, math.ceil)[0] < reached
        return ready

    def ask(self, requested: RequestedResults, places: Places) -> list[pa.Array]:
        """Return the results of all calls for tuples, in the order of each key."""
        frames = [self._frames(i, places) for i in range(len(self._spans))]
        measured: dict[tuple[int, int], Parts] = {}
        results = []
        for call, aggregate in zip(self._calls, self._aggregates, strict=True):
            window = self._spans.index(call.extent)
            for number in aggregate.measures:
                if (window, number) not in measured:
                    measured[window, number] = self._aggregated(window, number, places.codes, *frames[window])
            parts = [measured[window, number] for number in aggregate.measures]
            results.append(requested.answer(aggregate, self._measures[aggregate.measures[0]], parts))
        return results

    def _aggregated(self, window: int, number: int, codes: Codes, starts: Codes, ends: Codes) -> Parts:
        trail, previous = self._trails[number], self._log.previous.view
        some = np.flatnonzero(ends >= 0)
        if len(some) == len(ends) or isinstance(self._measures[number], Recomputed):
            return trail.ask(window, WindowBatch(len(self._keys), codes, starts, ends, previous, NO_BYTES))
        batch = WindowBatch(len(self._keys), codes[some], starts[some], ends[some], previous, NO_BYTES)
        return tuple(_spread(part, some, len(ends)) for part in trail.ask(window, batch))

    # ------------------------------------------------------------ frames

    def _frames(self, window: int, places: Places) -> tuple[Codes, Codes]:
        """Return the first and the last row of each frame, -1 where it is empty."""
        rows, range_, rows_until, range_until = self._spans[window]
        times, ordinals = self._log.times.view, self._ordinals.view
        outside = np.zeros(len(places.codes), np.bool_)
        lows, low = times, np.full(len(places.codes), LEAST)
        if rows is not None:
            lows, low = ordinals, places.ordinals - rows
        elif range_ is not None:
            low, outside = self._instants(places.order, range_, math.floor)
            outside &= range_ < 0
        highs, high = ordinals, places.ordinals - rows_until
        if range_until != 0:
            highs = times
            high, below = self._instants(places.order, range_until, math.ceil)
            outside |= below & (range_until > 0)
        keys = len(self._keys)
        heads, tails = (pointer.resize(keys) for pointer in self._pointers[window])
        starts, ends = np.empty(len(low), np.int32), np.empty(len(low), np.int32)
        log = frozen(self._log.following.view), frozen(self._firsts.view), frozen(lows), frozen(highs)
        asked = frozen(places.codes), frozen(low), frozen(high)
        _find_frames(log, asked, heads, tails, starts, ends)
        starts[outside], ends[outside] = -1, -1
        return (ends if rows is None and range_ is None else starts), ends

    def _instants(
        self, order: Integers, distance: int | float, whole: Callable[[int | float], int]
    ) -> tuple[Integers, Array]:
        """Return the instant so far before each, rounded, and whether it is beyond all times."""
        if self._is_float:
            with np.errstate(over="ignore"):
                return as_order(from_order(order, True) - np.float64(distance)), np.zeros(
                    len(order), np.bool_
                )
        steps = whole(distance)
        if steps >= 0:
            beyond = order < LEAST + steps
            return np.where(beyond, LEAST, order - np.int64(steps)), beyond
        beyond = order > MOST + steps
        return np.where(beyond, MOST, order - np.int64(steps)), beyond

    # ------------------------------------------------------------ state

    def expire(self, tuples: Tuples | None = None, ordinals: Integers = NO_INTEGERS) -> None:
        """Remove rows that no frame can have of a pending tuple, or of one to come."""
        self._pending = _NOTHING if tuples is None else self.places_of(tuples, ordinals)
        if self._frontier.is_end:
            self._start_over()
        elif is_wasteful(len(self._log), 0):
            rows = np.flatnonzero(self._is_live(0))
            if is_wasteful(len(self._log), len(rows)):
                saved = int(np.searchsorted(rows, self._saved))
                table = self._export(rows)
                self._start_over()
                self._import(table)
                self._saved = saved
                self._pending = _NOTHING if tuples is None else self.places_of(tuples, ordinals)

    def _expire(self) -> None:
        """Leave the log as it is until pending tuples are known."""

    @property
    def _live(self) -> int:
        return int(np.count_nonzero(self._is_live(0)))

    def _is_live(self, first: int) -> Array:
        codes, times = self._log.codes.view[first:], self._log.times.view
        # The number of the oldest tuple of each key that may still be requested.
        floors = self._newest.view + 1
        np.minimum.at(floors, self._pending.codes, self._pending.ordinals)
        most = max((rows for rows, *_ in self._spans if rows is not None), default=0)
        live: Array = floors[codes] - self._ordinals.view[first:] <= max(most, 0)
        for rows, range_, _, range_until in self._spans:
            if rows is None:
                reach = range_until if range_ is None else range_
                since = self._instants(np.array([self._oldest]), max(reach, 0), math.floor)[0][0]
                live |= times[first:] >= since
                if range_ is None:
                    following = self._log.following.view[first:]
                    live |= (following < 0) | (times[following] > since)
        return live

    def _passed_chunks(self, live: int) -> tuple[str, ...]:
        # The last row before an instant may be older than all others that are live.
        has_beginning = all(rows is not None or range_ is not None for rows, range_, *_ in self._spans)
        return super()._passed_chunks(live) if has_beginning else ()

    @property
    def _oldest(self) -> int:
        """Time, as order, of the oldest tuple that may still be requested."""
        reached = order_of(self._frontier.time, self._is_float)
        return min(reached, int(self._pending.order.min(initial=MOST)))

    def _export(self, rows: Array) -> pa.Table:
        table = super()._export(rows)
        return table.append_column(_ORDINAL, pa.array(self._ordinals.view[rows]))

    def _import(self, table: pa.Table) -> None:
        time, ordinals = (arrow_buffers.single(table[name]).to_numpy() for name in (TIME, _ORDINAL))
        self._is_float = time.dtype == np.float64
        parts = [measure.of_table(table) for measure in self._measures]
        codes = self._keys.of(table)
        np.maximum.at(self._newest.resize(len(self._keys)), codes, ordinals)
        self._put(as_order(time), codes, ordinals, parts)


def _spread(part: Array, some: Integers, count: int) -> Array:
    """Return values of some rows along all rows, with zeros elsewhere; an empty part stays empty."""
    if not len(part) and len(some):
        return part
    spread = np.zeros((count, *part.shape[1:]), part.dtype)
    spread[some] = part
    return spread


# ---------------------------------------------------------------- compiled


@njit(cache=True)
def _number(codes: Codes, newest: Integers, ordinals: Integers) -> None:
    for i in range(len(codes)):
        newest[codes[i]] += 1
        ordinals[i] = newest[codes[i]]


@njit(cache=True)
def _find_first(codes: Codes, first: int, firsts: Codes) -> None:
    for i in range(len(codes)):
        if firsts[codes[i]] < 0:
            firsts[codes[i]] = first + i


@njit(cache=True)
def _find_frames(
    log: tuple[Codes, Codes, Integers, Integers],
    asked: tuple[Codes, Integers, Integers],
    heads: Codes,
    tails: Codes,
    starts: Codes,
    ends: Codes,
) -> None:
    """Move the pointers of keys to the frames that are asked for."""
    following, firsts, lows, highs = log
    codes, low, high = asked
    for i in range(len(codes)):
        key = codes[i]
        head = firsts[key] if heads[key] < 0 else heads[key]
        while lows[head] < low[i] and following[head] >= 0:
            head = following[head]
        heads[key] = head
        tail = tails[key]
        row = firsts[key] if tail < 0 else following[tail]
        while row >= 0 and highs[row] <= high[i]:
            tail = row
            row = following[tail]
        tails[key] = tail
        empty = tail < head or lows[head] < low[i]
        starts[i] = -1 if empty else head
        ends[i] = -1 if empty else tail
