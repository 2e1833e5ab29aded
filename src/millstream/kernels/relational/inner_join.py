"""Inner joins of time-varying relations: a pair is present while both of its rows are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.column_names import JOIN_KEY, JOIN_KEY2, JOIN_PARTS, UNTIL
from millstream.kernels.core.buffers import Array, Bytes, Codes, Integers, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import MOST
from millstream.kernels.relational.incremental_relation import IncrementalRelation, change_marks, mixed
from millstream.kernels.relational.linked_rows import LinkedRows, Links, append_row, grown, remove_row
from millstream.kernels.specs import InnerJoinSpec


class InnerJoin(IncrementalRelation):
    """Pairs of rows with equal keys, as they enter and leave.

    The lifetime of a pair ends with the first of its two rows. If the ends of both were known when they met,
    the pair carries its end and is not retracted, unless the specification asks for all ``ends``. With
    ``parts`` the rows of both sides are passed on too, so that the next stage finds the rows without pairs.

    The identity of a pair is a hash of those of its rows, so shards never produce equal identities.
    """

    def __init__(self, spec: InnerJoinSpec) -> None:
        self._spec = spec
        super().__init__(spec.stays, spec.slides)

    def _start_over(self) -> None:
        self._rows_of_keys = LinkedRows()

    def _links(self) -> Links:
        return self._rows_of_keys.links(len(self._enter), 2 * len(self._keys))

    def _resume(self, rows: Array) -> None:
        _link(frozen(rows), self._codes.view, self._links())

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        given = frozen(rows), frozen(ops), self._codes.view, self._retracted.view, self._links()
        signed, parts = self._spec.signed, self._spec.parts
        events, left, right = _meet(*given, signed, parts, self._spec.ends)
        spec = self._spec
        columns: dict[str, pa.Array] = {}
        for side, results in ((left, spec.results[0]), (right, spec.results[1])):
            columns |= zip(results, self._some(list(results.values()), side), strict=True)
        until = np.minimum(self._ends(left), self._ends(right))
        if not signed:
            columns[UNTIL] = pa.array(until)
            return self._changes(columns, instants[events])
        of_left, of_right = self._ids_of(left), self._ids_of(right)
        ids = mixed(*of_left, of_right[0]), mixed(*of_right, of_left[1])
        columns |= change_marks(ops[events], until, ids)
        if parts:
            kind = np.where(right < 0, 1, np.where(left < 0, 2, 0)).astype(np.int8)
            values = kind, *of_left, *of_right
            columns |= {name: pa.array(v) for name, v in zip(JOIN_PARTS, values, strict=True)}
            codes = self._codes.view[np.maximum(left, right)] >> 1
            columns[JOIN_KEY] = pa.array(self._keys.first.view[codes])
            columns[JOIN_KEY2] = pa.array(self._keys.second.view[codes])
        return self._changes(columns, instants[events])

    def _some(self, names: Sequence[str], rows: Codes) -> list[pa.ChunkedArray]:
        """Return columns of rows, with NULLs for row -1."""
        assert self._columns is not None
        indices = pa.array(rows, mask=rows < 0) if self._spec.parts else pa.array(rows)
        columns: list[pa.ChunkedArray] = self._columns.select(list(names)).take(indices).columns
        return columns

    def _ends(self, rows: Codes) -> Integers:
        """Return the last instants of rows as known when they entered; MOST for row -1."""
        if not self._spec.parts or not len(rows):
            return self._foreseen.view[rows]
        ends: Integers = np.where(rows < 0, MOST, self._foreseen.view[np.maximum(rows, 0)])
        return ends

    def _ids_of(self, rows: Codes) -> tuple[Integers, Integers]:
        """Return the identities of rows; -1 for row -1."""
        if not self._spec.parts or not len(rows):
            return self._identities(rows)
        one, two = self._identities(np.maximum(rows, 0))
        return np.where(rows < 0, -1, one), np.where(rows < 0, -1, two)


@njit(cache=True)
def _link(rows: Array, codes: Codes, links: Links) -> None:
    for i in range(len(rows)):
        append_row(rows[i], codes[rows[i]], links)


@njit(cache=True)
def _meet(
    rows: Array,
    ops: Array,
    codes: Codes,
    retracted: Bytes,
    links: Links,
    signed: bool,
    parts: bool,
    ends: bool,
) -> tuple[Codes, Codes, Codes]:
    """Return the pairs that enter or are retracted: the event of each, and its rows."""
    following, _, heads, _ = links
    room = max(16, 2 * len(rows))
    events, left, right = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    count = 0
    for i in range(len(rows)):
        row = rows[i]
        code = codes[row]
        enters = ops[i] > 0
        if not enters:
            remove_row(row, code, links)
        is_left = code & 1 == 0
        if enters or ends or (signed and retracted[row]):
            if parts:
                if count == len(events):
                    events, left, right = grown(events), grown(left), grown(right)
                events[count] = i
                left[count] = row if is_left else -1
                right[count] = -1 if is_left else row
                count += 1
            other = heads[code ^ 1]
            while other >= 0:
                if count == len(events):
                    events, left, right = grown(events), grown(left), grown(right)
                events[count] = i
                left[count] = row if is_left else other
                right[count] = other if is_left else row
                count += 1
                other = following[other]
        if enters:
            append_row(row, code, links)
    return events[:count], left[:count], right[:count]
