"""OverAggregate: for each tuple, aggregates of itself and the tuples before it in its partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from millstream.kernels.aggregates import check
from millstream.kernels.base import Change, Frontier, Kernel, Tuples
from millstream.kernels.running import Running
from millstream.kernels.sliding import Sliding
from millstream.kernels.specs import OverSpec


class OverAggregate(Kernel):
    """Takes tuples in order and gives each with a result of every call (semantics 2, windows over a call).

    Keys and values live in memory as arrays over all partitions of the shard; a batch costs as much as it has
    tuples, however large windows are and however many partitions there are.
    """

    def __init__(self, calls: tuple[OverSpec, ...]) -> None:
        check(call.aggregate for call in calls)
        self._calls = calls
        self._sliding = Sliding([call for call in calls if not call.is_unbounded])
        self._running = Running([call for call in calls if call.is_unbounded])

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        unbounded = [call.is_unbounded for call in self._calls]
        sliding = iter(self._sliding.results(tuples, frontier) if not all(unbounded) else ())
        running = iter(self._running.results(tuples, frontier) if any(unbounded) else ())
        columns = tuples.columns
        for call in self._calls:
            column = next(running if call.is_unbounded else sliding)
            columns = columns.append_column(call.aggregate.result, column)
        return Tuples(columns, tuples.time, tuples.origin, tuples.number)

    def snapshot(self) -> Change:
        changes = self._sliding.snapshot(), self._running.snapshot()
        return Change(
            {name: table for change in changes for name, table in change.added.items()},
            tuple(name for change in changes for name in change.dropped),
            {name: value for change in changes for name, value in change.meta.items()},
        )

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._sliding.restore(meta, chunks)
        self._running.restore(meta, chunks)

    @property
    def rows(self) -> int:
        return self._sliding.rows + self._running.rows
