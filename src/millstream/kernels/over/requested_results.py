"""Results for some of the tuples: emitted at once, or held until a later tuple replaces them."""

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
    """Tuples whose results are requested, by their place.

    Results that do not fit their type are an error; where ``is_final`` is not set they may never be emitted,
    and are NULL for the time being: ``unfit`` has the names of such results, by row.
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
        """Return the position of a requested tuple in its stream."""
        return position(self.tuples, int(self.rows[row]))

    def answer(self, aggregate: Aggregate, accumulator: Accumulator, parts: Sequence[Parts]) -> pa.Array:
        """Return the results of an aggregate; ``accumulator`` is its first, ``parts`` are those of all."""
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
    """A function that records the row whose position is requested."""

    def __init__(self, position: Callable[[int], tuple[int | float, ...]]) -> None:
        self._position = position
        self.row: int | None = None

    def __call__(self, row: int) -> tuple[int | float, ...]:
        self.row = row
        return self._position(row)


def _without(array: Integers, row: int) -> Integers:
    """Return a part of an accumulator, neutral in one row."""
    if not len(array):
        return array
    copy = array.copy()
    copy[row] = 0
    return copy
