"""Changelog: the rows of a window, or of another relation, as they enter and leave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import MOST
from millstream.kernels.relational.incremental_relation import ID, ID2, OP, UNTIL, IncrementalRelation
from millstream.kernels.relational.lifetimes import Lifetime, RowLifetime, SlideInstants, at_slides

_NEVER = 2**63 - 1
"""MOST, where compiled code sees it."""


class Changelog(IncrementalRelation):
    """Says that rows enter and, of those whose end was not known then (or of ``all``), that they leave."""

    def __init__(
        self,
        stays: Sequence[Lifetime | None],
        columns: Sequence[str],
        slides: Sequence[SlideInstants] = (),
        *,
        all_: bool = False,
    ) -> None:
        self._names = tuple(columns)
        self._all = all_
        super().__init__(stays, slides)

    def _start_over(self) -> None:
        """Nothing is known beside the rows."""

    def _resume(self, rows: Array) -> None:
        """Nothing is known beside the rows."""

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        if not self._all:
            said = np.flatnonzero((ops > 0) | (self._told.view[rows] > 0))
            instants, ops, rows = instants[said], ops[said], rows[said]
        columns = dict(zip(self._names, self._taken(self._names, rows), strict=True))
        ids = self._identities(rows)
        marks = (ops, self._foreseen.view[rows], *ids)
        columns |= {name: pa.array(values) for name, values in zip((OP, UNTIL, ID, ID2), marks, strict=True)}
        return self._changes(columns, instants)


class RowChangelog(Changelog):
    """Changes of a window of rows: the latest so many of each partition (the key).

    Tuples come in order. When a tuple leaves depends on those that come after it.
    """

    def __init__(
        self, lifetime: RowLifetime, columns: Sequence[str], slides: Sequence[SlideInstants] = ()
    ) -> None:
        self._rows_stay = lifetime
        super().__init__((None,), columns, slides)

    def _start_over(self) -> None:
        self._following = Buffer(np.int32, -1)
        self._oldest = Buffer(np.int32, -1)
        self._newest = Buffer(np.int32, -1)
        self._sizes = Buffer(np.int64, 0)
        self._waiting = Buffer(np.int64, 0)
        """How many tuples of a partition have come since its window has slid."""

        self._first_waiting = Buffer(np.int32, -1)

    def _stay(self, columns: pa.Table, order: Integers) -> tuple[Integers, Integers]:
        return order.copy(), np.full(len(order), MOST)

    def _append(self, columns: pa.Table, enter: Integers, until: Integers) -> None:
        first = len(self._enter)
        super()._append(columns, enter, until)
        for per_key in (self._oldest, self._newest, self._sizes, self._waiting, self._first_waiting):
            per_key.resize(len(self._keys))
        self._following.resize(len(self._enter))
        if self._is_importing:
            return
        seen = at_slides(enter, until, self._slides)[0]
        moved = np.empty(2 * len(self._enter), np.int32)
        stay = self._rows_stay
        count = _slide(
            self._codes.view, self._enter.data, self._until.data, self._told.data, self._queues(),
            first, seen, stay.count, stay.slide, moved,
        )  # fmt: skip
        self._note_moved(moved[:count])

    _is_importing = False

    def _import(self, table: pa.Table, status: Array) -> None:
        first = len(self._enter)
        self._is_importing = True
        super()._import(table, status)
        self._is_importing = False
        _queue(self._codes.view, self._enter.view, self._told.view, self._queues(), first)

    def _queues(self) -> tuple[Array, ...]:
        kept = self._following, self._oldest, self._newest, self._sizes, self._waiting, self._first_waiting
        return tuple(buffer.data for buffer in kept)


@njit(cache=True)
def _enqueue(row: int, code: int, waits: bool, queues: tuple[Array, ...]) -> None:
    following, oldest, newest, sizes, waiting, first_waiting = queues
    following[row] = -1
    if oldest[code] < 0:
        oldest[code] = row
    else:
        following[newest[code]] = row
    newest[code] = row
    sizes[code] += 1
    if waits:
        if waiting[code] == 0:
            first_waiting[code] = row
        waiting[code] += 1


@njit(cache=True)
def _queue(codes: Codes, enter: Integers, told: Bytes, queues: tuple[Array, ...], first: int) -> None:
    """Rows that are in their windows, or wait for them to slide, again."""
    for row in range(first, len(codes)):
        if not told[row]:
            _enqueue(row, codes[row], enter[row] == _NEVER, queues)


@njit(cache=True)
def _slide(
    codes: Codes,
    enter: Integers,
    until: Integers,
    told: Bytes,
    queues: tuple[Array, ...],
    first: int,
    seen: Integers,
    size: int,
    slide: int,
    moved: Codes,
) -> int:
    """Rows from ``first`` on come one after the other; gives how many have another stay by that."""
    following, oldest, newest, sizes, waiting, first_waiting = queues
    count = 0
    for row in range(first, len(codes)):
        code = codes[row]
        now = seen[row - first]
        enter[row] = _NEVER
        _enqueue(row, code, True, queues)
        if waiting[code] < slide:
            continue
        waiting[code] = 0
        entering = first_waiting[code]
        while entering >= 0:
            enter[entering] = now
            moved[count] = entering
            count += 1
            entering = following[entering]
        while sizes[code] > size:
            gone = oldest[code]
            until[gone] = now - 1
            told[gone] = 1
            oldest[code] = following[gone]
            if oldest[code] < 0:
                newest[code] = -1
            sizes[code] -= 1
            moved[count] = gone
            count += 1
    return count
