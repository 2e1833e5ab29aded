"""Contents: the values of tuples themselves, for aggregates that cannot be computed from less.

The content of a row (a tuple, a pane, a key) is an element of an array of Python objects: 0 for nothing, so
that zeros are neutral; the tuple of a single element's numbers; or an array with a row for each element,
which is never changed. Compiled loops work on the contents of many rows laid one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Codes, Integers
from millstream.kernels.core.column_codec import Column

Contents = Array
"""An array of objects."""


def singles(columns: Sequence[Array], present: Array) -> Contents:
    """Return contents of one element each, where there is one."""
    count = len(present)
    elements = zip(*(column.tolist() for column in columns), strict=True)
    contents = np.fromiter(elements, object, count)
    contents[present == 0] = 0
    return contents


def flat(contents: Contents, width: int) -> tuple[Integers, Array]:
    """Return the number of elements of each row, and the elements of all rows."""
    given = contents.tolist()
    some = [content for content in given if content.__class__ is not int]
    if all(content.__class__ is tuple for content in some):
        elements = np.array(some, np.int64).reshape(-1, width)
    else:
        pieces = [np.array([c], np.int64) if c.__class__ is tuple else c for c in some]
        elements = np.concatenate(pieces)
    return np.array([_length(content) for content in given], np.int64), elements


def _length(content: Any) -> int:
    if content.__class__ is tuple:
        return 1
    return 0 if content.__class__ is int else len(content)


def pieces(lengths: Integers, elements: Array) -> Contents:
    """Return the contents of rows from their elements."""
    contents = np.zeros(len(lengths), object)
    ends = np.cumsum(lengths)
    for i in np.flatnonzero(lengths).tolist():
        # A copy, so that a row that stays does not hold on to the memory of all.
        contents[i] = elements[ends[i] - lengths[i] : ends[i]].copy()
    return contents


def gathered(groups: Codes, contents: Contents, into: Contents, width: int) -> None:
    """Add the contents of rows to those of their groups."""
    touched, places = np.unique(groups, return_inverse=True)
    lengths, elements = flat(contents, width)
    old_lengths, old = flat(into[touched], width)
    owner = np.concatenate([np.repeat(np.arange(len(touched)), old_lengths), np.repeat(places, lengths)])
    order = np.argsort(owner, kind="stable")
    totals = np.bincount(owner, minlength=len(touched))
    into[touched] = pieces(totals, np.concatenate([old, elements])[order])


class ValueLists:
    """The contents of the rows of a log, one after the other."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._offsets = Buffer(np.int64)
        self._offsets.extend(np.zeros(1, np.int64))
        self._elements = [Buffer(np.int64) for _ in range(width)]

    def append(self, contents: Contents) -> None:
        lengths, elements = flat(contents, self._width)
        self._offsets.extend(self._offsets.view[-1] + np.cumsum(lengths))
        for i, column in enumerate(self._elements):
            column.extend(elements[:, i])

    @property
    def offsets(self) -> Integers:
        return self._offsets.view

    @property
    def columns(self) -> list[Integers]:
        return [column.view for column in self._elements]

    def contents(self, rows: Array) -> Contents:
        """Return some rows, as contents."""
        starts = self.offsets[rows]
        lengths = self.offsets[np.asarray(rows) + 1] - starts
        indices = within(starts, lengths)
        elements = np.stack([column[indices] for column in self.columns], axis=1)
        return pieces(lengths, elements)


def within(starts: Integers, lengths: Integers) -> Integers:
    """Return consecutive numbers from each start, as many as each length.

    >>> within(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    numbers: Integers = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
    return numbers


def as_list(column: Column, lengths: Integers, codes: Integers, valid: Array | None = None) -> pa.Array:
    """Return a list of values for each row."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    values = column.decode(
        np.ascontiguousarray(codes), np.ones(len(codes), np.uint8) if valid is None else valid
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def of_list(column: Column, lists: pa.ChunkedArray) -> tuple[Integers, Integers, Array]:
    """Return the number of values of each row, and the values of all rows, with 0 for NULLs."""
    array = arrow_buffers.single(lists)
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    codes, valid = column.encode(array.flatten())
    return lengths.astype(np.int64), codes, valid


class GarbageEstimate:
    """An estimate of when an accumulator with contents should be rebuilt from what is still needed.

    Its dictionary and its elements may be far more than there are rows while all of them are in use. So they
    are reported only when there are twice as many as at the first call, soon after the accumulator was built.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._first: int | None = None

    def saw(self, elements: int) -> None:
        """Count elements that have been read from tables."""
        self._seen += elements

    def reported(self, words: int) -> int:
        """Return the size to report for a dictionary."""
        size = max(words, self._seen)
        if self._first is None:
            self._first = size
        return size if size > 2 * self._first else 0
