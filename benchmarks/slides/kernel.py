"""The kernel alone: its state, and its tuples a second."""

from __future__ import annotations

import pickle
import statistics
import time

import numpy as np
import pyarrow as pa

from benchmarks.slides.figures import SLIDES, WINDOW, Point
from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.specs import AggregateSpec, OverSpec, SlideSpec

AT_ONCE = 100_000


def measure(rows: int, repeats: int) -> list[Point]:
    """With panes for each slide, and as if there were none: every tuple is kept and slid over."""
    batches = _batches(rows)
    _run(batches[:1], 10)  # compile before the measurement
    points = []
    for slide in SLIDES:
        paned = [_run(batches, slide) for _ in range(repeats)]
        plain = [_run(batches, slide, panes=False) for _ in range(repeats)]
        for name, runs in (("panes", paned), ("tuples", plain)):
            seconds = statistics.median(run[0] for run in runs)
            points.append(Point(name, slide, rows / seconds, runs[0][1], runs[0][2]))
    return points


def _run(batches: list[tuple[Tuples, Frontier]], slide: int, *, panes: bool = True) -> tuple[float, int, int]:
    """Seconds, rows of state and their bytes."""
    call = OverSpec(AggregateSpec("sum", "v", "r", pa.float64()), rows=WINDOW - 1)
    kernel = OverAggregate((call,), SlideSpec(rows=slide) if panes else None)
    start = time.perf_counter()
    for tuples, frontier in batches:
        results = kernel.process(tuples, frontier)
        if not panes:
            # Of all results only those of yield tuples are wanted.
            results.take(np.flatnonzero((results.number + 1) % slide == 0))
    seconds = time.perf_counter() - start
    return seconds, kernel.rows, len(pickle.dumps(kernel))


def _batches(rows: int) -> list[tuple[Tuples, Frontier]]:
    values = np.random.default_rng(3).normal(100, 5, rows)
    batches = []
    for start in range(0, rows, AT_ONCE):
        number = np.arange(start, min(start + AT_ONCE, rows), dtype=np.int64)
        columns = pa.table({"v": values[start : start + AT_ONCE]})
        tuples = Tuples(columns, number, np.zeros(len(number), np.int32), number)
        batches.append((tuples, Frontier(int(number[-1]), 0)))
    return batches
