"""Aggregates over all tuples of a key so far, with one row of state for each key."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millstream.kernels.aggregates.accumulator import some
from millstream.kernels.aggregates.keyed_state import KeyedState
from millstream.kernels.core.kernel import Frontier
from millstream.kernels.over.requested_results import RequestedResults
from millstream.kernels.specs import OverSpec


class RunningAggregates(KeyedState):
    """Calls of a SELECT with unbounded frames."""

    def __init__(self, calls: Sequence[OverSpec]) -> None:
        super().__init__([call.aggregate for call in calls], "keys")

    def results(self, requested: RequestedResults, frontier: Frontier) -> list[pa.Array]:
        """Return the results of all calls for some of the tuples, which come in order."""
        codes = self._codes(requested.tuples)
        measured = [
            measure.fold(codes, measure.of_tuples(requested.tuples), self._grown(number), running=True)
            for number, measure in enumerate(self._measures)
        ]
        if not requested.are_all:
            measured = [some(parts, requested.rows) for parts in measured]
        results = [
            requested.answer(
                aggregate,
                self._measures[aggregate.measures[0]],
                [measured[number] for number in aggregate.measures],
            )
            for aggregate in self._aggregates
        ]
        if frontier.is_end:
            self._start_over()
        else:
            self._tidy()
        return results
