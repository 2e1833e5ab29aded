"""AppendOnlyJoin: pairs of tuples that are in the windows of two streams at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.column_names import SIDE, UNTIL
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Codes, Integers, frozen
from millstream.kernels.core.kernel import BEGINNING, Change, Frontier, Kernel, Tuples
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.state_chunks import Ledger, is_wasteful
from millstream.kernels.core.time_order import MOST, as_order, later, order_of
from millstream.kernels.core.tuple_batch import frontier_as_data, frontier_from_data
from millstream.kernels.relational.linked_rows import grown
from millstream.kernels.specs import AppendOnlyJoinSpec


class AppendOnlyJoin(Kernel):
    """Pairs of tuples with equal keys; a pair is emitted when the later of its two tuples comes.

    Tuples of both streams come in order. A tuple is joined with the tuples of the other stream that are in
    their window. Tuples leave windows of time in the order in which they came, so the expired tuples of a key
    are a prefix of its list: none is removed one by one, and no pair is retracted. Patroumpas and Sellis call
    such inputs weakest non-monotonic.
    """

    def __init__(self, spec: AppendOnlyJoinSpec) -> None:
        self._spec = spec
        self._frontier = BEGINNING
        self._is_float = False
        self._ledger = Ledger("joined")
        self._start_over()

    def _start_over(self) -> None:
        self._keys = KeyTable()
        self._until = Buffer(np.int64)
        """The last instant at which a row is in its window."""

        self._codes = Buffer(np.int32)
        """Twice the code of the key, and the side."""

        self._following = Buffer(np.int32)
        self._heads = Buffer(np.int32, -1)
        self._tails = Buffer(np.int32, -1)
        self._columns: pa.Table | None = None
        self._saved = 0

    # ------------------------------------------------------------ tuples

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        self._frontier = frontier
        self._is_float = tuples.time.dtype == np.float64
        order = as_order(tuples.time)
        first = len(self._until)
        self._append(tuples.columns, self._last_instants(tuples.columns, order))
        which, other = self._meet(first, order)
        pairs = self._pairs(tuples, first, which, other)
        self._forget()
        return pairs

    def _last_instants(self, columns: pa.Table, order: Integers) -> Integers:
        sides = _sides(columns)
        found: Integers = np.where(sides == 0, *(self._leaving(order, reach) for reach in self._spec.reach))
        return found

    def _leaving(self, order: Integers, reach: float | None) -> Integers:
        if reach is None:
            return np.full(len(order), MOST)
        return order if reach == 0 else later(order, self._is_float, reach)

    def _append(self, columns: pa.Table, until: Integers) -> None:
        codes = self._keys.of(columns) * 2 + _sides(columns)
        self._until.extend(until)
        self._codes.extend(codes)
        self._following.resize(len(self._until))
        for ends in (self._heads, self._tails):
            ends.resize(2 * len(self._keys))
        columns = arrow_buffers.plain(columns).combine_chunks()
        known = self._columns
        self._columns = columns if known is None else pa.concat_tables([known, columns]).combine_chunks()

    def _meet(self, first: int, order: Integers) -> tuple[Codes, Codes]:
        """Return pairs of rows: the new one and the older one."""
        arrays = self._until.view, self._codes.view, self._following.data, self._heads.data, self._tails.data
        return _meet(*arrays, first, frozen(order))

    def _pairs(self, tuples: Tuples, first: int, which: Codes, other: Codes) -> Tuples:
        assert self._columns is not None
        came = which - first
        is_right = (self._codes.view[which] & 1) == 1
        rows = np.where(is_right, other, which), np.where(is_right, which, other)
        columns = self._keys.table(self._codes.view[which] >> 1)
        for side, results in zip(rows, self._spec.results, strict=True):
            taken = self._columns.select(list(results.values())).take(pa.array(side))
            columns |= dict(zip(results, taken.columns, strict=True))
        table = pa.table(columns) if columns else pa.table({SIDE: pa.nulls(len(which), pa.int8())})
        return Tuples(table, tuples.time[came], tuples.origin[came], tuples.number[came])

    # ------------------------------------------------------------ expired rows

    @property
    def _bound(self) -> int:
        """The least time of later tuples."""
        return MOST if self._frontier.is_end else order_of(self._frontier.time, self._is_float)

    def _alive(self) -> Array:
        alive: Array = self._until.view >= self._bound
        return alive if not self._frontier.is_end else np.zeros(len(alive), np.bool_)

    def _forget(self) -> None:
        alive = self._alive()
        count = int(np.count_nonzero(alive))
        if not count:
            self._start_over()
        elif is_wasteful(len(alive), count):
            rows = np.flatnonzero(alive)
            saved = int(np.searchsorted(rows, self._saved))
            kept = self._export(rows)
            self._start_over()
            self._import(kept)
            self._saved = saved

    def _export(self, rows: Array) -> pa.Table:
        assert self._columns is not None
        return self._columns.take(pa.array(rows)).append_column(UNTIL, pa.array(self._until.view[rows]))

    def _import(self, table: pa.Table) -> None:
        until = arrow_buffers.single(table[UNTIL]).to_numpy()
        first = len(self._until)
        self._append(table.drop_columns([UNTIL]), until)
        arrays = self._codes.view, self._following.data, self._heads.data, self._tails.data
        _link(*arrays, first)

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        ledger = self._ledger
        alive = self._alive()
        rows = self._saved + np.flatnonzero(alive[self._saved :])
        self._saved = len(alive)
        dropped = ledger.drop_before((self._bound, 0))
        if ledger.should_be_rewritten(len(rows), int(np.count_nonzero(alive))):
            dropped += ledger.drop_all()
            rows = np.flatnonzero(alive)
        added = {}
        if len(rows):
            added = ledger.add(self._export(rows), (int(self._until.view[rows].max()), 0))
        meta = {"frontier": frontier_as_data(self._frontier), "float": self._is_float, **ledger.meta()}
        return Change(added, dropped, meta)

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._frontier = frontier_from_data(meta.get("frontier"))
        self._is_float = bool(meta.get("float"))
        self._start_over()
        for name, table in self._ledger.restored(meta, chunks):
            self._import(table)
            self._ledger.marks[name] = (int(arrow_buffers.single(table[UNTIL]).to_numpy().max()), 0)
        self._saved = len(self._until)

    @property
    def rows(self) -> int:
        return int(np.count_nonzero(self._alive()))


def _sides(columns: pa.Table) -> Codes:
    sides: Codes = arrow_buffers.values(arrow_buffers.single(columns[SIDE]), np.int8).astype(np.int32)
    return sides


@njit(cache=True)
def _link(codes: Codes, following: Codes, heads: Codes, tails: Codes, first: int) -> None:
    for row in range(first, len(codes)):
        _append_row(row, codes[row], following, heads, tails)


@njit(cache=True)
def _append_row(row: int, code: int, following: Codes, heads: Codes, tails: Codes) -> None:
    following[row] = -1
    if heads[code] < 0:
        heads[code] = row
    else:
        following[tails[code]] = row
    tails[code] = row


@njit(cache=True)
def _meet(
    until: Integers,
    codes: Codes,
    following: Codes,
    heads: Codes,
    tails: Codes,
    first: int,
    order: Integers,
) -> tuple[Codes, Codes]:
    came = np.empty(max(16, 2 * len(order)), np.int32)
    met = np.empty(len(came), np.int32)
    count = 0
    for row in range(first, len(codes)):
        now = order[row - first]
        code = codes[row]
        other = heads[code ^ 1]
        while other >= 0 and until[other] < now:
            other = following[other]
        heads[code ^ 1] = other
        while other >= 0:
            if count == len(came):
                came, met = grown(came), grown(met)
            came[count] = row
            met[count] = other
            count += 1
            other = following[other]
        if until[row] >= now:
            _append_row(row, code, following, heads, tails)
    return came[:count], met[:count]
