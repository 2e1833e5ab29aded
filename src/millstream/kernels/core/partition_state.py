"""A few numbers for each partition of a stream, kept as long as they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.column_names import PART, Columns
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Codes
from millstream.kernels.core.kernel import Change
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.state_chunks import Ledger, is_wasteful


class Partitions:
    """Numbers by name for each partition, with their initial values.

    ``columns`` identify partitions. A chunk of state has the partitions that have changed between two
    snapshots.
    """

    def __init__(self, columns: Columns, numbers: Mapping[str, int]) -> None:
        self._columns = columns
        self._first = dict(numbers)
        self._ledger = Ledger("partitions")
        self._start_over()

    def _start_over(self) -> None:
        self._keys = KeyTable()
        self._numbers = {name: Buffer(np.int64, first) for name, first in self._first.items()}
        self._is_changed = Buffer(np.bool_, 0)

    def __len__(self) -> int:
        return len(self._keys)

    def codes(self, table: pa.Table) -> Codes:
        """Return the partitions of rows."""
        codes = self._keys.of(table, self._columns)
        for buffer in (*self._numbers.values(), self._is_changed):
            buffer.resize(len(self._keys))
        return codes

    def columns(self, codes: Codes) -> dict[str, pa.Array]:
        """Return the columns that identify partitions, where that is not the key."""
        columns = self.table(codes)
        return columns if PART in columns else {}

    def table(self, codes: Codes) -> dict[str, pa.Array]:
        """Return the columns that identify partitions."""
        return self._keys.table(codes)

    def __getitem__(self, name: str) -> Array:
        """Return the numbers of all partitions, to be changed in place."""
        return self._numbers[name].view

    def note(self, codes: Codes) -> None:
        """Mark partitions as changed."""
        self._is_changed.data[codes] = True

    def forget(self, needed: Array) -> None:
        """Delete all partitions but those of a mask. Codes change."""
        if not is_wasteful(len(self), int(needed.sum())):
            return
        table = self._export(np.flatnonzero(needed))
        changed = self._is_changed.view[needed]
        self._start_over()
        if table.num_rows:
            self._import(table)
            self._is_changed.data[: len(changed)] = changed

    def _export(self, codes: Array) -> pa.Table:
        columns: dict[str, Any] = self._keys.table(codes)
        columns |= {name: pa.array(buffer.view[codes]) for name, buffer in self._numbers.items()}
        return pa.table(columns)

    def _import(self, table: pa.Table) -> None:
        codes = self.codes(table)
        for name, buffer in self._numbers.items():
            buffer.data[codes] = arrow_buffers.values(arrow_buffers.single(table[name]), np.int64)

    def snapshot(self) -> Change:
        changed = np.flatnonzero(self._is_changed.view)
        dropped: tuple[str, ...] = ()
        added: dict[str, pa.Table] = {}
        if not len(self):
            dropped = self._ledger.drop_all()
        elif is_wasteful(self._ledger.total + len(changed), len(self)):
            dropped = self._ledger.drop_all()
            added = self._ledger.add(self._export(np.arange(len(self))), (0, 0))
        elif len(changed):
            added = self._ledger.add(self._export(changed), (0, 0))
        self._is_changed.view[:] = False
        return Change(added, dropped, self._ledger.meta())

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        mine = self._ledger.restored(meta, chunks)
        self._ledger.marks = {name: (0, 0) for name, _ in mine}
        self._start_over()
        # Later rows replace earlier ones of the same partition.
        for _, table in mine:
            self._import(table)
        self._is_changed.view[:] = False
