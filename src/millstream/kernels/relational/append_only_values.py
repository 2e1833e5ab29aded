"""All values of append-only groups, for aggregates that need them: medians, lists, distinct counts.

The accumulator of each group is in memory. The state chunks have each value once, written when it came. An
aggregate that ignores duplicates never gets them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates.accumulator import Accumulator, Parts
from millstream.kernels.aggregates.content_aggregates import Recomputed
from millstream.kernels.column_names import KEY, KEY2
from millstream.kernels.core.buffers import Array, Buffer, Codes
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Change, Tuples
from millstream.kernels.core.key_table import KeyTable, first_rows
from millstream.kernels.core.state_chunks import Ledger


class AppendOnlyValues:
    """One accumulator for all groups. The caller owns the key table and passes key codes."""

    def __init__(self, accumulator: Accumulator, number: int, *, distinct: bool) -> None:
        self.measure = accumulator
        self._distinct = distinct
        self._ledger = Ledger(f"values{number}")
        self.start_over()

    def start_over(self) -> None:
        """Drop all groups."""
        self._kept = [Buffer(dtype, 0) for dtype in self.measure.parts.values()]
        self._fresh: list[pa.Table] = []
        self._seen = _Seen() if self._distinct else None
        self.rows = 0

    def add(self, keys: int, codes: Codes, tuples: Tuples, rows: Array | None) -> Parts:
        """Add tuples to their groups; return the accumulators after the tuples at ``rows``.

        ``keys`` is the number of groups.
        """
        parts = self.measure.of_tuples(tuples)
        values = parts[0]
        present = np.array([value.__class__ is not int for value in values.tolist()], np.bool_)
        if self._seen is not None:
            present = self._seen.new(self.measure.arguments, codes, tuples.columns, np.flatnonzero(present))
            values[~present] = 0
        new = np.flatnonzero(present)
        if len(new):
            names = [name for name in (KEY, KEY2) if name in tuples.columns.column_names]
            fresh = tuples.columns.select([*names, *self.measure.arguments])
            self._fresh.append(fresh.take(pa.array(new)).combine_chunks())
            self.rows += len(new)
        return self._folded(keys, codes, parts, rows)

    def now(self, keys: int, codes: Codes) -> Parts:
        """Return the accumulators of distinct groups."""
        return self._folded(keys, codes, self.measure.zeros(len(codes)), np.arange(len(codes)))

    def _folded(self, keys: int, codes: Codes, parts: Parts, rows: Array | None) -> Parts:
        for buffer in self._kept:
            buffer.resize(keys)
        into = tuple(buffer.view for buffer in self._kept)
        if isinstance(self.measure, Recomputed):
            # Each result takes as long as the group is large.
            return self.measure.fold_for(rows, codes, parts, into)
        answers = self.measure.fold(codes, parts, into, running=True)
        return answers if rows is None else tuple(part[rows] for part in answers)

    def snapshot(self) -> Change:
        fresh, self._fresh = self._fresh, []
        dropped = self._ledger.drop_all() if not self.rows else ()
        added = self._ledger.add(pa.concat_tables(fresh), (0, 0)) if fresh and self.rows else {}
        return Change(added, dropped, self._ledger.meta())

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table], keys: KeyTable) -> None:
        mine = self._ledger.restored(meta, chunks)
        self._ledger.marks = {name: (0, 0) for name, _ in mine}
        if mine:
            table = pa.concat_tables([table for _, table in mine]).combine_chunks()
            count = table.num_rows
            numbers = np.arange(count)
            tuples = Tuples(table, numbers, np.zeros(count, np.int32), numbers)
            self.add(len(keys), keys.of(table), tuples, None)
            self._fresh = []


class _Seen:
    """The distinct values of each group, as codes of pairs: a group or a shorter pair, and the next value."""

    def __init__(self) -> None:
        self._columns: dict[str, tuple[Column, KeyTable]] = {}

    def new(self, names: Sequence[str], groups: Codes, table: pa.Table, rows: Array) -> Array:
        """Return a mask of the rows whose values are new to their groups."""
        codes = groups[rows].astype(np.int64)
        known = 0
        for name in names:
            values = table[name].take(pa.array(rows))
            if name not in self._columns:
                self._columns[name] = Column(values.type), KeyTable()
            column, pairs = self._columns[name]
            known = len(pairs)
            codes = pairs.codes(codes, column.encode(values)[0]).astype(np.int64)
        firsts = first_rows(np.maximum(codes, known - 1))
        is_new = np.zeros(len(groups), np.bool_)
        is_new[rows[firsts[codes[firsts] >= known]]] = True
        return is_new
