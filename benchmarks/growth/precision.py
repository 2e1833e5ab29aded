"""Sums of doubles after many slides, compared with recomputed sums."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.specs import AggregateSpec, OverSpec

WINDOW = 1_000
AT_ONCE = 500_000
STEP = 97
"""One result in so many is recomputed."""


def measure(slides: int) -> list[list[str]]:
    """Return the largest relative error for each kind of values, and that of plain subtraction."""
    table = [["values", "slides", "largest relative error", "by subtracting what leaves"]]
    for name, make in VALUES.items():
        random = np.random.default_rng(7)
        spec = AggregateSpec("sum", "v", "r", pa.float64(), False, "v")
        kernel = OverAggregate((OverSpec(spec, WINDOW - 1, None),))
        worst = worst_subtracted = carried = 0.0
        tail = np.zeros(0)
        for done in range(0, slides, AT_ONCE):
            values = make(random, min(AT_ONCE, slides - done))
            results = _sums(kernel, values, done)
            recent = np.concatenate([tail, values])
            leaving = np.zeros(len(values))
            leaving[max(0, WINDOW - len(tail)) :] = recent[: len(recent) - WINDOW][-len(values) :]
            subtracted = carried + np.cumsum(values - leaving)
            carried = float(subtracted[-1])
            for row in range(WINDOW, len(values), STEP):
                end = len(tail) + row + 1
                exact = math.fsum(recent[end - WINDOW : end])
                worst = max(worst, abs(results[row] - exact) / abs(exact))
                worst_subtracted = max(worst_subtracted, abs(subtracted[row] - exact) / abs(exact))
            tail = recent[-WINDOW:]
        table.append([name, f"{slides:,}", f"{worst:.1e}", f"{worst_subtracted:.1e}"])
    return table


def _prices(random: np.random.Generator, count: int) -> np.ndarray:
    return random.normal(100, 5, count)


def _with_outliers(random: np.random.Generator, count: int) -> np.ndarray:
    """Draw values with outliers, after which plain subtraction loses precision."""
    return np.where(random.random(count) < 1e-5, 1e18, _prices(random, count))


def _of_all_sizes(random: np.random.Generator, count: int) -> np.ndarray:
    return random.lognormal(size=count) * 10.0 ** random.integers(-8, 9, count)


VALUES = {
    "prices around 100": _prices,
    "the same, one in 100,000 is 1e18": _with_outliers,
    "sixteen orders of magnitude": _of_all_sizes,
}


def _sums(kernel: OverAggregate, values: np.ndarray, first: int) -> np.ndarray:
    count = len(values)
    number = np.arange(first, first + count, dtype=np.int64)
    tuples = Tuples(pa.table({"v": values}), number, np.zeros(count, np.int32), number)
    return np.asarray(kernel.process(tuples, Frontier(first + count, 0)).columns["r"])
