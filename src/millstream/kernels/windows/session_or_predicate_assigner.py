"""Session windows and predicate windows (START WHEN, END WHEN): consecutive runs of tuples in a partition.

Tuples must come in order. A session window goes on as long as no gap is too long; it is complete when the
watermark is beyond its end. A predicate window goes from a tuple that starts it to one that ends it, perhaps
the same. Both are followed by one loop: they differ only in the conditions that open and close a run.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.column_names import ENDS, STARTS
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen
from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.core.partition_state import Partitions
from millstream.kernels.core.time_order import LEAST, MOST, as_order, from_order, later, order_of
from millstream.kernels.window_specs import SessionOrPredicateWindows
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.window_assigner import (
    Assignment,
    PartitionedAssigner,
    WindowEdges,
)

_NUMBERS = {"open": 0, "window": 0, "visits": 0, "done": -1, "start": 0, "last": 0, "reach": 0, "told": LEAST}
"""State of a partition: whether a window is open, its number, the visits so far, and those that are done; the
first and the last time in the window, and up to when the next tuple belongs to it; the last instant of
emission."""


class SessionOrPredicateAssigner(PartitionedAssigner):
    """An assigner whose visits are ends of runs and instants of emission; points are numbers of windows."""

    def __init__(self, spec: SessionOrPredicateWindows) -> None:
        super().__init__(Partitions(spec.per, _NUMBERS))
        self._spec = spec
        self._listed: list[Array] = []
        self._events: Array = np.zeros((0, 6), np.int64)
        self._due: DueWindows | None = None

    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        self._is_float = tuples.time.dtype == np.float64
        order = as_order(tuples.time)
        parts = self._parts.codes(tuples.columns)
        self._parts.note(parts)
        gap = self._spec.gap
        if gap is None:
            starts, ends = (_flags(tuples.columns[name]) for name in (STARTS, ENDS))
            reach = np.full(len(order), MOST)
        else:
            starts = ends = np.zeros(0, np.bool_)
            reach = later(order, self._is_float, gap, included=True)
        inputs = frozen(parts), frozen(order), frozen(reach), frozen(starts), frozen(ends)
        enters, untils = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        # Tuples that only the end of the input has released make no partial results.
        emit = 0 if frontier.is_end else self._spec.emit or 0
        # Once to see how many events there are, and once to list them.
        trial = tuple(column.copy() for column in self._state())
        count = _follow(inputs, emit, trial, enters, untils, np.zeros((0, 6), np.int64))
        events = np.empty((count, 6), np.int64)
        _follow(inputs, emit, self._state(), enters, untils, events)
        self._listed.append(events)
        return Assignment(enters, untils, untils >= 0)

    def _state(self) -> tuple[Array, ...]:
        names = ("open", "window", "visits", "start", "last", "reach", "told")
        return tuple(self._parts[name] for name in names)

    def due(self, frontier: Frontier) -> DueWindows:
        """Return due visits; windows that no tuple can belong to any more are complete without one."""
        opened = np.flatnonzero(self._parts["open"] > 0).astype(np.int32)
        if frontier.is_end:
            time, newest = MOST, frontier.closing
            if newest is None:
                newest = from_order(self._parts["last"], self._is_float).max(initial=0)
            end = order_of(newest, self._is_float)
        else:
            time = end = order_of(frontier.time, self._is_float)
        limits = time, end, self._spec.gap is not None, frontier.is_end
        emit = self._spec.emit or 0
        trial = tuple(column.copy() for column in self._state())
        count = _expire(opened, emit, limits, trial, np.zeros((0, 6), np.int64))
        events = np.empty((count, 6), np.int64)
        _expire(opened, emit, limits, self._state(), events)
        self._parts.note(events[:, 0].astype(np.int32))
        listed = np.concatenate([*self._listed, events])
        self._listed = []
        self._events = listed[np.argsort(listed[:, 0], kind="stable")]
        if not len(self._parts):
            return DueWindows(np.full(1, -1), np.full(1, -1))
        counts = np.bincount(listed[:, 0], minlength=len(self._parts))
        offsets = np.cumsum(counts) - counts
        columns = self._events[:, 1].copy(), self._events[:, 5].astype(np.uint8)
        self._due = DueWindows(self._parts["done"].copy(), self._parts["visits"] - 1, offsets, *columns)
        return self._due

    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        due = self._due
        rows = np.zeros(0, np.int64)
        if due is not None:
            rows = due.offsets[partitions] + visits - due.done[partitions] - 1
        _, window, start, end, stamp, complete = self._events[rows].T
        gap = self._spec.gap
        ends, stamps = from_order(end, self._is_float), from_order(stamp, self._is_float)
        if gap is not None:
            ends = _plus(ends, gap)
            stamps = np.where(complete > 0, ends, stamps)
        shown = complete > 0 if self._spec.emit is not None else None
        return WindowEdges(from_order(start, self._is_float), ends, window, stamps, shown)

    def finish(self) -> None:
        self._parts["done"][:] = self._parts["visits"] - 1
        self._due = None

    def first_open(self, partitions: Codes) -> Integers:
        open_: Integers = self._parts["done"][partitions] + 1
        return open_

    def is_alive(self, untils: Integers, partitions: Codes) -> Array:
        alive: Array = (untils >= self._parts["window"][partitions]) & (self._parts["open"][partitions] > 0)
        return alive

    def forget(self) -> None:
        if not self._spec.numbered:
            self._parts.forget(self._parts["open"] > 0)


def _flags(column: pa.ChunkedArray) -> Array:
    return np.asarray(column.combine_chunks().fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def _plus(times: Array, distance: int | float) -> Array:
    if times.dtype == np.float64:
        return times + np.float64(distance)
    whole = int(distance)
    return np.where(times > MOST - whole, MOST, times + whole)


@njit(cache=True)
def _tell(part: int, until: int, emit: int, state: tuple[Array, ...], events: Array, found: int) -> int:
    """List instants of emission up to some time, at which the window of a partition is open."""
    _, windows, visits, starts, lasts, reach, told = state
    instant = told[part] // emit + 1
    while instant * emit <= until and instant * emit <= reach[part]:
        told[part] = instant * emit
        if found < len(events):
            row = events[found]
            row[0], row[1], row[2], row[3] = part, windows[part], starts[part], lasts[part]
            row[4], row[5] = told[part], 0
        found += 1
        visits[part] += 1
        instant += 1
    return found


@njit(cache=True)
def _close(part: int, stamp: int, state: tuple[Array, ...], events: Array, found: int) -> int:
    opened, windows, visits, starts, lasts, _, _ = state
    if found < len(events):
        row = events[found]
        row[0], row[1], row[2], row[3] = part, windows[part], starts[part], lasts[part]
        row[4], row[5] = stamp, 1
    visits[part] += 1
    windows[part] += 1
    opened[part] = 0
    return found + 1


@njit(cache=True)
def _follow(
    inputs: tuple[Array, ...],
    emit: int,
    state: tuple[Array, ...],
    enters: Integers,
    untils: Integers,
    events: Array,
) -> int:
    """Find the window of each tuple (none: it leaves before it enters); return the number of events."""
    parts, order, reaches, is_start, is_end = inputs
    opened, windows, visits, starts, lasts, reach, told = state
    sessions = len(is_start) == 0
    found = 0
    for i in range(len(parts)):
        part, time = parts[i], order[i]
        if opened[part] and emit:
            found = _tell(part, time, emit, state, events, found)
        if opened[part] and time > reach[part]:
            found = _close(part, lasts[part], state, events, found)
        if not opened[part]:
            if not sessions and not is_start[i]:
                enters[i], untils[i] = 0, -1
                continue
            opened[part], starts[part], told[part] = 1, time, time
        lasts[part], reach[part] = time, reaches[i]
        enters[i], untils[i] = visits[part], windows[part]
        if not sessions and is_end[i]:
            found = _close(part, time, state, events, found)
    return found


@njit(cache=True)
def _expire(
    parts: Codes, emit: int, limits: tuple[int, int, bool, bool], state: tuple[Array, ...], events: Array
) -> int:
    """List the windows that the watermark completes, and instants of emission up to it."""
    time, end, sessions, is_end = limits
    reach = state[5]
    found = 0
    for part in parts:
        if emit and not is_end:
            found = _tell(part, time, emit, state, events, found)
        if is_end or (sessions and reach[part] < time):
            found = _close(part, end if not sessions else reach[part], state, events, found)
    return found
