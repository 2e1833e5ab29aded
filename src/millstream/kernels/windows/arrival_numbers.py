"""ArrivalNumbers: marks on the n-th, 2n-th, ... tuples to arrive, which end a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.jit import njit
from millstream.kernels.column_names import ENDS, PLACED, Columns
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.core.partition_state import Partitions


class ArrivalNumbers(Kernel):
    """A kernel that takes tuples in order of arrival and marks every n-th of a partition.

    All tuples pass except those that are only counted, because they have no value of the window's attribute.
    """

    def __init__(self, every: int, per: Columns) -> None:
        self._every = every
        self._counts = Partitions(per, {"count": 0})

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        parts = self._counts.codes(tuples.columns)
        self._counts.note(parts)
        marks = np.empty(len(parts), np.bool_)
        _mark(frozen(parts), self._every, self._counts["count"], marks)
        columns = tuples.columns.append_column(ENDS, pa.array(marks))
        numbered = Tuples(columns, tuples.time, tuples.origin, tuples.number, tuples.hold)
        if PLACED not in columns.column_names:
            return numbered
        return numbered.take(np.asarray(pc.fill_null(columns[PLACED], False)))

    def snapshot(self) -> Change:
        return self._counts.snapshot()

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._counts.restore(meta, chunks)

    @property
    def rows(self) -> int:
        return len(self._counts)


@njit(cache=True)
def _mark(parts: Codes, every: int, counts: Integers, marks: Array) -> None:
    for i in range(len(parts)):
        counts[parts[i]] += 1
        marks[i] = counts[parts[i]] % every == 0
