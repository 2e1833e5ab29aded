"""Kernels one after the other, as a stage has them, over batches of tuples."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.kernels.core.kernel import Frontier, Kernel, Tuples

AT_ONCE = 100_000
"""Tuples of a batch: about as many as a shard gets in a micro-batch."""

Batch = tuple[Tuples, Frontier]


def batches(times: npt.NDArray[np.int64], values: npt.NDArray[np.float64], first: int = 0) -> Iterator[Batch]:
    """Tuples in order, of which each batch promises that nothing older comes."""
    for start in range(first, len(times), AT_ONCE):
        end = min(start + AT_ONCE, len(times))
        number = np.arange(start, end)
        tuples = Tuples(
            pa.table({"v": values[start:end]}), times[start:end], np.zeros(end - start, np.int32), number
        )
        yield tuples, Frontier(int(times[end - 1]), 0)


def process(chain: Sequence[Kernel], batch: Batch) -> Tuples:
    tuples, frontier = batch
    for kernel in chain:
        tuples = kernel.process(tuples, frontier)
        frontier = kernel.passes(frontier)
    return tuples


def timed(chain: Sequence[Kernel], some: Iterable[Batch]) -> float:
    """Return the seconds for all of them, including the snapshot of changed state after each batch."""
    start = time.perf_counter()
    for batch in some:
        process(chain, batch)
        for kernel in chain:
            kernel.snapshot()
    return time.perf_counter() - start
