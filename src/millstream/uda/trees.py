"""Trees that keep the rows of a table in the order of a column.

They are treaps: ordered by value and number of the row, heaps by a hash of that number.
"""

from __future__ import annotations

import numpy as np

from millstream.uda.registry import for_programs


@for_programs
def _priority(number):  # type: ignore[no-untyped-def] # pragma: no cover
    mixed = np.int64(number) * np.int64(-7046029254386353131)
    return (mixed ^ (mixed >> np.int64(29))) * np.int64(-4417276706812531889)


@for_programs
def _is_before(a, b, values, ids):  # type: ignore[no-untyped-def] # pragma: no cover
    x, y = values[a], values[b]
    if x < y or (y != y and x == x):
        return True
    if y < x or (x != x and y == y):
        return False
    return ids[a] < ids[b]


@for_programs
def _rotate_up(row, k, root, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    parent = up[row]
    grand = up[parent]
    if left[parent] == row:
        child = right[row]
        left[parent] = child
        right[row] = parent
    else:
        child = left[row]
        right[parent] = child
        left[row] = parent
    if child >= 0:
        up[child] = parent
    up[parent] = row
    up[row] = grand
    if grand < 0:
        root[k] = row
    elif left[grand] == parent:
        left[grand] = row
    else:
        right[grand] = row


@for_programs
def tree_first(at, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    while at >= 0 and left[at] >= 0:
        at = left[at]
    return at


@for_programs
def tree_last(at, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    while at >= 0 and right[at] >= 0:
        at = right[at]
    return at


@for_programs
def tree_following(at, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    if right[at] >= 0:
        at = right[at]
        while left[at] >= 0:
            at = left[at]
        return at
    while up[at] >= 0 and right[up[at]] == at:
        at = up[at]
    return up[at]


@for_programs
def tree_preceding(at, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    if left[at] >= 0:
        at = left[at]
        while right[at] >= 0:
            at = right[at]
        return at
    while up[at] >= 0 and left[up[at]] == at:
        at = up[at]
    return up[at]


@for_programs
def tree_add(row, k, values, ids, root, last, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    left[row] = right[row] = up[row] = -1
    at = root[k]
    if at < 0:
        root[k] = last[k] = row
        return
    if not _is_before(row, last[k], values, ids):
        # What rises with time is added at the end, of which there is no need to look for the place.
        at = last[k]
        last[k] = row
    while True:
        if _is_before(row, at, values, ids):
            if left[at] < 0:
                left[at] = row
                break
            at = left[at]
        else:
            if right[at] < 0:
                right[at] = row
                break
            at = right[at]
    up[row] = at
    own = _priority(ids[row])
    while up[row] >= 0 and _priority(ids[up[row]]) < own:
        _rotate_up(row, k, root, left, right, up)


@for_programs
def tree_remove(row, k, values, ids, root, last, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    if last[k] == row:
        last[k] = tree_preceding(row, left, right, up)
    while left[row] >= 0 or right[row] >= 0:
        one, other = left[row], right[row]
        if one >= 0 and (other < 0 or _priority(ids[one]) > _priority(ids[other])):
            _rotate_up(one, k, root, left, right, up)
        else:
            _rotate_up(other, k, root, left, right, up)
    parent = up[row]
    if parent < 0:
        root[k] = -1
    elif left[parent] == row:
        left[parent] = -1
    else:
        right[parent] = -1
    up[row] = -1


@for_programs
def plant_rows(rows, owners, values, ids, root, last, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    for row in rows:
        tree_add(row, owners[row], values, ids, root, last, left, right, up)
