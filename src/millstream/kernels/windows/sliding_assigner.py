"""RANGE and SLIDE on an attribute: windows that follow from their specification alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from millstream.kernels.core.buffers import Codes, Integers
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.time_order import LEAST, MOST
from millstream.kernels.core.tuple_batch import is_held
from millstream.kernels.windows.double_slide_arithmetic import DoubleSlideArithmetic
from millstream.kernels.windows.pane_sweep import DueWindows
from millstream.kernels.windows.slide_arithmetic import SlideArithmetic
from millstream.kernels.windows.window_assigner import Assignment, WindowAssigner, WindowEdges


@dataclass(frozen=True)
class SlidingWindows:
    """Windows [origin+(w+1)*slide-range, origin+(w+1)*slide), with partial results every ``emit``."""

    range: int | Fraction
    slide: int | Fraction
    origin: int | Fraction = 0
    emit: int | Fraction | None = None
    is_float: bool = False
    """Whether times are doubles: then all amounts are exact, and bounds are rounded."""
    single: bool = False
    """Whether bounds are rounded to floats."""

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise ValueError("RANGE and SLIDE must be positive")

    @property
    def ticks(self) -> SlideArithmetic | DoubleSlideArithmetic:
        """Where windows end, and when they are looked at."""
        numbers = self.range, self.slide, self.origin, self.emit
        if self.is_float:
            return DoubleSlideArithmetic(*numbers, single=self.single)  # type: ignore[arg-type]
        return SlideArithmetic(*numbers)  # type: ignore[arg-type]

    def __call__(self) -> WindowAssigner:
        return _SlidingAssigner(self)


class _SlidingAssigner(WindowAssigner):
    def __init__(self, spec: SlidingWindows) -> None:
        self._emits = spec.emit is not None
        self._ticks = spec.ticks
        self._done = LEAST
        """The last visit that was made."""

        self._reached = LEAST
        """The last that punctuation has reached, the end of the input apart."""

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
