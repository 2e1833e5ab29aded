"""Joins of relations that vary with time: a pair is there as long as both of its rows are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.relational.incremental_relation import ID, ID2, OP, UNTIL, IncrementalRelation, mixed
from millstream.kernels.specs import InnerJoinSpec

PART = "__ms_part_of"
"""A column (tinyint): 0 for a pair, 1 for a row of the left side, 2 for one of the right side."""

LEFT, LEFT2, RIGHT, RIGHT2 = "__ms_left", "__ms_left2", "__ms_right", "__ms_right2"
"""The identities of the rows of a pair."""

JOIN_KEY, JOIN_KEY2 = "__ms_join_key", "__ms_join_key2"
"""The key by which the rows of a pair have met."""

PARTS = (PART, LEFT, LEFT2, RIGHT, RIGHT2)


class InnerJoin(IncrementalRelation):
    """Pairs of rows with the same key, as they enter and leave.

    A pair leaves with the first of its two. If the ends of both were known when they met, so is that of the
    pair, and nothing is said when it has come, unless all ``ends`` are wanted. With ``parts`` the rows
    themselves are given too, so that the next stage can tell which of them are in no pair.

    The identity of a pair is made of those of its rows, and so no two shards give the same one.
    """

    def __init__(self, spec: InnerJoinSpec) -> None:
        self._spec = spec
        super().__init__(spec.stays, spec.slides)

    def _start_over(self) -> None:
        self._following = Buffer(np.int32, -1)
        self._preceding = Buffer(np.int32, -1)
        self._heads = Buffer(np.int32, -1)
        self._tails = Buffer(np.int32, -1)

    def _lists(self) -> tuple[Array, ...]:
        for of_rows in (self._following, self._preceding):
            of_rows.resize(len(self._enter))
        for ends in (self._heads, self._tails):
            ends.resize(2 * len(self._keys))
        return tuple(b.data for b in (self._following, self._preceding, self._heads, self._tails))

    def _resume(self, rows: Array) -> None:
        _link(frozen(rows), self._codes.view, self._lists())

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        given = frozen(rows), frozen(ops), self._codes.view, self._told.view, self._lists()
        signed, parts = self._spec.signed, self._spec.parts
        events, left, right = _meet(*given, signed, parts, self._spec.ends)
        spec = self._spec
        columns: dict[str, pa.Array] = {}
        for side, results in ((left, spec.results[0]), (right, spec.results[1])):
            columns |= zip(results, self._some(list(results.values()), side), strict=True)
        columns[UNTIL] = pa.array(np.minimum(self._ends(left), self._ends(right)))
        if signed:
            columns[OP] = pa.array(ops[events])
            ids = self._ids_of(left), self._ids_of(right)
            columns[ID] = pa.array(mixed(ids[0][0], ids[0][1], ids[1][0]))
            columns[ID2] = pa.array(mixed(ids[1][0], ids[1][1], ids[0][1]))
            if parts:
                kind = np.where(right < 0, 1, np.where(left < 0, 2, 0)).astype(np.int8)
                values = kind, *ids[0], *ids[1]
                columns |= {name: pa.array(v) for name, v in zip(PARTS, values, strict=True)}
                codes = self._codes.view[np.maximum(left, right)] >> 1
                columns[JOIN_KEY] = pa.array(self._keys.first.view[codes])
                columns[JOIN_KEY2] = pa.array(self._keys.second.view[codes])
        return self._changes(columns, instants[events])

    def _some(self, names: Sequence[str], rows: Codes) -> list[pa.ChunkedArray]:
        """Columns of rows; NULLs where there is none."""
        assert self._columns is not None
        indices = pa.array(rows, mask=rows < 0) if self._spec.parts else pa.array(rows)
        columns: list[pa.ChunkedArray] = self._columns.select(list(names)).take(indices).columns
        return columns

    def _ends(self, rows: Codes) -> Integers:
        ends: Integers = np.where(rows < 0, np.iinfo(np.int64).max, self._foreseen.view[np.maximum(rows, 0)])
        return ends if len(self._until) else np.zeros(0, np.int64)

    def _ids_of(self, rows: Codes) -> tuple[Integers, Integers]:
        if not len(self._until):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        one, two = self._identities(np.maximum(rows, 0))
        return np.where(rows < 0, -1, one), np.where(rows < 0, -1, two)


@njit(cache=True)
def _add(row: int, code: int, lists: tuple[Array, ...]) -> None:
    following, preceding, heads, tails = lists
    following[row] = -1
    preceding[row] = tails[code]
    if tails[code] < 0:
        heads[code] = row
    else:
        following[tails[code]] = row
    tails[code] = row


@njit(cache=True)
def _remove(row: int, code: int, lists: tuple[Array, ...]) -> None:
    following, preceding, heads, tails = lists
    before, after = preceding[row], following[row]
    if before < 0:
        heads[code] = after
    else:
        following[before] = after
    if after < 0:
        tails[code] = before
    else:
        preceding[after] = before


@njit(cache=True)
def _link(rows: Array, codes: Codes, lists: tuple[Array, ...]) -> None:
    for i in range(len(rows)):
        _add(rows[i], codes[rows[i]], lists)


@njit(cache=True)
def _meet(
    rows: Array,
    ops: Array,
    codes: Codes,
    told: Bytes,
    lists: tuple[Array, ...],
    signed: bool,
    parts: bool,
    ends: bool,
) -> tuple[Codes, Codes, Codes]:
    """Pairs that enter or are told to leave: by which event, and their rows."""
    following, _, heads, _ = lists
    room = max(16, 2 * len(rows))
    events, left, right = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    count = 0
    for i in range(len(rows)):
        row = rows[i]
        code = codes[row]
        enters = ops[i] > 0
        if not enters:
            _remove(row, code, lists)
        is_left = code & 1 == 0
        if enters or ends or (signed and told[row]):
            if parts:
                if count == len(events):
                    events, left, right = _grown(events), _grown(left), _grown(right)
                events[count] = i
                left[count] = row if is_left else -1
                right[count] = -1 if is_left else row
                count += 1
            other = heads[code ^ 1]
            while other >= 0:
                if count == len(events):
                    events, left, right = _grown(events), _grown(left), _grown(right)
                events[count] = i
                left[count] = row if is_left else other
                right[count] = other if is_left else row
                count += 1
                other = following[other]
        if enters:
            _add(row, code, lists)
    return events[:count], left[:count], right[:count]


@njit(cache=True)
def _grown(array: Codes) -> Codes:
    more = np.empty(2 * len(array), np.int32)
    more[: len(array)] = array
    return more
