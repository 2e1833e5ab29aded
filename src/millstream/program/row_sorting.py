"""Temporary rows of a query in a body, to be sorted or grouped.

Loops are written out: NumPy's functions for this take Numba seconds to compile.
"""

from __future__ import annotations

import numpy as np

from millstream.program.jit_registry import COMPILED, PLAIN, for_programs, for_programs_with_new_arrays


@for_programs_with_new_arrays
def zero_integers(size):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.zeros(size, np.int64)


@for_programs_with_new_arrays
def zero_doubles(size):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.zeros(size, np.float64)


@for_programs_with_new_arrays
def zero_bytes(size):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.zeros(size, np.uint8)


@for_programs_with_new_arrays
def grown(array):  # type: ignore[no-untyped-def] # pragma: no cover
    larger = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):
        larger[i] = array[i]
    return larger


@for_programs_with_new_arrays
def no_keys(lines, count):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return an array for the keys of rows, with the most significant numbers of all rows first."""
    return np.zeros((lines, max(count, 1)), np.int64)


@for_programs_with_new_arrays
def all_rows(count):  # type: ignore[no-untyped-def] # pragma: no cover
    rows = np.empty(count, np.int64)
    for i in range(count):
        rows[i] = i
    return rows


@for_programs
def _compared(keys, a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    """Compare two rows: negative if the first comes before the other, zero if they are equal."""
    for i in range(keys.shape[0]):
        if keys[i, a] < keys[i, b]:
            return -1
        if keys[i, a] > keys[i, b]:
            return 1
    return 0


@for_programs
def _merge(keys, rows, out, start, middle, end):  # type: ignore[no-untyped-def] # pragma: no cover
    """Merge two sorted parts of rows; of equal ones those of the first part come first."""
    left, right = start, middle
    for at in range(start, end):
        if right >= end or (left < middle and _compared(keys, rows[left], rows[right]) <= 0):
            out[at] = rows[left]
            left += 1
        else:
            out[at] = rows[right]
            right += 1


@for_programs_with_new_arrays
def sorted_rows(keys, rows):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return rows in the order of their keys, of which the first is most significant; the sort is stable."""
    out = np.empty(len(rows), np.int64)
    width = 1
    while width < len(rows):
        for start in range(0, len(rows), 2 * width):
            _merge(keys, rows, out, start, min(start + width, len(rows)), min(start + 2 * width, len(rows)))
        rows, out = out, rows
        width *= 2
    return rows


@for_programs_with_new_arrays
def grouped_rows(keys, count):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the group of each row, groups numbered by first occurrence, and the first row of each."""
    order = sorted_rows(keys, all_rows(count))
    first_of = np.empty(count, np.int64)
    start = 0
    for j in range(count):
        if j > 0 and _compared(keys, order[j - 1], order[j]) != 0:
            start = j
        first_of[order[j]] = order[start]
    groups = np.empty(count, np.int64)
    found = 0
    for row in range(count):
        if first_of[row] == row:
            groups[row] = found
            found += 1
        else:
            groups[row] = groups[first_of[row]]
    firsts = np.empty(found, np.int64)
    for row in range(count):
        if first_of[row] == row:
            firsts[groups[row]] = row
    return groups, firsts


@for_programs_with_new_arrays
def are_first_of_groups(keys, groups, count):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return 1 for the first of the rows with the same keys and group."""
    both = np.empty((keys.shape[0] + 1, max(count, 1)), np.int64)
    for row in range(count):
        for i in range(keys.shape[0]):
            both[i, row] = keys[i, row]
        both[keys.shape[0], row] = groups[row]
    are_first = np.zeros(count, np.uint8)
    for row in grouped_rows(both, count)[1]:
        are_first[row] = 1
    return are_first


PLAIN["sorted_rows"] = COMPILED["sorted_rows"]
PLAIN["grouped_rows"] = COMPILED["grouped_rows"]
PLAIN["are_first_of_groups"] = COMPILED["are_first_of_groups"]
