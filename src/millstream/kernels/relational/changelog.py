"""Changelog: the rows of a window, or of another relation, as they enter and leave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import MOST
from millstream.kernels.relational.incremental_relation import NEVER, IncrementalRelation, change_marks
from millstream.kernels.relational.lifetimes import Lifetime, RowLifetime, SlideInstants, at_slides
from millstream.kernels.relational.linked_rows import LinkedRows, Links, append_row, remove_row


class Changelog(IncrementalRelation):
    """Changes of a relation: rows that enter, and retractions of rows that leave.

    A row whose end was known when it entered is not retracted, unless ``all`` are.
    """

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
        """Do nothing: there is no state besides the rows."""

    def _resume(self, rows: Array) -> None:
        """Do nothing: there is no state besides the rows."""

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        if not self._all:
            emitted = np.flatnonzero((ops > 0) | (self._retracted.view[rows] > 0))
            instants, ops, rows = instants[emitted], ops[emitted], rows[emitted]
        columns: dict[str, pa.Array] = dict(zip(self._names, self._taken(self._names, rows), strict=True))
        columns |= change_marks(ops, self._foreseen.view[rows], self._identities(rows))
        return self._changes(columns, instants)


Waiting = tuple[Integers, Integers, Codes]
"""By partition: the rows in its list, the rows since its window last slid, and the first of these."""


class RowChangelog(Changelog):
    """Changes of a ROWS window: the latest rows of each partition (the key).

    Tuples come in order. Later tuples decide when a tuple leaves.
    """

    def __init__(
        self, lifetime: RowLifetime, columns: Sequence[str], slides: Sequence[SlideInstants] = ()
    ) -> None:
        self._lifetime = lifetime
        super().__init__((None,), columns, slides)

    def _start_over(self) -> None:
        self._partitions = LinkedRows()
        self._sizes = Buffer(np.int64, 0)
        self._waiting = Buffer(np.int64, 0)
        self._first_waiting = Buffer(np.int32, -1)

    def _stay(self, columns: pa.Table, order: Integers) -> tuple[Integers, Integers]:
        return order.copy(), np.full(len(order), MOST)

    def _append(self, columns: pa.Table, enter: Integers, until: Integers) -> None:
        first = len(self._enter)
        super()._append(columns, enter, until)
        if self._is_importing:
            return
        seen = at_slides(enter, until, self._slides)[0]
        moved = np.empty(2 * len(self._enter), np.int32)
        arrays = self._codes.view, self._enter.data, self._until.data, self._retracted.data
        lifetime = self._lifetime.count, self._lifetime.slide
        count = _slide(*arrays, self._links(), self._of_partitions(), first, seen, lifetime, moved)
        self._note_moved(moved[:count])

    _is_importing = False

    def _import(self, table: pa.Table, status: Array) -> None:
        first = len(self._enter)
        self._is_importing = True
        super()._import(table, status)
        self._is_importing = False
        arrays = self._codes.view, self._enter.view, self._retracted.view
        _queue(*arrays, self._links(), self._of_partitions(), first)

    def _links(self) -> Links:
        return self._partitions.links(len(self._enter), len(self._keys))

    def _of_partitions(self) -> Waiting:
        keys = len(self._keys)
        return self._sizes.resize(keys), self._waiting.resize(keys), self._first_waiting.resize(keys)


@njit(cache=True)
def _enqueue(row: int, code: int, waits: bool, links: Links, of_partitions: Waiting) -> None:
    sizes, waiting, first_waiting = of_partitions
    append_row(row, code, links)
    sizes[code] += 1
    if waits:
        if waiting[code] == 0:
            first_waiting[code] = row
        waiting[code] += 1


@njit(cache=True)
def _queue(
    codes: Codes, enter: Integers, retracted: Bytes, links: Links, of_partitions: Waiting, first: int
) -> None:
    """Enqueue restored rows that are in their windows or wait for a slide."""
    for row in range(first, len(codes)):
        if not retracted[row]:
            _enqueue(row, codes[row], enter[row] == NEVER, links, of_partitions)


@njit(cache=True)
def _slide(
    codes: Codes,
    enter: Integers,
    until: Integers,
    retracted: Bytes,
    links: Links,
    of_partitions: Waiting,
    first: int,
    seen: Integers,
    lifetime: tuple[int, int],
    moved: Codes,
) -> int:
    """Slide windows over the rows from ``first`` on; return the number of rows whose lifetimes changed."""
    following, _, heads, _ = links
    sizes, waiting, first_waiting = of_partitions
    size, slide = lifetime
    count = 0
    for row in range(first, len(codes)):
        code = codes[row]
        now = seen[row - first]
        enter[row] = NEVER
        _enqueue(row, code, True, links, of_partitions)
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
            gone = heads[code]
            until[gone] = now - 1
            retracted[gone] = 1
            remove_row(gone, code, links)
            sizes[code] -= 1
            moved[count] = gone
            count += 1
    return count
