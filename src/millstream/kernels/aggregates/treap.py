"""Sorted multisets of values, one for each key, for medians, percentiles, modes and distinct counts.

They are treaps in shared arrays. Each node has the size of its subtree, in values and in distinct values, and
the most frequent value in it. Adding or removing a value, and finding the value of a rank, take time
logarithmic in the number of distinct values. (Seidel and Aragon, Randomized search trees, 1996.)
"""

from __future__ import annotations

import numpy as np

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Parts, WindowBatch
from millstream.kernels.aggregates.min_max_bitwise import ValueOrder
from millstream.kernels.core.buffers import Array, Buffer, Codes, Doubles, Integers, Whole, frozen

_DEEPEST = 4096
"""A depth that no treap reaches: it is hardly ever more than a few times the logarithm of its size."""

INTERPOLATED, STEPPED = 0, 1
"""Rank methods of percentiles: interpolate between two values, or take the upper one."""

Percentages = tuple[Doubles, Integers, Integers]
"""Percentage of each percentile, its rank method, and 1 if counted from the top."""

Tree = tuple[Array, ...]
"""Arrays of all nodes: value, copies, left, right, size, kinds, best; and the number of nodes in use with the
head of the free list."""


class Treaps:
    """Trees by the number of their root, 0 for an empty one."""

    def __init__(self) -> None:
        self._columns = (
            Buffer(np.int64, 0), Buffer(np.int64, 0), Buffer(np.int32, 0), Buffer(np.int32, 0),
            Buffer(np.int64, 0), Buffer(np.int64, 0), Buffer(np.int32, 0),
        )  # fmt: skip
        self._used = np.array([1, 0], np.int64)

    def room(self, values: int) -> Tree:
        """Return the arrays, with room for more nodes. Node 0 is none."""
        size = int(self._used[0]) + values
        for column in self._columns:
            column.resize(max(size, len(column)))
        return (*(column.data for column in self._columns), self._used)

    def contents(self, roots: Integers) -> tuple[Integers, Integers]:
        """Return the number of values of each tree, and the values of all, in order."""
        tree = self.room(0)
        sizes = tree[4][roots]
        values = np.empty(int(sizes.sum()), np.int64)
        _list(tree, frozen(roots), values)
        return sizes, values

    def build(self, sizes: Integers, values: Integers, order: ValueOrder, *, high: bool) -> Integers:
        """Build trees of values; return their roots."""
        roots = np.zeros(len(sizes), np.int64)
        groups = np.repeat(np.arange(len(sizes)), sizes)
        _fill(self.room(len(values)), order, high, frozen(groups), frozen(values), roots)
        return roots

    def run(
        self, groups: Codes, rows: tuple[Integers, Integers], roots: Integers, order: ValueOrder,
        percentages: Percentages, *, high: bool,
    ) -> Parts:  # fmt: skip
        """Add rows (offsets and values) to their groups; return the statistics of the group after each."""
        offsets, values = rows
        out = answers(len(groups), len(percentages[0]))
        tree = self.room(len(values))
        _run(tree, order, high, frozen(groups), frozen(offsets), frozen(values), roots, percentages, out)
        return out


class SlidingTreaps:
    """The trees of the windows of all keys, with the rows that are in them."""

    def __init__(self) -> None:
        self._forest = Treaps()
        self._roots = Buffer(np.int64, 0)
        self._spans = Buffer(np.int64, -1), Buffer(np.int64, -1)

    def ask(
        self, batch: WindowBatch, rows: tuple[Integers, Integers], order: ValueOrder,
        percentages: Percentages, *, high: bool,
    ) -> Parts:  # fmt: skip
        """Return the statistics of windows over a log whose rows have values: offsets, and values."""
        offsets, values = rows
        # No row is in a tree twice, so that there can never be more nodes than values in the log.
        tree = self._forest.room(len(values))
        first, latest = (span.resize(batch.keys) for span in self._spans)
        keys = self._roots.resize(batch.keys), first, latest
        out = answers(len(batch), len(percentages[0]))
        log = frozen(batch.previous), frozen(offsets), frozen(values)
        _slide(batch.windows, log, tree, keys, order, high, percentages, out)
        return out


def answers(count: int, percentages: int) -> Parts:
    """Return arrays for size, distinct count, mode, and two values for each percentage."""
    wide = count, percentages
    single = [np.empty(count, np.int64) for _ in range(3)]
    return (*single, np.empty(wide, np.int64), np.empty(wide, np.int64))


# ---------------------------------------------------------------- compiled


@njit(cache=True, allocates=False)
def _rank(node: Whole) -> Whole:
    """Return a pseudo-random priority, always the same for a node."""
    mixed = np.int64(node) * -7046029254386353131
    mixed ^= (mixed >> 29) & 0x7FFFFFFFF
    mixed *= -4417276706812531889
    return mixed ^ ((mixed >> 32) & 0xFFFFFFFF)


@njit(cache=True, allocates=False)
def _pull(tree: Tree, node: Whole, high: bool) -> None:
    """Compute the statistics of a subtree from those of its children."""
    _, copies, left, right, size, kinds, best, _ = tree
    one, two = left[node], right[node]
    size[node] = size[one] + copies[node] + size[two]
    kinds[node] = kinds[one] + 1 + kinds[two]
    most = best[one]
    if copies[node] > copies[most] or (high and copies[node] == copies[most]):
        most = node
    last = best[two]
    if last and (copies[last] > copies[most] or (high and copies[last] == copies[most])):
        most = last
    best[node] = most


@njit(cache=True, allocates=False)
def _find(tree: Tree, root: Whole, place: Whole, order: ValueOrder, path: Codes) -> tuple[int, bool]:
    """Descend to a value; return the number of nodes on the path, and whether the last has the value."""
    value, _, left, right, _, _, _, _ = tree
    depth = 0
    node = root
    while node:
        path[depth] = node
        depth += 1
        here = order.place(value[node])
        if here == place:
            return depth, True
        node = left[node] if place < here else right[node]
    return depth, False


@njit(cache=True, allocates=False)
def _hang(tree: Tree, parent: Whole, on_left: bool, node: Whole, root: Whole) -> Whole:
    """Make a node a child, or the root; return the root."""
    if not parent:
        return node
    if on_left:
        tree[2][parent] = node
    else:
        tree[3][parent] = node
    return root


@njit(cache=True, allocates=False)
def _add(tree: Tree, root: Whole, code: Whole, order: ValueOrder, high: bool, path: Codes) -> Whole:
    """Add a value; return the root."""
    value, copies, left, right, _, _, _, used = tree
    place = order.place(code)
    depth, found = _find(tree, root, place, order, path)
    if found:
        copies[path[depth - 1]] += 1
    else:
        new = used[1]
        if new:
            used[1] = left[new]
        else:
            new = used[0]
            used[0] += 1
        value[new], copies[new], left[new], right[new] = code, 1, 0, 0
        # Its place is above the first node of the path that has a lower priority: that subtree is split.
        depth = 0
        parent: Whole = 0
        on_left = False
        node = root
        while node and _rank(node) >= _rank(new):
            path[depth] = node
            depth += 1
            parent = node
            on_left = bool(place < order.place(value[node]))
            node = left[node] if on_left else right[node]
        root = _hang(tree, parent, on_left, new, root)
        path[depth] = new
        depth += 1
        below, above = new, new
        while node:
            path[depth] = node
            depth += 1
            if order.place(value[node]) < place:
                _hang(tree, below, below == new, node, root)
                below = node
                node = right[node]
            else:
                _hang(tree, above, above != new, node, root)
                above = node
                node = left[node]
        _hang(tree, below, below == new, 0, root)
        _hang(tree, above, above != new, 0, root)
    for i in range(depth - 1, -1, -1):
        _pull(tree, path[i], high)
    return root


@njit(cache=True, allocates=False)
def _remove(tree: Tree, root: Whole, code: Whole, order: ValueOrder, high: bool, path: Codes) -> Whole:
    """Remove a value that is in the tree; return the root."""
    _, copies, left, right, _, _, _, used = tree
    depth, _ = _find(tree, root, order.place(code), order, path)
    node = path[depth - 1]
    copies[node] -= 1
    if not copies[node]:
        depth -= 1
        parent: Whole = path[depth - 1] if depth else 0
        on_left = bool(parent) and left[parent] == node
        one, two = left[node], right[node]
        left[node] = used[1]
        used[1] = node
        while one and two:
            if _rank(one) >= _rank(two):
                root = _hang(tree, parent, on_left, one, root)
                parent, on_left = one, False
                one = right[one]
            else:
                root = _hang(tree, parent, on_left, two, root)
                parent, on_left = two, True
                two = left[two]
            path[depth] = parent
            depth += 1
        root = _hang(tree, parent, on_left, one or two, root)
    for i in range(depth - 1, -1, -1):
        _pull(tree, path[i], high)
    return root


@njit(cache=True, allocates=False)
def _clear(tree: Tree, root: Whole, path: Codes) -> None:
    """Free all nodes of a tree."""
    _, _, left, right, _, _, _, used = tree
    depth = 0
    if root:
        path[0] = root
        depth = 1
    while depth:
        depth -= 1
        node = path[depth]
        for child in (left[node], right[node]):
            if child:
                path[depth] = child
                depth += 1
        left[node] = used[1]
        used[1] = node


@njit(cache=True, allocates=False)
def _value_at(tree: Tree, root: Whole, rank: Whole) -> Whole:
    """Return the value of a rank, from 0."""
    value, copies, left, right, size, _, _, _ = tree
    node = root
    while True:
        before = size[left[node]]
        if rank < before:
            node = left[node]
        elif rank < before + copies[node]:
            return np.int64(value[node])
        else:
            rank -= before + copies[node]
            node = right[node]


@njit(cache=True, allocates=False)
def _answer(tree: Tree, root: Whole, percentages: Percentages, out: Parts, row: Whole) -> None:
    value, _, _, _, size, kinds, best, _ = tree
    sizes, different, modes, lows, highs = out
    shares, ways, from_top = percentages
    count = size[root]
    sizes[row], different[row], modes[row] = count, kinds[root], value[best[root]]
    for i in range(len(shares)):
        if not count:
            lows[row, i] = highs[row, i] = 0
            continue
        if ways[i] == INTERPOLATED:
            position = (count - 1) * shares[i]
            low = np.int64(np.floor(position))
            high = np.int64(np.ceil(position))
        else:
            high = max(np.int64(np.ceil(shares[i] * count)), np.int64(1)) - 1
            low = high
        if from_top[i]:
            low, high = count - 1 - low, count - 1 - high
        lows[row, i] = _value_at(tree, root, low)
        highs[row, i] = lows[row, i] if low == high else _value_at(tree, root, high)


@njit(cache=True)
def _list(tree: Tree, roots: Integers, values: Integers) -> None:
    """List the values of trees, one tree after the other, each in order."""
    value, copies, left, right, _, _, _, _ = tree
    path = np.empty(_DEEPEST, np.int32)
    count = 0
    for root in roots:
        depth = 0
        node = np.int64(root)
        while node or depth:
            while node:
                path[depth] = node
                depth += 1
                node = np.int64(left[node])
            depth -= 1
            top = path[depth]
            for _ in range(copies[top]):
                values[count] = value[top]
                count += 1
            node = np.int64(right[top])


@njit(cache=True)
def _fill(
    tree: Tree, order: ValueOrder, high: bool, groups: Integers, values: Integers, roots: Integers
) -> None:
    path = np.empty(_DEEPEST, np.int32)
    for i in range(len(groups)):
        roots[groups[i]] = _add(tree, roots[groups[i]], values[i], order, high, path)


@njit(cache=True)
def _run(
    tree: Tree,
    order: ValueOrder,
    high: bool,
    groups: Codes,
    offsets: Integers,
    values: Integers,
    roots: Integers,
    percentages: Percentages,
    out: Parts,
) -> None:
    path = np.empty(_DEEPEST, np.int32)
    for i in range(len(groups)):
        group = groups[i]
        for k in range(offsets[i], offsets[i + 1]):
            roots[group] = _add(tree, roots[group], values[k], order, high, path)
        _answer(tree, roots[group], percentages, out, i)


@njit(cache=True)
def _slide(
    windows: Parts,
    log: tuple[Codes, Integers, Integers],
    tree: Tree,
    keys: tuple[Integers, Integers, Integers],
    order: ValueOrder,
    high: bool,
    percentages: Percentages,
    out: Parts,
) -> None:
    """Compute windows one after the other: remove the rows that have expired, add new ones."""
    codes, starts, ends, rebuild = windows
    previous, offsets, values = log
    roots, first, latest = keys
    path = np.empty(_DEEPEST, np.int32)
    for i in range(len(codes)):
        key, start, end = codes[i], np.int64(starts[i]), np.int64(ends[i])
        root: Whole = roots[key]
        stop = latest[key]
        if start > stop or start < first[key] or (len(rebuild) and rebuild[i]):
            _clear(tree, root, path)
            root = 0
            stop = np.int64(previous[start])
        else:
            row = start
            while row != first[key]:
                row = np.int64(previous[row])
                for k in range(offsets[row], offsets[row + 1]):
                    root = _remove(tree, root, values[k], order, high, path)
        row = end
        while row != stop:
            for k in range(offsets[row], offsets[row + 1]):
                root = _add(tree, root, values[k], order, high, path)
            row = np.int64(previous[row])
        roots[key], first[key], latest[key] = root, start, end
        _answer(tree, root, percentages, out, i)
