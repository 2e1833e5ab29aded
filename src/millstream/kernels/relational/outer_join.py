"""Rows of a join without pairs, or with pairs: for outer joins, semi joins and anti joins."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.column_names import ID, ID2, JOINED, LEFT, LEFT2, OP, RIGHT, RIGHT2, UNTIL
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.time_order import MOST
from millstream.kernels.relational.incremental_relation import IS_GONE, IncrementalRelation
from millstream.kernels.specs import OuterJoinSpec


class OuterJoin(IncrementalRelation):
    """Pairs of a join and its rows without pairs, as they enter and leave.

    Every pair changes the number of pairs of its rows, so the end of a row without pairs is not known when it
    enters, and it is retracted (Patroumpas and Sellis: strictly non-monotonic). In append-only relations a
    row with a pair keeps it: neither is stored.
    """

    def __init__(self, spec: OuterJoinSpec) -> None:
        self._spec = spec
        super().__init__((None,))

    def _start_over(self) -> None:
        self._members = KeyTable()
        self._left = Buffer(np.int32)
        self._right = Buffer(np.int32)
        """The codes of the rows (members) of a pair; for a row of one side its own code."""

        self._part = Buffer(np.int8)
        self._pairs = Buffer(np.int64, 0)
        self._row = Buffer(np.int32, -1)
        self._is_there = Buffer(np.uint8, 0)
        self._is_shown = Buffer(np.uint8, 0)

    def _append(self, columns: pa.Table, enter: Integers, until: Integers) -> None:
        super()._append(columns, enter, until)
        self._part.extend(arrow_buffers.values(arrow_buffers.single(columns[JOINED]), np.int8))
        for codes, names in ((self._left, (LEFT, LEFT2)), (self._right, (RIGHT, RIGHT2))):
            one, two = (arrow_buffers.values(arrow_buffers.single(columns[name]), np.int64) for name in names)
            codes.extend(self._members.codes(one, two))
        for of_member in (self._pairs, self._row, self._is_there, self._is_shown):
            of_member.resize(len(self._members))

    def _resume(self, rows: Array) -> None:
        self._count(np.zeros(len(rows), np.int64), np.ones(len(rows), np.int8), rows)

    def _count(self, instants: Integers, ops: Array, rows: Array) -> tuple[Codes, Codes, Array]:
        spec = self._spec
        of_rows = self._part.view, self._left.view, self._right.view, self._retracted.view
        members = self._pairs.data, self._row.data, self._is_there.data, self._is_shown.data
        wanted = spec.pairs, spec.left, spec.right
        given = frozen(instants), frozen(ops), frozen(rows)
        *counted, decided = _count(*given, of_rows, members, wanted, spec.lasting, spec.ends)
        # Pairs may never reach the checkpoint, so the row itself records that it has one.
        self._until.view[decided] = self._enter.view[decided] - 1
        self._status.view[decided] = IS_GONE
        self._note_moved(decided)
        return counted[0], counted[1], counted[2]

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        events, found, signs = self._count(instants, ops, rows)
        names = [*self._spec.results, ID, ID2]
        columns = dict(zip(names, self._taken(names, found), strict=True))
        is_pair = self._part.view[found] == 0
        columns[OP] = pa.array(signs)
        columns[UNTIL] = pa.array(np.where(is_pair, self._foreseen.view[found], MOST))
        return self._changes(columns, instants[events])


@njit(cache=True)
def _count(
    instants: Integers,
    ops: Array,
    rows: Array,
    of_rows: tuple[Array, Codes, Codes, Bytes],
    members: tuple[Integers, Codes, Bytes, Bytes],
    wanted: tuple[bool, int, int],
    lasting: bool,
    ends: bool,
) -> tuple[Codes, Codes, Array, Codes]:
    """Return the changes (event, row, and 1 or -1), and the rows that no later event can change."""
    part, left, right, retracted = of_rows
    pairs, row_of, is_there, is_shown = members
    gives_pairs, wants_left, wants_right = wanted
    room = 3 * len(rows)
    events, found, signs = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8)
    touched, decided = np.empty(2 * len(rows), np.int32), np.empty(3 * len(rows), np.int32)
    ended = 0
    count = 0
    i = 0
    while i < len(rows):
        now = instants[i]
        size = 0
        while i < len(rows) and instants[i] == now:
            row, op = rows[i], ops[i]
            if part[row] == 0:
                pairs[left[row]] += op
                pairs[right[row]] += op
                touched[size] = left[row]
                touched[size + 1] = right[row]
                size += 2
                if gives_pairs and (op > 0 or retracted[row] or ends):
                    events[count], found[count], signs[count] = i, row, op
                    count += 1
                if lasting:
                    decided[ended] = row
                    ended += 1
            else:
                member = left[row] if part[row] == 1 else right[row]
                row_of[member] = row
                is_there[member] = op > 0
                touched[size] = member
                size += 1
            i += 1
        for place in range(size):
            member = touched[place]
            row = row_of[member]
            if row < 0:
                continue
            sought = wants_left if part[row] == 1 else wants_right
            shown = is_there[member] and (
                (sought < 0 and pairs[member] == 0) or (sought > 0 and pairs[member] > 0)
            )
            if shown != (is_shown[member] > 0):
                is_shown[member] = shown
                events[count], found[count], signs[count] = i - 1, row, 1 if shown else -1
                count += 1
            if lasting and pairs[member] > 0:
                decided[ended] = row
                row_of[member] = -1
                ended += 1
    return events[:count], found[:count], signs[:count], decided[:ended]
