"""Semi and anti joins on keys: rows of one relation whose key is, or is not, in another one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import MOST
from millstream.kernels.relational.incremental_relation import (
    ID,
    ID2,
    IS_GONE,
    OP,
    UNTIL,
    IncrementalRelation,
)
from millstream.kernels.specs import SemiAntiJoinSpec

_NEVER = 2**63 - 1
"""MOST, where compiled code sees it."""

_HIDDEN, _SHOWN, _DECIDED = 0, 1, 2
"""Whether a row of the left side is in the result; the last, if nothing can change that any more."""


class SemiAntiJoin(IncrementalRelation):
    """Takes rows of the left and of the right side; no pairs are made of them.

    Of the right side it only counts whether a key is there. So where it is known how long rows stay, the one
    of a key that stays longest stands for the others, which are forgotten. If none of them ever leaves, rows
    of the left side are forgotten too as soon as that decides about them for good.
    """

    def __init__(self, spec: SemiAntiJoinSpec) -> None:
        self._spec = spec
        super().__init__(spec.stays, spec.slides)

    def _start_over(self) -> None:
        self._following = Buffer(np.int32, -1)
        self._preceding = Buffer(np.int32, -1)
        self._heads = Buffer(np.int32, -1)
        self._tails = Buffer(np.int32, -1)
        self._shown = Buffer(np.uint8, _HIDDEN)
        self._counts = Buffer(np.int64, 0)
        self._longest = Buffer(np.int32, -1)
        """Of each key the row of the right side that stands for all, where one does."""

        self._is_matched = Buffer(np.uint8, 0)

    def _resume(self, rows: Array) -> None:
        self._match(np.zeros(len(rows), np.int64), np.ones(len(rows), np.int8), rows)

    def _match(self, instants: Integers, ops: Array, rows: Array) -> tuple[Codes, Codes, Array]:
        of_rows = self._following, self._preceding, self._shown
        of_keys = self._heads, self._tails, self._counts, self._longest, self._is_matched
        for buffers, size in ((of_rows, len(self._enter)), (of_keys, len(self._keys))):
            for buffer in buffers:
                buffer.resize(size)
        left, right = self._spec.stays
        left_lasts, right_lasts = self._spec.lasting
        how = (
            not self._spec.anti,
            right is not None or right_lasts,
            right_lasts,
            left is not None or left_lasts,
        )
        given = frozen(instants), frozen(ops), frozen(rows), self._codes.view, self._until.view
        return _match(
            *given,
            self._status.data,
            (self._following.data, self._preceding.data, self._heads.data, self._tails.data),
            (self._shown.data, self._counts.data, self._longest.data, self._is_matched.data),
            how,
            IS_GONE,
        )

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        events, found, signs = self._match(instants, ops, rows)
        names = self._spec.results
        columns = dict(zip(names, self._taken(names, found), strict=True))
        ids = self._identities(found)
        columns[OP] = pa.array(signs)
        columns[UNTIL] = pa.array(np.full(len(signs), MOST))
        columns |= {ID: pa.array(ids[0]), ID2: pa.array(ids[1])}
        return self._changes(columns, instants[events])


@njit(cache=True)
def _add(row: int, key: int, lists: tuple[Codes, Codes, Codes, Codes]) -> None:
    following, preceding, heads, tails = lists
    following[row] = -1
    preceding[row] = tails[key]
    if tails[key] < 0:
        heads[key] = row
    else:
        following[tails[key]] = row
    tails[key] = row


@njit(cache=True)
def _remove(row: int, key: int, lists: tuple[Codes, Codes, Codes, Codes]) -> None:
    following, preceding, heads, tails = lists
    before, after = preceding[row], following[row]
    if before < 0:
        heads[key] = after
    else:
        following[before] = after
    if after < 0:
        tails[key] = before
    else:
        preceding[after] = before


@njit(cache=True)
def _grown(array: Array) -> Array:
    more = np.empty(2 * len(array), array.dtype)
    more[: len(array)] = array
    return more


@njit(cache=True)
def _count(
    row: int,
    key: int,
    op: int,
    stands: bool,
    until: Integers,
    status: Bytes,
    counts: Integers,
    longest: Codes,
    gone: int,
) -> None:
    """A row of the right side enters or leaves."""
    if not stands:
        counts[key] += op
    elif op < 0:
        if longest[key] == row:
            longest[key] = -1
            counts[key] = 0
    elif longest[key] < 0:
        longest[key] = row
        counts[key] = 1
    elif until[longest[key]] < until[row]:
        status[longest[key]] = gone
        longest[key] = row
    else:
        status[row] = gone


@njit(cache=True)
def _match(
    instants: Integers,
    ops: Array,
    rows: Array,
    codes: Codes,
    until: Integers,
    status: Bytes,
    lists: tuple[Codes, Codes, Codes, Codes],
    kept: tuple[Bytes, Integers, Codes, Bytes],
    how: tuple[bool, bool, bool, bool],
    gone: int,
) -> tuple[Codes, Codes, Array]:
    """What enters and leaves: by which event, which row of the left side, and 1 or -1."""
    following, _, heads, _ = lists
    shown, counts, longest, is_matched = kept
    wants_match, stands, right_grows, left_is_foreseen = how
    room = max(16, 2 * len(rows))
    events, found, signs = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8)
    size = 0
    i = 0
    while i < len(rows):
        first, now = i, instants[i]
        while i < len(rows) and instants[i] == now:
            row, key = rows[i], codes[rows[i]] >> 1
            if codes[row] & 1:
                _count(row, key, ops[i], stands, until, status, counts, longest, gone)
            elif ops[i] > 0:
                _add(row, key, lists)
            elif shown[row] != _DECIDED:
                _remove(row, key, lists)
                if shown[row] == _SHOWN:
                    if size == len(events):
                        events, found, signs = _grown(events), _grown(found), _grown(signs)
                    events[size], found[size], signs[size] = i, row, -1
                    shown[row] = _HIDDEN
                    size += 1
            i += 1
        for event in range(first, i):
            row, key = rows[event], codes[rows[event]] >> 1
            matches = counts[key] > 0
            shows = matches == wants_match
            flips = matches != (is_matched[key] > 0)
            is_matched[key] = matches
            enters = codes[row] & 1 == 0 and ops[event] > 0
            # If the answer for a key is another one, it is so for all its rows.
            one = heads[key] if flips else row if enters and shown[row] != _DECIDED else -1
            decided = matches and right_grows
            while one >= 0:
                after = following[one]
                if shows != (shown[one] == _SHOWN):
                    if size == len(events):
                        events, found, signs = _grown(events), _grown(found), _grown(signs)
                    events[size], found[size], signs[size] = event, one, 1 if shows else -1
                    shown[one] = _SHOWN if shows else _HIDDEN
                    size += 1
                if decided and (not shows or (left_is_foreseen and until[one] == _NEVER)):
                    status[one] = gone
                    shown[one] = _DECIDED
                    _remove(one, key, lists)
                one = after if flips else -1
    return events[:size], found[:size], signs[:size]
