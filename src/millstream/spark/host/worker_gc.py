"""Garbage collection in Spark's Python workers, which live from one task to the next."""

from __future__ import annotations

import gc

_LITTLE = 20_000
"""Number of objects that the collector visits in a millisecond."""


def settle() -> None:
    """Exclude the loaded modules of this worker from garbage collection.

    Spark's daemon collects garbage after every task, on a core that the next task is waiting for. Numba,
    Arrow and pandas are some hundred thousand objects: visiting them takes longer than a small micro-batch.
    """
    if len(gc.get_objects()) > _LITTLE:
        gc.collect()
        gc.freeze()
