"""Treaps that keep the rows of a table in the order of a column.

They are ordered by value and number of the row, and are heaps by a hash of that number. The links of a node
lie together, as most of the time goes into waiting for memory; so do the ends of an instance's tree. Unlike
``kernels.aggregates.treap`` they link the rows themselves, both ways, and count nothing.
"""

from __future__ import annotations

import numpy as np

from millstream.program import row_layout
from millstream.program.jit_registry import for_programs

# Left and right are 0 and 1, so that one function serves both sides.
LEFT, RIGHT, UP, PRIORITY, NODE = 0, 1, 2, 3, 4
FIRST, LAST, ROOT, ENDS = 0, 1, 2, 3
assert tuple(row_layout.NODE.values()) == (LEFT, RIGHT, UP, PRIORITY)
assert tuple(row_layout.ENDS.values()) == (FIRST, LAST, ROOT)


@for_programs
def _priority(number):  # type: ignore[no-untyped-def] # pragma: no cover
    mixed = np.int64(number) * np.int64(-7046029254386353131)
    return ((mixed ^ (mixed >> np.int64(29))) * np.int64(-4417276706812531889)) >> np.int64(33)


@for_programs
def _is_before(a, b, values, ids):  # type: ignore[no-untyped-def] # pragma: no cover
    x, y = values[a], values[b]
    if x < y or (y != y and x == x):
        return True
    if y < x or (x != x and y == y):
        return False
    return ids[a] < ids[b]


@for_programs
def _put(child, parent, old, k, ends, nodes):  # type: ignore[no-untyped-def] # pragma: no cover
    """Put a node, or none, in the place of an old child of its new parent."""
    if child >= 0:
        nodes[NODE * child + UP] = parent
    if parent < 0:
        ends[ENDS * k + ROOT] = child
    elif nodes[NODE * parent + LEFT] == old:
        nodes[NODE * parent + LEFT] = child
    else:
        nodes[NODE * parent + RIGHT] = child


@for_programs
def _rotate_up(row, k, ends, nodes):  # type: ignore[no-untyped-def] # pragma: no cover
    parent = nodes[NODE * row + UP]
    side = LEFT if nodes[NODE * parent + LEFT] == row else RIGHT
    _put(row, nodes[NODE * parent + UP], parent, k, ends, nodes)
    child = nodes[NODE * row + 1 - side]
    nodes[NODE * parent + side] = child
    if child >= 0:
        nodes[NODE * child + UP] = parent
    nodes[NODE * row + 1 - side] = parent
    nodes[NODE * parent + UP] = row


@for_programs
def tree_beside(at, side, nodes):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the next node on a side, -1 if there is none."""
    child = nodes[NODE * at + side]
    if child >= 0:
        while child >= 0:
            at = child
            child = nodes[NODE * at + 1 - side]
        return at
    parent = nodes[NODE * at + UP]
    while parent >= 0 and nodes[NODE * parent + side] == at:
        at = parent
        parent = nodes[NODE * at + UP]
    return parent


@for_programs
def tree_add(row, k, values, ids, ends, nodes):  # type: ignore[no-untyped-def] # pragma: no cover
    own = _priority(ids[row])
    node, end = NODE * row, ENDS * k
    nodes[node + LEFT] = nodes[node + RIGHT] = nodes[node + UP] = -1
    nodes[node + PRIORITY] = own
    at = ends[end + ROOT]
    if at < 0:
        ends[end + FIRST] = ends[end + LAST] = ends[end + ROOT] = row
        return
    if not _is_before(row, ends[end + LAST], values, ids):
        # Values that rise with time are added at the end without a search.
        at, side = ends[end + LAST], RIGHT
        ends[end + LAST] = row
    else:
        side = LEFT
        child = at
        while child >= 0:
            at = child
            side = LEFT if _is_before(row, at, values, ids) else RIGHT
            child = nodes[NODE * at + side]
        if side == LEFT and ends[end + FIRST] == at:
            ends[end + FIRST] = row
    nodes[NODE * at + side] = row
    nodes[node + UP] = at
    while at >= 0 and nodes[NODE * at + PRIORITY] < own:
        _rotate_up(row, k, ends, nodes)
        at = nodes[node + UP]


@for_programs
def tree_remove(row, k, ends, nodes):  # type: ignore[no-untyped-def] # pragma: no cover
    for side in range(2):
        if ends[ENDS * k + side] == row:
            ends[ENDS * k + side] = tree_beside(row, 1 - side, nodes)
    one, other = nodes[NODE * row + LEFT], nodes[NODE * row + RIGHT]
    while one >= 0 and other >= 0:
        higher = one if nodes[NODE * one + PRIORITY] > nodes[NODE * other + PRIORITY] else other
        _rotate_up(higher, k, ends, nodes)
        one, other = nodes[NODE * row + LEFT], nodes[NODE * row + RIGHT]
    _put(one if one >= 0 else other, nodes[NODE * row + UP], row, k, ends, nodes)


@for_programs
def plant_rows(rows, owners, values, ids, ends, nodes):  # type: ignore[no-untyped-def] # pragma: no cover
    for row in rows:
        tree_add(row, owners[row], values, ids, ends, nodes)
