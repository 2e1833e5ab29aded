"""LANDMARK, UNBOUNDED and NOW: windows whose beginning stays where it is, and windows of a single instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from millstream.kernels.core.buffers import Array, Codes, Integers
from millstream.kernels.core.kernel import BEGINNING, Change, Frontier, Tuples
from millstream.kernels.core.time_order import LEAST, MOST, as_order, from_order, order_of
from millstream.kernels.core.tuple_batch import is_held
from millstream.kernels.windows.double_slide_arithmetic import DoubleSlideArithmetic
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.slide_arithmetic import SlideArithmetic
from millstream.kernels.windows.sliding_assigner import SlidingWindows
from millstream.kernels.windows.window_assigner import (
    MICROSECONDS_PER_DAY,
    Assignment,
    WindowAssigner,
    WindowEdges,
)


@dataclass(frozen=True)
class LandmarkWindows:
    """Windows [start, end) for all multiples of ``slide`` after ``start`` and before ``end``, and ``end``.

    Bounds that are None do not exist. Without a slide or an end the only window ends with the input. Instants
    are doubles where ``is_float``, and floats where they are ``single``. Where bounds are times ``of_day``,
    the day is the first tuple's; then tuples must come in order.
    """

    start: int | float | None = None
    end: int | float | None = None
    slide: int | Fraction | None = None
    emit: int | Fraction | None = None
    is_float: bool = False
    single: bool = False
    of_day: tuple[bool, bool] = (False, False)

    def __call__(self) -> WindowAssigner:
        return _LandmarkAssigner(self)


@dataclass(frozen=True)
class NowWindows:
    """A window for each instant that has a tuple."""

    is_float: bool = False

    def __call__(self) -> WindowAssigner:
        return _NowAssigner(self.is_float)


class _LandmarkAssigner(WindowAssigner):
    """Visits are the multiples of slide and emit. The last of all has the number after those before it."""

    merges = True

    def __init__(self, spec: LandmarkWindows) -> None:
        self._spec = spec
        # Where there is no slide the ends of windows are instants of emission, none of them complete.
        step = spec.slide if spec.slide is not None else spec.emit
        self._ticks: SlideArithmetic | DoubleSlideArithmetic | None = None
        if step is not None:
            emit = spec.emit if spec.slide is not None else None
            self._ticks = SlidingWindows(step, step, 0, emit, spec.is_float, spec.single).ticks
        self._day: int | None = None
        """When the day began to which times of day refer."""

        self._done = LEAST
        self._reached = LEAST
        self._ended = False
        self._newest: int | float | None = None
        self._closing: int | float | None = None

    @property
    def _start(self) -> int | float | None:
        return self._bound(self._spec.start, self._spec.of_day[0])

    @property
    def _end(self) -> int | float | None:
        return self._bound(self._spec.end, self._spec.of_day[1])

    def _bound(self, bound: int | float | None, of_day: bool) -> int | float | None:
        if bound is None or not of_day:
            return bound
        return MOST if self._day is None else self._day + bound

    @property
    def _final(self) -> int:
        """The visit at which the window has reached its end, if it has one."""
        if self._end is not None:
            return self._visit(self._end)
        return 0 if self._ticks is None else MOST - 1

    def _visit(self, instant: int | float) -> int:
        """The first visit that is not before an instant."""
        if self._ticks is None:
            return 0
        before = self._ticks.reached(instant)
        found = self._ticks.instants(np.array([before]))[0] if abs(before) < MOST else None
        return before if found == instant else before + 1

    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        times = tuples.time
        if any(self._spec.of_day) and self._day is None and len(times):
            self._day = int(times[0] // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY)
        enters = np.zeros(len(times), np.int64)
        if self._ticks is not None:
            enters = self._ticks.first_after(times)  # type: ignore[arg-type]
        enters = np.minimum(enters, self._final)
        held = is_held(tuples)
        if held is not None and self._ticks is not None:
            assert tuples.hold is not None, "it says for how long"
            after = self._ticks.first_after(tuples.hold)  # type: ignore[arg-type]
            enters = np.maximum(enters, np.where(held, after, LEAST))
        inside = np.ones(len(times), np.bool_)
        if self._start is not None:
            inside &= times >= self._start
        if self._end is not None:
            inside &= times < self._end
            if held is not None and tuples.hold is not None:
                # The window was over for the source of such a tuple when it came.
                inside &= ~(held & (tuples.hold >= self._end))
        return Assignment(enters, np.full(len(times), self._final), inside & (enters <= self._final))

    def due(self, frontier: Frontier) -> DueWindows:
        last = self._done
        end = self._end
        if frontier.is_end:
            self._ended = True
            self._newest = frontier.newest
            # Partial results may have come after the newest tuple: the last result is not older than these.
            self._closing = frontier.newest if self._ticks is None else frontier.closing
            last = self._last_of_all()
        elif end is not None and frontier.time >= end:
            last = self._final
        elif self._ticks is not None and frontier.time > -np.inf:
            last = min(self._ticks.reached(frontier.time), self._final - (end is not None))
        last = max(min(last, MOST - 1), self._done)
        if not frontier.is_end:
            self._reached = last
        due = DueWindows(np.array([self._done]), np.array([last]))
        self._done = last
        return due

    def _last_of_all(self) -> int:
        """Of an input that has ended: the first end after its last tuple."""
        if self._newest is None or self._ticks is None:
            return self._final if self._newest is not None or self._end is not None else self._done
        after = int(self._ticks.first_after(np.array([self._newest]))[0])
        if self._spec.slide is not None:
            ends, complete = self._ticks.ends(np.array([after]))
            if not complete[0]:
                after = self._visit(self._ticks.instants_of(ends)[0].item())
        elif self._end is None:
            after = max(after, self._done + 1)
        return max(min(after, self._final), self._done)

    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        spec = self._spec
        is_final = (visits == self._final) & (self._end is not None)
        if self._ticks is None:
            ends = np.zeros(len(visits), np.int64)
            stamps: Array = np.zeros(len(visits), np.float64 if spec.is_float else np.int64)
            complete: Array = np.ones(len(visits), np.bool_)
            instants: Array = stamps
        else:
            ends, complete = self._ticks.ends(visits)
            instants, stamps = self._ticks.instants_of(ends), self._ticks.instants(visits)
            if spec.slide is None:
                complete = np.zeros(len(visits), np.bool_)
                instants = stamps
        if self._end is not None:
            beyond = instants > self._end
            instants = np.where(is_final | beyond, self._end, instants)
            stamps = np.where(is_final, self._end, stamps)
            complete = complete | is_final
        keep = None
        if self._ended:
            if spec.slide is None and self._end is None:
                # The end of the input is the only end that there is.
                last = visits == self._done
                closing = 0 if self._closing is None else self._closing
                complete = complete | last
                instants = np.where(last, closing, instants)
                stamps = np.where(last, closing, stamps)
            keep = complete | (visits <= self._reached)
        start: Array | None = None if self._start is None else np.full(len(visits), self._start, stamps.dtype)
        shown = complete if spec.emit is not None else None
        wid = ends - 1 if spec.slide is not None else np.zeros(len(visits), np.int64)
        return WindowEdges(start, instants, wid, stamps, shown, keep)

    def passes(self, frontier: Frontier) -> Frontier:
        """Where the end of the input is the only end, its result may be as old as the stream.

        With partial results it may be as old as the frontier, and come after all others of that time.
        """
        if frontier.is_end or self._end is not None or self._spec.slide is not None:
            return super().passes(frontier)
        return BEGINNING if self._ticks is None else Frontier(frontier.time, -1)

    def first_open(self, partitions: Codes) -> Integers:
        return np.full(len(partitions), self._done + 1)

    def horizon(self) -> int:
        return self._done + 1

    def snapshot(self) -> Change:
        return Change(meta={"done": self._done, "reached": self._reached, "day": self._day})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, Any]) -> None:
        self._done = int(meta.get("done", LEAST))
        self._reached = int(meta.get("reached", LEAST))
        self._day = meta.get("day")


class _NowAssigner(WindowAssigner):
    """Visits are numbered as instants are ordered; those without a tuple are never made."""

    def __init__(self, is_float: bool) -> None:
        self._is_float = is_float
        self._done = LEAST

    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        order = as_order(tuples.time)
        held = is_held(tuples)
        inside = np.ones(len(order), np.bool_) if held is None else ~held
        return Assignment(order, order, inside)

    def due(self, frontier: Frontier) -> DueWindows:
        last = self._done
        if frontier.is_end:
            last = MOST - 1
        elif frontier.time > -np.inf:
            # Those at the frontier itself may still get tuples.
            last = max(order_of(frontier.time, self._is_float) - 1, self._done)
        due = DueWindows(np.array([self._done]), np.array([last]))
        self._done = last
        return due

    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        instants = from_order(visits, self._is_float)
        return WindowEdges(instants, instants, instants, instants)

    def passes(self, frontier: Frontier) -> Frontier:
        return frontier if frontier.is_end else Frontier(frontier.time, -1)

    def first_open(self, partitions: Codes) -> Integers:
        return np.full(len(partitions), self._done + 1)

    def horizon(self) -> int:
        return self._done + 1

    def snapshot(self) -> Change:
        return Change(meta={"done": self._done})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, Any]) -> None:
        self._done = int(meta.get("done", LEAST))
