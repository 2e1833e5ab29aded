"""Spark's Python workers, which live on from one task to the next."""

from __future__ import annotations

import gc

_LITTLE = 20_000
"""Objects that are gone through in a millisecond."""


def settle() -> None:
    """Let the collector pass over what was loaded into this worker, which stays for good.

    Spark's daemon collects garbage after every task, on a core that the next task is waiting for. Numba,
    Arrow and pandas are some hundred thousand objects: going through them takes longer than all that a small
    micro-batch has to do.
    """
    if len(gc.get_objects()) > _LITTLE:
        gc.collect()
        gc.freeze()
