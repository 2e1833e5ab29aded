"""Tuples between two times of day, on the day of the first tuple."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.windows.window_assigner import MICROSECONDS_PER_DAY


class BoundsOfDay(Kernel):
    """Tuples from one instant on and before another; bounds ``of_day`` count from the beginning of that day.

    Tuples come in order, in one shard.
    """

    def __init__(self, start: int | None, end: int | None, of_day: tuple[bool, bool]) -> None:
        self._bounds = start, end
        self._of_day = of_day
        self._day: int | None = None

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        if self._day is None and len(tuples):
            self._day = int(tuples.time[0] // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY)
        if self._day is None:
            return tuples
        start, end = (
            None if bound is None else bound + (self._day if of_day else 0)
            for bound, of_day in zip(self._bounds, self._of_day, strict=True)
        )
        inside = np.ones(len(tuples), np.bool_)
        if start is not None:
            inside &= tuples.time >= start
        if end is not None:
            inside &= tuples.time < end
        return tuples if inside.all() else tuples.take(inside)

    def snapshot(self) -> Change:
        return Change(meta={"day": self._day})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._day = meta.get("day")

    @property
    def rows(self) -> int:
        return 0
