"""The one row of an aggregate without GROUP BY, which is there if the relation is empty too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.catalog.builtin_aggregates import accumulator_row
from millstream.kernels.column_names import OP
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.relational.group_rows import equality_codes
from millstream.kernels.relational.incremental_relation import change_marks
from millstream.kernels.specs import GroupSpec

_SHOWN = "shown"


class ScalarRow(Kernel):
    """Changes of a single group, with the row of an empty relation where the group has none.

    That row enters at the instant ``first``, before all others. Without it, changes begin when the row is
    another than that of an empty relation.
    """

    def __init__(self, spec: GroupSpec, first: int | float | None) -> None:
        self._aggregates = spec.aggregates
        self._first = first
        self._shown: pa.Table | None = None
        self._is_told = False
        """Whether the row that is shown has entered the result."""

        self._version = 0
        self._is_saved = True

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        columns = tuples.columns
        names = [one.result for one in self._aggregates]
        empty = self._row_of_nothing()
        before = empty if self._shown is None else self._shown
        table = pa.concat_tables([before, empty, columns.select(names).cast(before.schema)]).combine_chunks()
        ops = arrow_buffers.values(arrow_buffers.single(columns[OP]), np.int8)
        lasts = np.flatnonzero(np.append(tuples.time[1:] != tuples.time[:-1], True)[: len(ops)])
        rows = np.where(ops[lasts] > 0, lasts + 2, 1)
        codes = equality_codes(table)
        followed = np.append(0, rows)
        changed = np.flatnonzero((codes[followed[1:]] != codes[followed[:-1]]).any(axis=1))
        # In pairs: what leaves, and what enters.
        places = np.stack([followed[:-1][changed], followed[1:][changed]], axis=1).ravel()
        signs = np.tile(np.array([-1, 1], np.int8), len(changed))
        times = np.repeat(tuples.time[lasts[changed]], 2)
        if not self._is_told and self._first is not None:
            places, signs = np.append(0, places), np.append(np.int8(1), signs)
            times = np.append(np.array([self._first], tuples.time.dtype), times)
            self._is_told = True
        elif not self._is_told and len(changed):
            places, signs, times = places[1:], signs[1:], times[1:]
            self._is_told = True
        if len(changed) or self._shown is None:
            self._shown = table.slice(int(followed[changed[-1] + 1]) if len(changed) else 0, 1)
            self._is_saved = False
        return self._told(table.take(pa.array(places)), signs, times)

    def _told(self, rows: pa.Table, signs: Array, times: Array) -> Tuples:
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        ids = np.zeros(len(signs), np.int64)
        columns |= change_marks(signs, None, (ids, ids))
        numbers = np.zeros(len(signs), np.int64)
        numbers[1:] = times[1:] == times[:-1]  # at most two at an instant
        return Tuples(pa.table(columns), times, np.zeros(len(signs), np.int32), numbers)

    def _row_of_nothing(self) -> pa.Table:
        """Return the aggregates of no tuples."""
        values = {
            one.result: pa.array([accumulator_row(one.function).empty], one.type) for one in self._aggregates
        }
        return pa.table(values)

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        version = self._version
        if self._is_saved or self._shown is None:
            return Change(meta={"told": self._is_told, "version": version})
        self._version, self._is_saved = version + 1, True
        dropped = (f"{_SHOWN}{version}",) if version else ()
        added = {f"{_SHOWN}{self._version}": self._shown}
        return Change(added, dropped, {"told": self._is_told, "version": self._version})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._is_told, self._version = bool(meta.get("told")), int(meta.get("version", 0))
        self._shown = chunks.get(f"{_SHOWN}{self._version}")
        self._is_saved = True

    @property
    def rows(self) -> int:
        return 1
