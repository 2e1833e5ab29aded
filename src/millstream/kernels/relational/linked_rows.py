"""Rows of each key as linked lists, counts of rows by key, and growing arrays, for compiled loops.

Functions that a loop calls for every row are compiled without reference counts (``_nrt=False``), which took
longer than their work. Numba refuses to compile such a function if it creates an array.
"""

from __future__ import annotations

import numpy as np

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Integers
from millstream.kernels.relational.incremental_relation import IS_GONE

Links = tuple[Codes, Codes, Codes, Codes]
"""The next and the previous row of each row; the first and the last row of each key; -1 for none."""

Counts = tuple[Integers, Codes]
"""The number of rows of each key, and the representative row of each key, -1 for none."""


class LinkedRows:
    """A doubly linked list of rows for each key, in order of insertion."""

    def __init__(self) -> None:
        self._of_rows = Buffer(np.int32, -1), Buffer(np.int32, -1)
        self._of_keys = Buffer(np.int32, -1), Buffer(np.int32, -1)

    def links(self, rows: int, keys: int) -> Links:
        """Return the arrays, grown to that many rows and keys."""
        following, preceding = (buffer.resize(rows) for buffer in self._of_rows)
        heads, tails = (buffer.resize(keys) for buffer in self._of_keys)
        return following, preceding, heads, tails


class CountedRows:
    """The number of present rows of each key.

    If only the presence of a key matters and lifetimes are known, the row with the longest lifetime
    represents its key: the others are dropped from the state.
    """

    def __init__(self) -> None:
        self._counts = Buffer(np.int64, 0)
        self._longest = Buffer(np.int32, -1)

    def counts(self, keys: int) -> Counts:
        """Return the arrays, grown to that many keys."""
        return self._counts.resize(keys), self._longest.resize(keys)


@njit(cache=True, _nrt=False)
def append_row(row: int, key: int, links: Links) -> None:
    """Append a row to the list of its key."""
    following, preceding, heads, tails = links
    following[row] = -1
    preceding[row] = tails[key]
    if tails[key] < 0:
        heads[key] = row
    else:
        following[tails[key]] = row
    tails[key] = row


@njit(cache=True, _nrt=False)
def remove_row(row: int, key: int, links: Links) -> None:
    """Remove a row from the list of its key."""
    following, preceding, heads, tails = links
    before, after = preceding[row], following[row]
    if before < 0:
        heads[key] = after
    else:
        following[before] = after
    if after < 0:
        tails[key] = before
    else:
        preceding[after] = before


@njit(cache=True, _nrt=False)
def count_row(
    row: int, key: int, op: int, keeps_longest: bool, counts: Counts, until: Integers, status: Bytes
) -> None:
    """Count a row that enters (1) or leaves (-1); with ``keeps_longest`` drop all but one row of a key."""
    number, longest = counts
    if not keeps_longest:
        number[key] += op
    elif op < 0:
        if longest[key] == row:
            longest[key] = -1
            number[key] = 0
    elif longest[key] < 0:
        longest[key] = row
        number[key] = 1
    elif until[longest[key]] < until[row]:
        status[longest[key]] = IS_GONE
        longest[key] = row
    else:
        status[row] = IS_GONE


@njit(cache=True)
def grown(array: Array) -> Array:
    """Return a copy with twice the room."""
    more = np.empty(2 * len(array), array.dtype)
    more[: len(array)] = array
    return more
