"""Tuples that are held until they expire, and the results emitted then (ACTIVE EXPIRATION)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.core.kernel import Change, Times, Tuples
from millstream.kernels.core.state_chunks import Ledger
from millstream.kernels.core.time_order import MOST, as_order, from_order

ORIGINS = 1 << 20
"""Number of origins of tuples that come, if nothing else is said."""

_ID, _TIME, _ORIGIN, _NUMBER = "__ms_held_id", "__ms_held_time", "__ms_held_origin", "__ms_held_number"


def expirations(time: Times, reach: int | float) -> Times:
    """Return the instants of expiration; an instant beyond all times never comes."""
    if time.dtype == np.float64:
        return time + np.float64(reach)
    return np.where(time > MOST - 1 - int(reach), MOST - 1, time + int(reach))


class ExpiringTuples:
    """Tuples in the order in which they came, which is that in which they expire; each has a number.

    Origins are smaller than ``origins``. What is said when tuples leave has larger ones, and so comes after
    all tuples of that instant, whatever they are the results of.
    """

    def __init__(self, origins: int) -> None:
        self._origins = origins
        self._ledger = Ledger("held")
        self.is_float = False
        self.clear()

    def clear(self) -> None:
        self.table: pa.Table | None = None
        self.base = 0
        """Number of the first tuple that is held."""

        self._fresh: list[pa.Table] = []

    def __len__(self) -> int:
        return 0 if self.table is None else self.table.num_rows

    @property
    def numbers(self) -> Integers:
        return np.asarray(self.table[_ID]) if self.table is not None else np.zeros(0, np.int64)

    @property
    def times(self) -> Times:
        order = np.asarray(self.table[_TIME]) if self.table is not None else np.zeros(0, np.int64)
        return from_order(order, self.is_float)

    def add(self, tuples: Tuples) -> None:
        self.is_float = tuples.time.dtype == np.float64
        count = len(tuples)
        if not count and self.table is not None:
            return
        table = tuples.columns
        for name, values in (
            (_ID, np.arange(self.base + len(self), self.base + len(self) + count)),
            (_TIME, as_order(tuples.time)),
            (_ORIGIN, tuples.origin),
            (_NUMBER, tuples.number),
        ):
            table = table.append_column(name, pa.array(values))
        self._fresh.append(table)
        self.table = table if self.table is None else pa.concat_tables([self.table, table])

    def forget(self, count: int) -> None:
        """Delete the oldest tuples."""
        if self.table is not None and count:
            self.table = self.table.slice(count)
            if self.table.num_rows < count:
                self.table = self.table.combine_chunks()  # so as not to hold on to what is gone
        self.base += count

    def taken(self, rows: Integers, expired: Array, time: Times, results: Mapping[str, pa.Array]) -> Tuples:
        """Return tuples by their places among those held, with results about them at some instants.

        Those that have ``expired`` come after all tuples of the instant, in the order in which they came, in
        whatever shard.
        """
        assert self.table is not None, "there has been a batch, if only an empty one"
        held = self.table.take(pa.array(rows))
        number = np.asarray(held[_NUMBER])
        own = np.asarray(held[_ORIGIN]).astype(np.int64)
        origin = np.where(expired, own + self._origins, own).astype(np.int32)
        columns = held.drop_columns([_ID, _TIME, _ORIGIN, _NUMBER])
        for name, column in results.items():
            columns = columns.append_column(name, column)
        return Tuples(columns, time, origin, number)

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        ledger = self._ledger
        dropped = ledger.drop_before((self.base, 0))
        added: dict[str, pa.Table] = {}
        if ledger.should_be_rewritten(sum(t.num_rows for t in self._fresh), len(self)):
            dropped += ledger.drop_all()
            self._fresh = [] if self.table is None else [self.table]
        for table in (table for table in self._fresh if table.num_rows):
            last = int(table[_ID][-1].as_py())
            if last >= self.base:
                added |= ledger.add(table, (last, 0))
        self._fresh = []
        meta = {**ledger.meta(), "base": self.base, "is_float": self.is_float}
        return Change(added, dropped, meta)

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self.clear()
        self.base = int(meta.get("base", 0))
        self.is_float = bool(meta.get("is_float", False))
        mine = self._ledger.restored(meta, chunks)
        for name, table in mine:
            self._ledger.marks[name] = (int(table[_ID][-1].as_py()), 0)
        if mine:
            everything = pa.concat_tables([table for _, table in mine])
            before = int(np.searchsorted(np.asarray(everything[_ID]), self.base))
            self.table = everything.slice(before)
