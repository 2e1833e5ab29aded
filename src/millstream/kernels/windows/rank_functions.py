"""Ranking functions over sorted partitions, all partitions of a batch at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.core.buffers import Array
from millstream.kernels.core.kernel import Integers
from millstream.kernels.specs import RankSpec


@dataclass(frozen=True)
class SortedRows:
    """Rows sorted by partition and order; all arrays are along the sorted rows.

    ``rows`` has their places before sorting. A partition is ``start`` to ``end``, and the peers of a row,
    which are equal to it in order, are ``first_peer`` to ``last_peer``; ends are exclusive.
    """

    rows: Integers
    start: Integers
    end: Integers
    first_peer: Integers
    last_peer: Integers

    @classmethod
    def of(cls, partition: Sequence[Integers], order: Sequence[Integers], count: int) -> SortedRows:
        """Sort rows by the codes of their partition and order, and then by their places."""
        keys = (*reversed(order), *reversed(partition))
        rows = np.lexsort(keys) if keys else np.arange(count)
        starts = _changes(partition, rows)
        peers = starts | _changes(order, rows)
        return cls(rows, *_runs(starts), *_runs(peers))

    @property
    def place(self) -> Integers:
        return np.arange(len(self.rows))

    def unsorted(self, values: Array) -> Array:
        """Return values of sorted rows along the rows as they were given."""
        back = np.empty_like(values)
        back[self.rows] = values
        return back


def ranks(spec: RankSpec, rows: SortedRows, columns: pa.Table) -> pa.Array:
    """Return the results of a call along the rows as they were given."""
    if spec.argument is not None:
        return _values(spec, rows, columns).cast(spec.type)
    return pa.array(rows.unsorted(_numbers(spec, rows)), spec.type)


def _numbers(spec: RankSpec, rows: SortedRows) -> Array:
    place, size = rows.place - rows.start, rows.end - rows.start
    match spec.function:
        case "row_number":
            return place + 1
        case "rank":
            return rows.first_peer - rows.start + 1
        case "dense_rank":
            peers = np.cumsum(rows.first_peer == rows.place)
            return peers - peers[rows.start] + 1 if len(peers) else peers
        case "percent_rank":
            ranked: Array = (rows.first_peer - rows.start) / np.maximum(size - 1, 1)
            return ranked
        case "cume_dist":
            return (rows.last_peer - rows.start) / size
        case "ntile":
            each, larger = size // spec.number, size % spec.number
            in_larger = larger * (each + 1)
            rest = larger + (place - in_larger) // np.maximum(each, 1)
            return np.where(place < in_larger, place // (each + 1), rest) + 1
    raise AssertionError(f"{spec.function} is no ranking function")


def _values(spec: RankSpec, rows: SortedRows, columns: pa.Table) -> pa.Array:
    """Return values of other rows of the partition, or of the frame."""
    values = _single(columns[spec.argument])
    counted = np.asarray(values.is_valid())[rows.rows] | (not spec.ignore_nulls)
    candidates = np.flatnonzero(counted)
    before = np.concatenate([[0], np.cumsum(counted)])
    """Number of candidates before each place."""

    low, high, place = rows.start, rows.end, rows.place
    if spec.function in ("lag", "lead"):
        steps = spec.number if spec.function == "lead" else -spec.number
        if steps == 0:
            wanted, candidates = place, place
        elif steps > 0:
            wanted = before[place + 1] + steps - 1
        else:
            wanted = before[place] + steps
    else:
        low, high = _frame(spec, rows)
        wanted = before[high] - 1 if spec.function == "last_value" else before[low] + spec.number - 1
    is_there = (wanted >= 0) & (wanted < len(candidates)) & (low < high)
    found = candidates[np.where(is_there, wanted, 0)] if len(candidates) else np.zeros(len(place), np.int64)
    is_there &= (found >= low) & (found < high)
    chosen = rows.rows[np.where(is_there, found, 0)] if len(place) else found
    missing = rows.unsorted(~is_there)
    results = values.take(pa.array(rows.unsorted(chosen), mask=missing))
    if spec.default is None:
        return results
    return pc.if_else(pa.array(missing), _single(columns[spec.default]), results)


def _frame(spec: RankSpec, rows: SortedRows) -> tuple[Integers, Integers]:
    """Return the bounds of the frame of each row; the end is exclusive."""
    start, end = spec.start, spec.end
    if spec.by_rows:
        low = rows.start if start is None else np.clip(rows.place + start, rows.start, rows.end)
        high = rows.end if end is None else np.clip(rows.place + end + 1, rows.start, rows.end)
        return low, high
    return (
        rows.start if start is None else rows.first_peer,
        rows.end if end is None else rows.last_peer,
    )


def _changes(codes: Sequence[Integers], rows: Integers) -> Array:
    """Mark the sorted rows that differ from the row before."""
    changes = np.zeros(len(rows), np.bool_)
    changes[:1] = True
    for code in codes:
        ordered = code[rows]
        changes[1:] |= ordered[1:] != ordered[:-1]
    return changes


def _runs(starts: Array) -> tuple[Integers, Integers]:
    """Return the start and the end of the run that each place is in."""
    first = np.flatnonzero(starts)
    lengths = np.diff(np.append(first, len(starts)))
    return np.repeat(first, lengths), np.repeat(first + lengths, lengths)


def _single(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
