"""Reports of shards to the driver: progress, late tuples, timings.

Reports travel in accumulators, not among the results: filtering every result for reports would cost more than
a small micro-batch. No heavy module is imported here (see stateful_processor.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

Report = dict[str, Any]


class _Appended(AccumulatorParam[Any]):
    """Accumulator of lists: workers append reports, and the driver collects them in a queue."""

    def zero(self, value: Any) -> list[Report]:
        return []

    def addInPlace(self, value: Any, term: Any) -> Any:
        value.extend(term)
        return value


class ShardReports:
    """The reports of one stage that have reached the driver and were not taken yet."""

    def __init__(self, context: SparkContext) -> None:
        self._arrived: deque[Report] = deque()
        self.accumulator: Accumulator[Any] = context.accumulator(self._arrived, _Appended())
        """Accumulator for the workers."""

    def take(self) -> Iterator[Report]:
        """Yield all reports; those of a micro-batch arrive before Spark reports the batch as done."""
        while self._arrived:
            yield self._arrived.popleft()
