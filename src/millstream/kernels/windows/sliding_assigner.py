"""Sliding windows: RANGE and SLIDE on an attribute, windows that follow from their specification alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from millstream.kernels.core.buffers import Codes, Integers
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.time_order import LEAST, MOST
from millstream.kernels.core.tuple_batch import is_held
from millstream.kernels.window_specs import SlidingWindows
from millstream.kernels.windows.double_slide_arithmetic import DoubleSlideArithmetic
from millstream.kernels.windows.month_arithmetic import MonthArithmetic
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.slide_arithmetic import SlideArithmetic
from millstream.kernels.windows.window_assigner import Assignment, WindowAssigner, WindowEdges


def slide_arithmetic(spec: SlidingWindows) -> SlideArithmetic | DoubleSlideArithmetic | MonthArithmetic:
    """Return where windows end, and when they are looked at."""
    if spec.months:
        return MonthArithmetic(int(spec.range), int(spec.slide), int(spec.origin))
    numbers = spec.range, spec.slide, spec.origin, spec.emit
    if spec.is_float:
        return DoubleSlideArithmetic(*numbers, single=spec.single)  # type: ignore[arg-type]
    return SlideArithmetic(*numbers)  # type: ignore[arg-type]


class SlidingAssigner(WindowAssigner):
    """Sliding windows of all groups."""

    def __init__(self, spec: SlidingWindows) -> None:
        self._emits = spec.emit is not None
        self._ticks = slide_arithmetic(spec)
        self._done = LEAST
        """Last visit that was made."""

        self._reached = LEAST
        """Last visit that the watermark has reached before the end of the input."""

        self._ended = False

    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        enters, untils = self._ticks.place(tuples.time)  # type: ignore[arg-type]
        held = is_held(tuples)
        if held is not None:
            assert tuples.hold is not None, "it says for how long"
            after = self._ticks.first_after(tuples.hold)  # type: ignore[arg-type]
            enters = np.maximum(enters, np.where(held, after, LEAST))
        return Assignment(enters, untils, enters <= untils)

    def due(self, frontier: Frontier) -> DueWindows:
        last = self._done
        if frontier.is_end:
            last = MOST - 1
            self._ended = True
        elif frontier.time > -np.inf:
            last = max(min(self._ticks.reached(frontier.time), MOST - 1), self._done)
            self._reached = last
        due = DueWindows(np.array([self._done]), np.array([last]))
        self._done = last
        return due

    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        ends, complete = self._ticks.ends(visits)
        instants = self._ticks.instants_of(ends)
        return WindowEdges(
            self._ticks.starts(ends),
            instants,
            ends - 1 - self._ticks.shift,
            self._ticks.instants(visits) if self._emits else instants,
            complete if self._emits else None,
            complete | (visits <= self._reached) if self._emits and self._ended else None,
        )

    def first_open(self, partitions: Codes) -> Integers:
        return np.full(len(partitions), self._done + 1)

    def horizon(self) -> int:
        return self._done + 1

    def snapshot(self) -> Change:
        return Change(meta={"done": self._done, "reached": self._reached})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, Any]) -> None:
        self._done = int(meta.get("done", LEAST))
        self._reached = int(meta.get("reached", LEAST))
