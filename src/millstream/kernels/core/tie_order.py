"""TieOrder: an order by columns for tuples with the same time, instead of the order of arrival.

Results of a window with the same time are in the order of their windows and groups. Results of one time may
come in several micro-batches (from partitions that count for themselves, or sub-streams with watermarks of
their own), so none of them is released before the frontier has passed that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.core.buffers import Array
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.core.sort_keys import sort_key
from millstream.kernels.core.time_order import as_order
from millstream.kernels.core.tuple_batch import joined


class TieOrder(Reorder):
    """A buffer of tuples of some origins that numbers all tuples of a time by their ``ties``.

    Tuples of other origins, which arrive in order, pass.

    Args:
        ties: Columns that give the order of tuples with the same time and origin; NULL comes first.
        origins: First and last of those origins, in pairs.
    """

    side = "left"

    def __init__(self, ties: Sequence[str], origins: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self._ties = tuple(ties)
        self._origins = tuple(origins)
        self._given = 0
        """Number of tuples that have been put in order."""

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        mine = np.zeros(len(tuples), np.bool_)
        for first, last in self._origins:
            mine |= (tuples.origin >= first) & (tuples.origin <= last)
        final = super().process(tuples if mine.all() else tuples.take(mine), frontier)
        settled = replace(final, number=np.arange(self._given, self._given + len(final)))
        self._given += len(final)
        return settled if mine.all() else _beside(tuples.take(~mine), settled)

    def _indices(self, tuples: Tuples) -> Array | None:
        keys = {"time": as_order(tuples.time), "origin": tuples.origin}
        ties = {f"tie{i}": sort_key(tuples.columns.column(name)) for i, name in enumerate(self._ties)}
        table = pa.table({**keys, **ties, "number": tuples.number})
        order = [(name, "ascending", "at_start") for name in table.column_names]
        indices: Array = np.asarray(pc.sort_indices(table, sort_keys=order)).astype(np.int64)
        return indices

    def snapshot(self) -> Change:
        change = super().snapshot()
        return replace(change, meta={**change.meta, "given": self._given})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        super().restore(meta, chunks)
        self._given = meta["given"]


def _beside(others: Tuples, settled: Tuples) -> Tuples:
    """Join both; some of the others may be held."""
    both = joined([others, settled])
    if others.hold is None:
        return both
    lowest = -np.inf if others.hold.dtype == np.float64 else np.iinfo(np.int64).min
    never = np.full(len(settled), lowest, others.hold.dtype)
    return replace(both, hold=np.concatenate([others.hold, never]))
