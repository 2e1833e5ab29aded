"""DISTINCT and set operations, by the number of copies of each row in each relation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.relational.incremental_relation import IncrementalRelation, change_marks, mixed
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants
from millstream.kernels.relational.linked_rows import CountedRows, Counts, count_row
from millstream.kernels.specs import SetOperationSpec

_KINDS = {"UNION": 0, "INTERSECT": 1, "EXCEPT": 2}


class SetOperation(IncrementalRelation):
    """Copies of each row (the key) in the result, as they enter and leave.

    From k1 and k2 copies the result has k1 + k2, min(k1, k2) or max(0, k1 - k2), and without ALL at most one.
    A result row lasts as long as there are copies, so its end is not known when it enters. Without ALL, and
    where lifetimes are known, the copy with the longest lifetime represents its key.
    """

    def __init__(
        self, spec: SetOperationSpec, stays: Sequence[Lifetime | None], slides: Sequence[SlideInstants] = ()
    ) -> None:
        self._spec = spec
        super().__init__(stays, slides)

    def _start_over(self) -> None:
        self._copies = CountedRows()
        self._shown = Buffer(np.int64, 0)

    def _resume(self, rows: Array) -> None:
        self._count(np.zeros(len(rows), np.int64), np.ones(len(rows), np.int8), rows)

    def _count(self, instants: Integers, ops: Array, rows: Array) -> tuple[Codes, Integers, Array]:
        sides, keys = len(self._stays), len(self._keys)
        is_foreseen = [
            s is not None or lasts for s, lasts in zip(self._stays, self._spec.lasting, strict=False)
        ]
        keeps_longest = np.array([one and not self._spec.all for one in is_foreseen])
        how = _KINDS[self._spec.kind], self._spec.all, sides
        given = frozen(instants), frozen(ops), frozen(rows), self._codes.view, self._until.view
        counts, shown = self._copies.counts(sides * keys), self._shown.resize(keys)
        return _count(*given, self._status.data, counts, shown, how, frozen(keeps_longest))

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        events, copies, signs = self._count(instants, ops, rows)
        found = rows[events]
        names = self._spec.columns
        columns: dict[str, pa.Array] = dict(zip(names, self._taken(names, found), strict=True))
        codes = self._codes.view[found] // len(self._stays)
        one, two = self._keys.first.view[codes], self._keys.second.view[codes]
        is_null = (codes == self._keys.absent).astype(np.int64)
        columns |= change_marks(signs, None, (mixed(one, two, copies), mixed(two, copies, one, is_null)))
        return self._changes(columns, instants[events])


@njit(cache=True)
def _wanted(kind: int, all_: bool, one: int, other: int) -> int:
    if not all_:
        one, other = min(one, 1), min(other, 1)
    if kind == 1:
        return min(one, other)
    if kind == 2:
        return max(0, one - other)
    return one + other if all_ else max(one, other)


@njit(cache=True)
def _count(
    instants: Integers,
    ops: Array,
    rows: Array,
    codes: Codes,
    until: Integers,
    status: Bytes,
    counts: Counts,
    shown: Integers,
    how: tuple[int, bool, int],
    keeps_longest: Array,
) -> tuple[Codes, Integers, Array]:
    """Return the copies that enter and leave: the event of each, the number of the copy, and 1 or -1."""
    kind, all_, sides = how
    numbers = counts[0]
    room = len(rows)
    events, copies, signs = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int8)
    count = 0
    i = 0
    while i < len(rows):
        first, now = i, instants[i]
        while i < len(rows) and instants[i] == now:
            code = codes[rows[i]]
            count_row(rows[i], code, ops[i], keeps_longest[code % sides], counts, until, status)
            i += 1
        for event in range(first, i):
            key = codes[rows[event]] // sides
            other = numbers[key * sides + 1] if sides > 1 else 0
            wanted = _wanted(kind, all_, numbers[key * sides], other)
            while shown[key] != wanted:
                grows = wanted > shown[key]
                shown[key] += 1 if grows else -1
                events[count] = event
                copies[count] = shown[key] - 1 if grows else shown[key]
                signs[count] = 1 if grows else -1
                count += 1
    return events[:count], copies[:count], signs[:count]
