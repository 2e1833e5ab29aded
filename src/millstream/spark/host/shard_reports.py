"""What shards report to the driver: how far they have come, what was late, where the time went.

Reports travel by accumulators, not among the results: looking at every result for reports would cost more
than a small micro-batch has to do otherwise. Nothing that is imported here is heavy (processor.py says why).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

Report = dict[str, Any]


class _Appended(AccumulatorParam[Any]):
    """Workers append to lists, the driver to what it takes from at the other end."""

    def zero(self, value: Any) -> list[Report]:
        return []

    def addInPlace(self, value: Any, term: Any) -> Any:
        value.extend(term)
        return value


class ShardReports:
    """The reports of one stage that have come to the driver and were not taken yet."""

    def __init__(self, context: SparkContext) -> None:
        self._arrived: deque[Report] = deque()
        self.accumulator: Accumulator[Any] = context.accumulator(self._arrived, _Appended())
        """For the workers."""

    def take(self) -> Iterator[Report]:
        """All that have come; Spark has those of a micro-batch here before it calls the batch done."""
        while self._arrived:
            yield self._arrived.popleft()
