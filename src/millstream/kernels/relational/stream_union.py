"""StreamUnion: the first of the tuples with equal key and time, for UNION of streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.core.kernel import BEGINNING, Change, Frontier, Kernel, Tuples
from millstream.kernels.core.key_table import KeyTable, first_rows
from millstream.kernels.core.state_chunks import Ledger, is_wasteful
from millstream.kernels.core.time_order import LEAST, as_order, from_order, order_of
from millstream.kernels.core.tuple_batch import TIME, frontier_as_data, frontier_from_data, is_held


class StreamUnion(Kernel):
    """Distinct tuples: the first of equal ones passes at once, and is stored while another may come.

    The key is a hash of all columns. A late tuple of a GENEROUS stream always passes, since the state of its
    time may have expired.
    """

    def __init__(self) -> None:
        self._frontier = BEGINNING
        self._is_float = False
        self._ledger = Ledger("seen")
        self._start_over()

    def _start_over(self) -> None:
        self._keys = KeyTable()
        self._seen = KeyTable()
        """Codes of pairs of a key code and a time."""

        self._needed = 0
        """The number of live pairs at the last count."""

        self._saved = 0
        self._latest = LEAST

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        self._frontier = frontier
        self._is_float = tuples.time.dtype == np.float64
        held = is_held(tuples)
        passes = np.zeros(len(tuples), np.bool_) if held is None else held.copy()
        punctual = np.flatnonzero(~passes)
        table = tuples.columns if held is None else tuples.columns.take(pa.array(punctual))
        passes[punctual[self._add(table, as_order(tuples.time)[punctual])]] = True
        self._expire()
        return tuples if passes.all() else tuples.take(passes)

    def _add(self, table: pa.Table, order: Integers) -> Integers:
        """Add keys and times; return the rows of the new ones."""
        known = len(self._seen)
        codes = self._seen.codes(self._keys.of(table).astype(np.int64), order)
        if len(order):
            self._latest = max(self._latest, int(order.max()))
        rows = first_rows(np.maximum(codes, known - 1))
        return rows[codes[rows] >= known]

    def _expire(self) -> None:
        if self._frontier.is_end or self._latest < self._bound:
            self._start_over()
        elif is_wasteful(len(self._seen), self._needed):
            rows = np.flatnonzero(self._seen.second.view >= self._bound)
            saved = int(np.searchsorted(rows, self._saved))
            table = self._export(rows)
            self._start_over()
            self._import(table)
            self._needed, self._saved = len(rows), saved

    @property
    def _bound(self) -> int:
        """The least time of later tuples."""
        return order_of(self._frontier.time, self._is_float)

    def _export(self, rows: Array) -> pa.Table:
        times = from_order(self._seen.second.view[rows], self._is_float)
        return pa.table({**self._keys.table(self._seen.first.view[rows]), TIME: pa.array(times)})

    def _import(self, table: pa.Table) -> None:
        times = arrow_buffers.single(table[TIME]).to_numpy()
        self._is_float = times.dtype == np.float64
        self._add(table, as_order(times))

    def snapshot(self) -> Change:
        ledger = self._ledger
        rows = self._saved + np.flatnonzero(self._seen.second.view[self._saved :] >= self._bound)
        self._saved = len(self._seen)
        dropped = ledger.drop_before((self._bound, 0))
        if not len(self._seen):
            dropped += ledger.drop_all()
        elif is_wasteful(ledger.total + len(rows), len(self._seen)):
            dropped += ledger.drop_all()
            rows = np.flatnonzero(self._seen.second.view >= self._bound)
        added = {}
        if len(rows):
            added = ledger.add(self._export(rows), (int(self._seen.second.view[rows].max()), 0))
        return Change(added, dropped, {"frontier": frontier_as_data(self._frontier), **ledger.meta()})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._frontier = frontier_from_data(meta.get("frontier"))
        self._start_over()
        for name, table in self._ledger.restored(meta, chunks):
            self._import(table)
            self._ledger.marks[name] = (int(as_order(arrow_buffers.single(table[TIME]).to_numpy()).max()), 0)
        self._saved = len(self._seen)

    @property
    def rows(self) -> int:
        return len(self._seen)
