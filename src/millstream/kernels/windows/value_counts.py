"""ValueCounts: the number of tuples of a partition by value, for values that the watermark has not passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates.count import Count
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import NO_CODES, NO_INTEGERS, Codes, Integers
from millstream.kernels.core.kernel import Change
from millstream.kernels.core.partition_state import Partitions
from millstream.kernels.core.state_chunks import Ledger, is_wasteful
from millstream.kernels.windows.pending_panes import PendingPanes, Rows

_VALUE = "value"
_COUNT = "count"


class ValueCounts:
    """Counts of tuples, which come in any order, by partition and value (a bin).

    A chunk of state has the bins that came between two snapshots and still waited at the second. Values are
    integers in their order.
    """

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._waiting = PendingPanes([Count(None)])
        self._fresh: list[Rows] = []
        self._ledger = Ledger("bins")

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, values: Integers, partitions: Codes) -> None:
        self._add(values, partitions, np.ones(len(values), np.int64))

    def _add(self, values: Integers, partitions: Codes, counts: Integers) -> None:
        if len(values):
            rows = self._waiting.merged((values, partitions, np.zeros(len(values), np.int64), counts))
            self._waiting.add(rows)
            self._fresh.append(rows)

    def take(self, before: int | None) -> tuple[Codes, Integers, Integers]:
        """Remove the bins before a value, or all; return their partitions, values and counts, in order."""
        rows = self._waiting.take_before(before)
        self._waiting.settle()
        if rows is None:
            return NO_CODES, NO_INTEGERS, NO_INTEGERS
        values, partitions, _, counts = self._waiting.merged(rows, by_key=True)
        return partitions, values, counts

    def snapshot(self, before: int) -> Change:
        """Return the changes; the bins before some value have been taken."""
        ledger = self._ledger
        dropped = ledger.drop_before((before, 0))
        fresh = [tuple(column[rows[0] >= before] for column in rows) for rows in self._fresh]
        self._fresh = []
        added: dict[str, pa.Table] = {}
        if not len(self):
            dropped += ledger.drop_all()
        elif is_wasteful(ledger.total + sum(len(rows[0]) for rows in fresh), len(self)):
            dropped += ledger.drop_all()
            added = self._written(self._waiting.everything())
        elif fresh:
            added = self._written(tuple(np.concatenate(columns) for columns in zip(*fresh, strict=True)))
        return Change(added, dropped, ledger.meta())

    def _written(self, rows: Rows | None) -> dict[str, pa.Table]:
        if rows is None or not len(rows[0]):
            return {}
        values, partitions, _, counts = self._waiting.merged(rows)
        columns = self._partitions.table(partitions)
        columns |= {_VALUE: pa.array(values), _COUNT: pa.array(counts)}
        return self._ledger.add(pa.table(columns), (int(values.max()), 0))

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table], before: int) -> None:
        """Restore the counts; partitions have been restored."""
        self._waiting = PendingPanes([Count(None)])
        for name, table in self._ledger.restored(meta, chunks):
            values, counts = (
                arrow_buffers.values(arrow_buffers.single(table[c]), np.int64) for c in (_VALUE, _COUNT)
            )
            self._ledger.marks[name] = (int(values.max()), 0)
            waits = values >= before
            self._add(values[waits], self._partitions.codes(table)[waits], counts[waits])
        self._fresh = []
