"""DISTINCT and set operations: how many copies of a row are in each relation decides how many there are."""

from __future__ import annotations

from collections.abc import Sequence

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
    mixed,
)
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants
from millstream.kernels.specs import SetOperationSpec

_KINDS = {"UNION": 0, "INTERSECT": 1, "EXCEPT": 2}


class SetOperation(IncrementalRelation):
    """Counts the copies of each row (the key) in one relation or two.

    The result has k1 + k2, min(k1, k2) or max(0, k1 - k2) copies, and without ALL one if there are any. A row
    stays as long as there are copies, so that its end is not known when it enters. Without ALL, and where it
    is known how long copies stay, the one that stays longest stands for the others, which are forgotten.
    """

    def __init__(
        self, spec: SetOperationSpec, stays: Sequence[Lifetime | None], slides: Sequence[SlideInstants] = ()
    ) -> None:
        self._spec = spec
        super().__init__(stays, slides)

    def _start_over(self) -> None:
        self._counts = Buffer(np.int64, 0)
        self._shown = Buffer(np.int64, 0)
        self._longest = Buffer(np.int32, -1)
        """Of each code the copy that stands for all, where one does."""

    def _resume(self, rows: Array) -> None:
        self._count(np.zeros(len(rows), np.int64), np.ones(len(rows), np.int8), rows)

    def _count(self, instants: Integers, ops: Array, rows: Array) -> tuple[Codes, Integers, Array]:
        sides = len(self._stays)
        for of_side in (self._counts, self._longest):
            of_side.resize(sides * len(self._keys))
        self._shown.resize(len(self._keys))
        is_foreseen = [
            s is not None or lasts for s, lasts in zip(self._stays, self._spec.lasting, strict=False)
        ]
        one_stands = np.array([one and not self._spec.all for one in is_foreseen])
        how = _KINDS[self._spec.kind], self._spec.all, sides
        given = frozen(instants), frozen(ops), frozen(rows), self._codes.view, self._until.view
        kept = self._counts.data, self._shown.data, self._longest.data, self._status.data
        return _count(*given, kept, how, frozen(one_stands), IS_GONE)

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        events, copies, signs = self._count(instants, ops, rows)
        found = rows[events]
        names = self._spec.columns
        columns = dict(zip(names, self._taken(names, found), strict=True))
        codes = self._codes.view[found] // len(self._stays)
        one, two = self._keys.first.view[codes], self._keys.second.view[codes]
        is_null = (codes == self._keys.absent).astype(np.int64)
        columns[OP] = pa.array(signs)
        columns[UNTIL] = pa.array(np.full(len(signs), MOST))
        columns[ID] = pa.array(mixed(one, two, copies))
        columns[ID2] = pa.array(mixed(two, copies, one, is_null))
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
    kept: tuple[Integers, Integers, Codes, Bytes],
    how: tuple[int, bool, int],
    one_stands: Array,
    gone: int,
) -> tuple[Codes, Integers, Array]:
    """Copies that enter and leave: by which event, the number of the copy, and 1 or -1."""
    kind, all_, sides = how
    counts, shown, longest, status = kept
    room = len(rows)
    events, copies, signs = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int8)
    count = 0
    i = 0
    while i < len(rows):
        first, now = i, instants[i]
        while i < len(rows) and instants[i] == now:
            row, code = rows[i], codes[rows[i]]
            if not one_stands[code % sides]:
                counts[code] += ops[i]
            elif ops[i] < 0:
                if longest[code] == row:
                    longest[code] = -1
                    counts[code] = 0
            elif longest[code] < 0:
                longest[code] = row
                counts[code] = 1
            elif until[longest[code]] < until[row]:
                status[longest[code]] = gone
                longest[code] = row
            else:
                status[row] = gone
            i += 1
        for event in range(first, i):
            key = codes[rows[event]] // sides
            other = counts[key * sides + 1] if sides > 1 else 0
            wanted = _wanted(kind, all_, counts[key * sides], other)
            while shown[key] != wanted:
                grows = wanted > shown[key]
                shown[key] += 1 if grows else -1
                events[count] = event
                copies[count] = shown[key] - 1 if grows else shown[key]
                signs[count] = 1 if grows else -1
                count += 1
    return events[:count], copies[:count], signs[:count]
