"""LANDMARK, UNBOUNDED and NOW: windows with a fixed beginning, and windows of a single instant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from millstream.kernels.core.buffers import Array, Codes, Integers
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.time_order import LEAST, MOST, as_order, from_order, order_of
from millstream.kernels.core.tuple_batch import is_held
from millstream.kernels.window_specs import LandmarkWindows, NowWindows, SlidingWindows
from millstream.kernels.windows.double_slide_arithmetic import DoubleSlideArithmetic
from millstream.kernels.windows.month_arithmetic import MonthArithmetic
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.slide_arithmetic import SlideArithmetic
from millstream.kernels.windows.sliding_assigner import slide_arithmetic
from millstream.kernels.windows.window_assigner import (
    MICROSECONDS_PER_DAY,
    Assignment,
    WindowAssigner,
    WindowEdges,
)


class LandmarkAssigner(WindowAssigner):
    """An assigner whose visits are the multiples of slide and emit. The last of all has the next number."""

    merges = True

    def __init__(self, spec: LandmarkWindows) -> None:
        self._spec = spec
        # Where there is no slide the ends of windows are instants of emission, none of them complete.
        step = spec.slide if spec.slide is not None else spec.emit
        self._ticks: SlideArithmetic | DoubleSlideArithmetic | MonthArithmetic | None = None
        if step is not None:
            emit = spec.emit if spec.slide is not None else None
            self._ticks = slide_arithmetic(SlidingWindows(step, step, 0, emit, spec.is_float, spec.single))
        self._day: int | None = None
        """Beginning of the day to which times of day refer."""

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
        """Visit at which the window has reached its end, if it has one."""
        if self._end is not None:
            return self._visit(self._end)
        return 0 if self._ticks is None else MOST - 1

    def _visit(self, instant: int | float) -> int:
        """Return the first visit that is not before an instant."""
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
            self._closing = frontier.closing
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
        """Return the first end after the last tuple of an input that has ended."""
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
        """Return the frontier of results.

        Where only the end of the input ends a window, its result may be as old as the frontier. With partial
        results it comes after all others of that time.
        """
        if frontier.is_end or self._end is not None or self._spec.slide is not None:
            return super().passes(frontier)
        return Frontier(frontier.time, -1)

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


class NowAssigner(WindowAssigner):
    """An assigner that numbers visits in the order of instants; those without a tuple are not visited."""

    def __init__(self, spec: NowWindows) -> None:
        self._is_float = spec.is_float
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
