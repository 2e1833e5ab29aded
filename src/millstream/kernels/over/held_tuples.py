"""Tuples that are held until all rows of their frames are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Integers
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.state_chunks import Ledger
from millstream.kernels.core.tuple_batch import as_table, from_table, joined

_ORDINAL, _SERIAL = "__ms_ordinal", "__ms_serial"


class HeldTuples:
    """Tuples in order, with their numbers among those of their key.

    A snapshot writes the tuples that came since the last one, and the serial numbers of those that have been
    released since.
    """

    def __init__(self) -> None:
        self.tuples: Tuples | None = None
        self.ordinals: Integers = NO_INTEGERS
        self._serials: Integers = NO_INTEGERS
        self._next = 0
        self._written = 0
        """Tuples with a smaller serial number have been in a snapshot."""

        self._released: list[Integers] = []
        self._ledger, self._gone = Ledger("following"), Ledger("gone")

    def __len__(self) -> int:
        return len(self.ordinals)

    def add(self, tuples: Tuples, ordinals: Integers) -> None:
        self.tuples = tuples if self.tuples is None or not len(self) else joined([self.tuples, tuples])
        self.ordinals = np.concatenate([self.ordinals, ordinals])
        serials = np.arange(self._next, self._next + len(ordinals))
        self._serials = np.concatenate([self._serials, serials])
        self._next += len(ordinals)

    def release(self, is_ready: Array) -> Tuples:
        """Return the tuples that are ready, and forget them."""
        assert self.tuples is not None, "tuples have been added, if only none"
        ready = self.tuples.take(is_ready)
        released = self._serials[is_ready]
        self._released.append(released[released < self._written])
        kept = ~is_ready
        self.tuples = self.tuples.take(kept)
        self.ordinals, self._serials = self.ordinals[kept], self._serials[kept]
        return ready

    def passes(self, frontier: Frontier) -> Frontier:
        """Return the frontier behind the oldest tuple, which comes with its own time."""
        if self.tuples is None or not len(self):
            return frontier
        oldest = replace(frontier, time=self.tuples.time[0].item(), origin=-1)
        return min(frontier, oldest)

    def snapshot(self) -> Change:
        fresh = self._serials >= self._written
        released = np.concatenate([NO_INTEGERS, *self._released])
        dropped: tuple[str, ...] = ()
        added: dict[str, pa.Table] = {}
        if not len(self):
            dropped = self._ledger.drop_all() + self._gone.drop_all()
        elif self._ledger.should_be_rewritten(int(fresh.sum()), len(self)):
            dropped = self._ledger.drop_all() + self._gone.drop_all()
            added = self._ledger.add(self._table(np.ones(len(self), np.bool_)), (0, 0))
        else:
            added = self._ledger.add(self._table(fresh), (0, 0))
            added |= self._gone.add(pa.table({_SERIAL: pa.array(released)}), (0, 0))
        self._written = self._next
        self._released = []
        return Change(added, dropped, {"held": self._next, **self._ledger.meta(), **self._gone.meta()})

    def _table(self, rows: Array) -> pa.Table:
        assert self.tuples is not None, "there are rows"
        table = as_table(self.tuples.take(rows))
        for name, values in ((_ORDINAL, self.ordinals), (_SERIAL, self._serials)):
            table = table.append_column(name, pa.array(values[rows]))
        return table

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._next = self._written = int(meta.get("held", 0))
        mine, gone = (ledger.restored(meta, chunks) for ledger in (self._ledger, self._gone))
        for ledger in (self._ledger, self._gone):
            ledger.marks = dict.fromkeys(ledger.rows, (0, 0))
        if not mine:
            return
        table = pa.concat_tables([chunk for _, chunk in mine])
        serials = _column(table, _SERIAL)
        released = [_column(chunk, _SERIAL) for _, chunk in gone]
        rows = np.flatnonzero(~np.isin(serials, np.concatenate([NO_INTEGERS, *released])))
        self._serials, self.ordinals = serials[rows], _column(table, _ORDINAL)[rows]
        self.tuples = from_table(table.drop_columns([_ORDINAL, _SERIAL])).take(rows)


def _column(table: pa.Table, name: str) -> Integers:
    values: Integers = arrow_buffers.single(table[name]).to_numpy()
    return values
