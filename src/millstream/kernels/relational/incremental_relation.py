"""Incremental maintenance of relations: rows enter and leave at instants (semantics, section 9).

Rows come as tuples of windows, with known lifetimes, or as changes from another stage. A change has an
instant and either enters a row, with its end if that is known, or retracts one. Each instant is processed
once, when it is complete: first rows leave, then rows enter, so no intermediate state is visible.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.column_names import ID, ID2, OP, SIDE, UNTIL
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers, frozen
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.state_chunks import Ledger, is_wasteful
from millstream.kernels.core.time_order import MOST, as_order
from millstream.kernels.core.tuple_batch import frontier_as_data, frontier_from_data
from millstream.kernels.relational.complete_instants import CompleteInstants
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants, at_slides

CHANGE = (OP, UNTIL, ID, ID2)

_SERIAL, _FORESEEN, _ENTER, _RETRACTED = "__ms_serial", "__ms_foreseen", "__ms_enter", "__ms_told"
_ROW = "__ms_row"
"""A column of NULLs, for rows that have only a lifetime."""

_KEPT = (_SERIAL, _FORESEEN, _ENTER, UNTIL, _RETRACTED)
_WAITS, _IS_IN, IS_GONE = 0, 1, 2
"""The status of a row: not yet entered, present, left or no longer needed."""

NEVER = 2**63 - 1
"""MOST, as a constant of compiled code."""


class IncrementalRelation(CompleteInstants):
    """The rows of one or several relations, and the events at each instant.

    ``stays`` has the lifetime of the tuples of each side, or None for a side of changes. A row whose end was
    not known when it entered is ``retracted``: rows derived from it must be retracted too.
    """

    def __init__(self, stays: Sequence[Lifetime | None], slides: Sequence[SlideInstants] = ()) -> None:
        super().__init__(stays, slides)
        self._serial = 0
        self._ledgers = Ledger("rows"), Ledger("moves")
        self._forget_all()

    def _forget_all(self) -> None:
        self._keys = KeyTable()
        self._ids = KeyTable()
        self._row_of_id = Buffer(np.int32, -1)
        self._same_id = Buffer(np.int32, -1)
        """The previous row with the identity of each row: a lookup may give a change several rows."""

        self._enter = Buffer(np.int64)
        self._until = Buffer(np.int64)
        self._foreseen = Buffer(np.int64)
        """``until`` as known when a row came: derived rows carry it, even if the row is retracted later."""

        self._status = Buffer(np.uint8)
        self._retracted = Buffer(np.uint8)
        self._codes = Buffer(np.int32)
        """The code of the key, times the number of sides, plus the side."""

        self._serials = Buffer(np.int64)
        self._columns: pa.Table | None = None
        self._saved = 0
        self._moved: list[pa.Table] = []
        """New lifetimes of rows that are in the checkpoint."""

        self._start_over()

    # ------------------------------------------------------------ operators

    @abstractmethod
    def _start_over(self) -> None:
        """Drop all state besides the rows."""

    @abstractmethod
    def _resume(self, rows: Array) -> None:
        """Take up restored rows that are present, in order of entry, without emitting changes."""

    @abstractmethod
    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        """Apply events in the order of instants, at each of them leaving rows first; return the changes."""

    # ------------------------------------------------------------ tuples

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        self._frontier = frontier
        self._is_float = tuples.time.dtype == np.float64
        self._take(tuples.columns, as_order(tuples.time))
        out = self._apply(*self._events())
        self._forget()
        return out

    def _take(self, columns: pa.Table, order: Integers) -> None:
        names = columns.column_names
        ops = _numbers(columns, OP, np.int8) if OP in names else np.ones(len(order), np.int8)
        entering = np.flatnonzero(ops > 0)
        first = len(self._enter)
        came = columns if len(entering) == len(order) else columns.take(pa.array(entering))
        enter, until = self._stay(came, order[entering])
        self._append(came, enter, until)
        if ID in names:
            ids = self._codes_of_ids(columns)
            arrays = self._until.data, self._retracted.data
            ended = np.empty(len(self._enter), np.int32)
            count = _identify(frozen(ids), frozen(ops), frozen(order), first, self._of_ids(), *arrays, ended)
            self._note_moved(ended[:count])

    def _codes_of_ids(self, columns: pa.Table) -> Codes:
        """Return codes of identities; those of different sides never match."""
        one, two = (_numbers(columns, name, np.int64) for name in (ID, ID2))
        return self._ids.codes(one, two + (self._side_of(columns).astype(np.int64) << 62))

    def _of_ids(self) -> tuple[Codes, Codes]:
        return self._row_of_id.resize(len(self._ids)), self._same_id.resize(len(self._enter))

    def _stay(self, columns: pa.Table, order: Integers) -> tuple[Integers, Integers]:
        sides = self._side_of(columns)
        enter, until = order.copy(), np.full(len(order), MOST)
        for side, stay in enumerate(self._stays):
            rows = slice(None) if len(self._stays) == 1 else np.flatnonzero(sides == side)
            if stay is None:
                if UNTIL in columns.column_names:
                    until[rows] = _numbers(columns, UNTIL, np.int64)[rows]
            else:
                began, ended = stay.of(order[rows], self._is_float)
                enter[rows], until[rows] = at_slides(began, ended, self._slides)
        return enter, until

    def _side_of(self, columns: pa.Table) -> Codes:
        if len(self._stays) == 1:
            return np.zeros(columns.num_rows, np.int32)
        return _numbers(columns, SIDE, np.int8).astype(np.int32)

    def _append(self, columns: pa.Table, enter: Integers, until: Integers) -> None:
        count = len(enter)
        self._codes.extend(self._keys.of(columns) * len(self._stays) + self._side_of(columns))
        self._enter.extend(enter)
        self._until.extend(until)
        self._foreseen.extend(until)
        self._status.extend(np.zeros(count, np.uint8))
        self._retracted.extend(np.zeros(count, np.uint8))
        self._serials.extend(np.arange(self._serial, self._serial + count))
        self._serial += count
        columns = arrow_buffers.plain(_without_marks(columns)).combine_chunks()
        known = self._columns
        if known is not None and columns.schema != known.schema:
            # The nullability of columns may differ between batches.
            columns = columns.cast(known.schema)
        together = columns if known is None else pa.concat_tables([known, columns]).combine_chunks()
        self._columns = together

    def _note_moved(self, rows: Array) -> None:
        """Note that the lifetimes of these rows have changed."""
        saved = rows[rows < self._saved]
        if len(saved):
            self._moved.append(pa.table(self._kept(saved)))

    def _kept(self, rows: Array) -> dict[str, Array]:
        kept = self._serials, self._foreseen, self._enter, self._until, self._retracted
        return {name: buffer.view[rows] for name, buffer in zip(_KEPT, kept, strict=True)}

    # ------------------------------------------------------------ instants

    def _events(self) -> tuple[Integers, Array, Array]:
        last = self._last
        enter, until, status = self._enter.view, self._until.view, self._status.view
        visible = until >= enter
        entering = np.flatnonzero(self._is_waiting & visible)
        status[entering] = _IS_IN
        leaving = np.flatnonzero((status == _IS_IN) & (until < last))
        status[leaving] = IS_GONE
        status[(status == _WAITS) & ~visible & (until < last)] = IS_GONE
        return _merged(*_by_instant(until[leaving] + 1, leaving), *_by_instant(enter[entering], entering))

    @property
    def _is_alive(self) -> Array:
        """A mask of the rows that have not left."""
        mask: Array = self._status.view != IS_GONE
        return mask

    @property
    def _is_waiting(self) -> Array:
        """A mask of the rows that enter at complete instants which have not been processed."""
        mask: Array = (self._status.view == _WAITS) & (self._enter.view <= self._last)
        return mask

    def _identities(self, rows: Array) -> tuple[Integers, Integers]:
        """Return identities from keys and serial numbers: no other shard has the same key."""
        codes = self._codes.view[rows] // len(self._stays)
        return mixed(self._keys.first.view[codes], self._keys.second.view[codes]), self._serials.view[rows]

    def _taken(self, names: Sequence[str], rows: Array) -> list[pa.ChunkedArray]:
        assert self._columns is not None
        columns: list[pa.ChunkedArray] = self._columns.select(list(names)).take(pa.array(rows)).columns
        return columns

    # ------------------------------------------------------------ expired rows

    def _forget(self) -> None:
        alive = self._is_alive
        count = int(np.count_nonzero(alive))
        if self._frontier.is_end or not count:
            schema = None if self._columns is None else self._columns.schema
            moved = self._moved
            self._forget_all()
            self._columns = None if schema is None else schema.empty_table()
            self._moved = moved  # rows in the checkpoint must not come back
        elif is_wasteful(len(alive), count):
            rows = np.flatnonzero(alive)
            saved = int(np.searchsorted(rows, self._saved))
            kept, status = self._export(rows), self._status.view[rows]
            serial, moved = self._serial, self._moved
            self._forget_all()
            self._import(kept, status)
            self._serial, self._saved, self._moved = serial, saved, moved

    def _export(self, rows: Array) -> pa.Table:
        assert self._columns is not None
        table = self._columns.take(pa.array(rows))
        for name, values in self._kept(rows).items():
            table = table.append_column(name, pa.array(values))
        return table

    def _import(self, table: pa.Table, status: Array) -> None:
        first = len(self._enter)
        serials, foreseen, enter, until, retracted = (
            arrow_buffers.single(table[name]).to_numpy() for name in _KEPT
        )
        columns = table.drop_columns(list(_KEPT))
        self._append(columns, enter, until)
        self._serials.view[first:] = serials
        self._foreseen.view[first:] = foreseen
        self._retracted.view[first:] = retracted
        self._status.view[first:] = status
        if ID in columns.column_names:
            ids = self._codes_of_ids(columns)
            added = frozen(np.ones(len(ids), np.int8)), frozen(enter)
            arrays = self._until.data, self._retracted.data
            _identify(frozen(ids), *added, first, self._of_ids(), *arrays, np.empty(0, np.int32))
        rows = first + np.flatnonzero(status == _IS_IN)
        self._resume(rows[np.argsort(self._enter.view[rows], kind="stable")])

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        kept, moves = self._ledgers
        alive = self._is_alive
        rows = self._saved + np.flatnonzero(alive[self._saved :])
        moved, self._moved = self._moved, []
        self._saved = len(alive)
        dropped = kept.drop_before((self._last, 0))
        needed = int(np.count_nonzero(alive))
        if not needed or kept.should_be_rewritten(len(rows), needed):
            dropped += kept.drop_all() + moves.drop_all()
            rows, moved = np.flatnonzero(alive), []
        added: dict[str, pa.Table] = {}
        if len(rows):
            added |= kept.add(self._export(rows), (self._needed_until(self._until.view[rows]), 0))
        if moved:
            added |= moves.add(pa.concat_tables(moved), (0, 0))
        meta = {
            "frontier": frontier_as_data(self._frontier),
            "float": self._is_float,
            "next": self._serial,
            **kept.meta(),
            **moves.meta(),
        }
        return Change(added, dropped, meta)

    def _needed_until(self, until: Integers) -> int:
        """Return the instant up to which rows with these last instants are needed."""
        return int(until.max())

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._frontier = frontier_from_data(meta.get("frontier"))
        self._is_float = bool(meta.get("float"))
        self._forget_all()
        kept, moves = self._ledgers
        tables, moved = [], []
        for name, table in kept.restored(meta, chunks):
            kept.marks[name] = (self._needed_until(arrow_buffers.single(table[UNTIL]).to_numpy()), 0)
            tables.append(table)
        for name, table in moves.restored(meta, chunks):
            moves.marks[name] = (0, 0)
            moved.append(table)
        if tables:
            self._take_up(pa.concat_tables(tables), moved)
        self._serial = int(meta.get("next", 0))
        self._saved = len(self._enter)

    def _take_up(self, table: pa.Table, moved: Sequence[pa.Table]) -> None:
        """Restore rows from a checkpoint, with the lifetimes that have changed since they were written."""
        serials, _, enter, until, retracted = (
            arrow_buffers.single(table[name]).to_numpy().copy() for name in _KEPT
        )
        order = np.argsort(serials)
        for move in moved:
            wanted, _, *news = (arrow_buffers.single(move[name]).to_numpy() for name in _KEPT)
            found = order[np.minimum(np.searchsorted(serials, wanted, sorter=order), len(order) - 1)]
            known = serials[found] == wanted
            for values, new in zip((enter, until, retracted), news, strict=True):
                values[found[known]] = new[known]
        status = np.where((enter <= self._last) & (until >= enter), _IS_IN, _WAITS).astype(np.uint8)
        status[until < self._last] = IS_GONE
        rows = order[status[order] != IS_GONE]
        for name, values in zip(_KEPT[2:], (enter, until, retracted), strict=True):
            table = table.set_column(table.column_names.index(name), name, pa.array(values))
        self._import(table.take(pa.array(rows)), status[rows])

    @property
    def rows(self) -> int:
        return int(np.count_nonzero(self._is_alive))


def _without_marks(columns: pa.Table) -> pa.Table:
    """Return the columns to store: at least one, as an Arrow table without columns has no rows."""
    names = [name for name in columns.column_names if name not in (OP, UNTIL)]
    return columns.select(names) if names else pa.table({_ROW: pa.nulls(columns.num_rows)})


def _numbers(columns: pa.Table, name: str, dtype: type) -> Array:
    array = arrow_buffers.single(columns[name])
    numbers = arrow_buffers.values(array, dtype)
    return numbers if not array.null_count else np.where(arrow_buffers.validity(array) > 0, numbers, MOST)


def change_marks(ops: Array, until: Integers | None, ids: tuple[Integers, Integers]) -> dict[str, pa.Array]:
    """Return the columns that make rows changes; without ``until`` the ends of all rows are unknown."""
    ends = np.full(len(ops), MOST) if until is None else until
    return {name: pa.array(values) for name, values in zip(CHANGE, (ops, ends, *ids), strict=True)}


def mixed(*parts: Integers) -> Integers:
    """Return a hash of several columns of integers."""
    bits = np.zeros(len(parts[0]), np.uint64)
    for part in parts:
        bits = (bits ^ np.ascontiguousarray(part).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(29)
        bits *= np.uint64(0xBF58476D1CE4E5B9)
        bits ^= bits >> np.uint64(32)
    return bits.view(np.int64)


def _by_instant(instants: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """Sort events by instant; rows of one instant keep their order."""
    if (instants[1:] >= instants[:-1]).all():
        return instants, rows
    order = np.argsort(instants, kind="stable")
    return instants[order], rows[order]


@njit(cache=True)
def _merged(
    leave: Integers, leaving: Integers, enter: Integers, entering: Integers
) -> tuple[Integers, Array, Integers]:
    """Merge two sorted lists of events into instants, ops and rows; at one instant rows leave first."""
    count = len(leaving) + len(entering)
    instants, ops, rows = np.empty(count, np.int64), np.empty(count, np.int8), np.empty(count, np.int64)
    i, j = 0, 0
    for place in range(count):
        if i < len(leaving) and (j == len(entering) or leave[i] <= enter[j]):
            instants[place], ops[place], rows[place] = leave[i], -1, leaving[i]
            i += 1
        else:
            instants[place], ops[place], rows[place] = enter[j], 1, entering[j]
            j += 1
    return instants, ops, rows


@njit(cache=True)
def _identify(
    ids: Codes,
    ops: Array,
    order: Integers,
    first: int,
    of_ids: tuple[Codes, Codes],
    until: Integers,
    retracted: Bytes,
    ended: Codes,
) -> int:
    """Assign rows from ``first`` on to entering identities, and end all rows of retracted ones."""
    row_of_id, same_id = of_ids
    row, count = first, 0
    for i in range(len(ids)):
        if ops[i] > 0:
            same_id[row] = row_of_id[ids[i]]
            row_of_id[ids[i]] = row
            row += 1
        else:
            found = row_of_id[ids[i]]
            while found >= 0:
                if until[found] >= order[i] - 1:
                    until[found] = order[i] - 1
                    retracted[found] = 1
                    ended[count] = found
                    count += 1
                found = same_id[found]
            row_of_id[ids[i]] = -1
    return count
