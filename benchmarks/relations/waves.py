"""A trace as a stream with a steady rate: so many tuples in each cycle, and windows are filled first."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.relations.operators import Clock, Operator
from benchmarks.relations.traces import SESSIONS, Integers, halves

CYCLES = SESSIONS // 10_000
"""A trace of the paper's size lasts so many cycles at its usual rate of 10,000 tuples a cycle."""

Part = tuple[pa.Table, Integers]
Batches = Iterator[tuple[list[Part], int]]
"""Parts of each side, and the time before which everything has come."""


@dataclass(frozen=True)
class Cost:
    """Seconds a cycle of an operator and of its windows, and rows that it gave."""

    operator: float
    window: float
    results: float


def rate_of(rows: int) -> int:
    """Tuples of a cycle in a trace of so many."""
    return max(rows // CYCLES, 1)


def sides_of(operator: Operator, trace: pa.Table) -> Sequence[pa.Table]:
    return (trace,) if operator.sides == 1 else halves(trace)


def waves(sides: Sequence[pa.Table], rate: int, cycles: int) -> Batches:
    """Return batches of ``cycles`` cycles: all tuples of a cycle have its number as their time."""
    step = rate * cycles
    for start in range(0, len(sides[0]) - step + 1, step):
        times = np.arange(start, start + step) // rate
        yield [(side.slice(start, step), times) for side in sides], int(times[-1]) + 1


def arrivals(sides: Sequence[pa.Table], rate: int) -> Batches:
    """A cycle at a time: every tuple has a time of its own, and sides take turns."""
    for start in range(0, len(sides[0]) - rate + 1, rate):
        numbers = np.arange(start, start + rate) * len(sides)
        parts = [(side.slice(start, rate), numbers + place) for place, side in enumerate(sides)]
        yield parts, int(numbers[-1]) + len(sides)


def cost(
    make: Callable[[], Operator],
    batches: Callable[[Operator], Batches],
    full: int,
    most: int,
    repeats: int,
) -> Cost:
    """Medians over runs of the mean over batches, after the window has been filled.

    ``full`` is the time at which it is. At most so many batches are looked at.
    """
    runs = [_run(make(), batches, full, most) for _ in range(repeats)]
    return Cost(*(statistics.median(column) for column in zip(*runs, strict=True)))


def _run(
    operator: Operator,
    batches: Callable[[Operator], Batches],
    full: int,
    most: int,
) -> tuple[float, float, float]:
    done = 0
    for parts, until in batches(operator):
        operator.feed(parts, until)
        if until <= full:
            operator.clock = Clock()
            continue
        done += 1
        if done == most:
            break
    if not done:
        raise ValueError("the trace is too short to fill the window")
    clock = operator.clock
    return clock.operator / done, clock.window / done, clock.results / done
