"""Results for some of the tuples: at once, or to be given out later if nothing better comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates.accumulator import Accumulator, Parts
from millstream.kernels.aggregates.accumulator_selection import Aggregate
from millstream.kernels.aggregates.finalize import result
from millstream.kernels.core.buffers import Integers
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.kernel_errors import KernelError


@dataclass
class RequestedResults:
    """The tuples whose results are wanted, by their place.

    Results that do not fit their type are an error; where ``is_final`` is not set they may never be given
    out, and are NULL for the time being: ``unfit`` has the names of such results, by row.
    """

    tuples: Tuples
    rows: Integers
    is_final: bool = True
    unfit: dict[int, str] = field(default_factory=dict)

    @classmethod
    def all_of(cls, tuples: Tuples) -> RequestedResults:
        return cls(tuples, np.arange(len(tuples)))

    @property
    def are_all(self) -> bool:
        return len(self.rows) == len(self.tuples)

    def position(self, row: int) -> tuple[int | float, ...]:
        """Where a wanted tuple is in its stream."""
        return position(self.tuples, int(self.rows[row]))

    def answer(self, aggregate: Aggregate, accumulator: Accumulator, parts: Sequence[Parts]) -> pa.Array:
        """The results of an aggregate from what its measures, of which the first is given, have."""
        while True:
            told = _PositionRecorder(self.position)
            try:
                return result(aggregate, accumulator, parts, told)
            except KernelError:
                if self.is_final or told.row is None:
                    raise
                self.unfit.setdefault(told.row, aggregate.spec.result)
                parts = [tuple(_without(array, told.row) for array in part) for part in parts]


def position(tuples: Tuples, row: int) -> tuple[int | float, ...]:
    return tuples.time[row].item(), int(tuples.origin[row]), int(tuples.number[row])


class _PositionRecorder:
    """Remembers for which row somebody asked where it is."""

    def __init__(self, position: Callable[[int], tuple[int | float, ...]]) -> None:
        self._position = position
        self.row: int | None = None

    def __call__(self, row: int) -> tuple[int | float, ...]:
        self.row = row
        return self._position(row)


def _without(array: Integers, row: int) -> Integers:
    """A part of a measure, neutral in one row."""
    if not len(array):
        return array
    copy = array.copy()
    copy[row] = 0
    return copy
