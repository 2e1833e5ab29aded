"""Semi and anti joins on keys: rows of one relation whose key is, or is not, in another one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.relational.incremental_relation import (
    IS_GONE,
    NEVER,
    IncrementalRelation,
    change_marks,
)
from millstream.kernels.relational.linked_rows import (
    CountedRows,
    Counts,
    LinkedRows,
    Links,
    append_row,
    count_row,
    grown,
    remove_row,
)
from millstream.kernels.specs import SemiAntiJoinSpec

_HIDDEN, _SHOWN, _DECIDED = 0, 1, 2
"""Membership of a row of the left side in the result; ``_DECIDED`` if no later event can change it."""


class SemiAntiJoin(IncrementalRelation):
    """Rows of the left side, as they enter and leave the result; no pairs are formed.

    Of the right side only the presence of a key matters. If lifetimes are known, the row with the longest one
    represents its key. If no row of the right side ever leaves, rows of the left side are dropped as soon as
    their membership is final.
    """

    def __init__(self, spec: SemiAntiJoinSpec) -> None:
        self._spec = spec
        super().__init__(spec.stays, spec.slides)

    def _start_over(self) -> None:
        self._left_rows = LinkedRows()
        self._right_rows = CountedRows()
        self._shown = Buffer(np.uint8, _HIDDEN)
        self._is_matched = Buffer(np.uint8, 0)

    def _resume(self, rows: Array) -> None:
        self._match(np.zeros(len(rows), np.int64), np.ones(len(rows), np.int8), rows)

    def _match(self, instants: Integers, ops: Array, rows: Array) -> tuple[Codes, Codes, Array]:
        count, keys = len(self._enter), len(self._keys)
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
            self._left_rows.links(count, keys),
            self._right_rows.counts(keys),
            (self._shown.resize(count), self._is_matched.resize(keys)),
            how,
        )

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        events, found, signs = self._match(instants, ops, rows)
        names = self._spec.results
        columns: dict[str, pa.Array] = dict(zip(names, self._taken(names, found), strict=True))
        columns |= change_marks(signs, None, self._identities(found))
        return self._changes(columns, instants[events])


@njit(cache=True)
def _match(
    instants: Integers,
    ops: Array,
    rows: Array,
    codes: Codes,
    until: Integers,
    status: Bytes,
    links: Links,
    counts: Counts,
    states: tuple[Bytes, Bytes],
    how: tuple[bool, bool, bool, bool],
) -> tuple[Codes, Codes, Array]:
    """Return the changes of the result: the event of each, the row of the left side, and 1 or -1."""
    following, _, heads, _ = links
    numbers = counts[0]
    shown, is_matched = states
    wants_match, keeps_longest, right_grows, left_is_foreseen = how
    room = max(16, 2 * len(rows))
    events, found, signs = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8)
    size = 0
    i = 0
    while i < len(rows):
        first, now = i, instants[i]
        while i < len(rows) and instants[i] == now:
            row, key = rows[i], codes[rows[i]] >> 1
            if codes[row] & 1:
                count_row(row, key, ops[i], keeps_longest, counts, until, status)
            elif ops[i] > 0:
                append_row(row, key, links)
            elif shown[row] != _DECIDED:
                remove_row(row, key, links)
                if shown[row] == _SHOWN:
                    if size == len(events):
                        events, found, signs = grown(events), grown(found), grown(signs)
                    events[size], found[size], signs[size] = i, row, -1
                    shown[row] = _HIDDEN
                    size += 1
            i += 1
        for event in range(first, i):
            row, key = rows[event], codes[rows[event]] >> 1
            matches = numbers[key] > 0
            shows = matches == wants_match
            flips = matches != (is_matched[key] > 0)
            is_matched[key] = matches
            enters = codes[row] & 1 == 0 and ops[event] > 0
            # A key that gains or loses its match changes all its rows.
            one = heads[key] if flips else row if enters and shown[row] != _DECIDED else -1
            decided = matches and right_grows
            while one >= 0:
                after = following[one]
                if shows != (shown[one] == _SHOWN):
                    if size == len(events):
                        events, found, signs = grown(events), grown(found), grown(signs)
                    events[size], found[size], signs[size] = event, one, 1 if shows else -1
                    shown[one] = _SHOWN if shows else _HIDDEN
                    size += 1
                if decided and (not shows or (left_is_foreseen and until[one] == NEVER)):
                    status[one] = IS_GONE
                    shown[one] = _DECIDED
                    remove_row(one, key, links)
                one = after if flips else -1
    return events[:size], found[:size], signs[:size]
