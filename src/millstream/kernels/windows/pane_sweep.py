"""A sweep of windows over the panes of all keys: which panes enter and leave, and which keys have a result.

A pane is the state of the tuples of a key that are in the same windows. Windows are computed in turn, at
*visits*, which are numbered; a pane is in the windows of the visits from where it enters until where it
leaves. A visit costs only the keys that have a pane in it, so the work is that of the panes and of the
results; where there are no panes, nothing is visited.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from millstream.jit import njit
from millstream.kernels.core.buffers import (
    NO_BYTES,
    NO_CODES,
    NO_INTEGERS,
    Array,
    Buffer,
    Codes,
    Integers,
    Whole,
    frozen,
)
from millstream.kernels.core.key_table import KeyTable

Panes = tuple[Codes, Integers, Integers]
"""Keys of panes, the visit at which each enters, and the last at which it is in (or a point)."""


@dataclass(frozen=True)
class DueWindows:
    """Visits that are due, for each partition of the stream: those after ``done``, up to ``last``.

    A pane leaves when a visit has a point after its ``until``. The point of a visit is its number, or its
    entry in ``points``, in which the first due visit of a partition is at its ``offset``. Visits listed in
    ``clears`` are the last for all panes.

    Where the visit that a pane enters depends on other tuples, panes have points for that as well, and enter
    at the first visit with the same point or a later one (``enters_at_points``). Visits to come have points
    from ``horizon`` on, also in partitions in which none is due.
    """

    done: Integers
    last: Integers
    offsets: Integers = field(default_factory=lambda: NO_INTEGERS)
    points: Integers = field(default_factory=lambda: NO_INTEGERS)
    clears: Array = field(default_factory=lambda: NO_BYTES)
    enters_at_points: bool = False
    horizon: int = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class SweepResult:
    """Result of a sweep: rows added to the log, and windows to aggregate.

    ``sources`` tells for each new row of the log which of the panes it is; a negative number, which of the
    rows of the log it repeats (the complement: ~source). Results are in the order of keys, and those of a key
    in the order of visits.
    """

    sources: Integers
    visits: Integers
    codes: Codes
    starts: Codes
    ends: Codes
    rebuild: Array

    @classmethod
    def nothing(cls) -> SweepResult:
        return cls(NO_INTEGERS, NO_INTEGERS, NO_CODES, NO_CODES, NO_CODES, NO_BYTES)

    def ordered(self, order: Integers | None) -> SweepResult:
        """Return results in another order."""
        if order is None:
            return self
        return SweepResult(
            self.sources,
            self.visits[order],
            self.codes[order],
            self.starts[order],
            self.ends[order],
            self.rebuild[order],
        )


class PaneLog:
    """Panes in open windows, linked for each key in the order in which they leave."""

    def __init__(self) -> None:
        self.previous = Buffer(np.int32)
        self._following = Buffer(np.int32)
        self.codes = Buffer(np.int32)
        self.untils = Buffer(np.int64)
        self._heads = Buffer(np.int32, -1)
        self._latest = Buffer(np.int32, -1)
        self._is_rebuilt = Buffer(np.uint8, 0)
        self._active = Buffer(np.int32)
        """Keys that have panes."""

        self.live = 0

    def __len__(self) -> int:
        return len(self.previous)

    @property
    def active(self) -> int:
        return len(self._active)

    def sweep(self, entering: Panes, table: KeyTable, partitions: Codes, due: DueWindows) -> SweepResult:
        """Make the visits that are due; panes must come in the order of key, enter and until.

        ``partitions`` has the partition of each key.
        """
        panes = tuple(frozen(column) for column in entering)
        begin, count, keys = len(self), len(panes[0]), len(table)
        per_key = *(b.resize(keys) for b in (self._heads, self._latest, self._is_rebuilt)), frozen(partitions)
        todo, firsts = self._todo(panes[0], table)
        plan = tuple(frozen(a) for a in (due.done, due.last, due.offsets, due.points, due.clears))
        log = (self.previous, self._following, self.codes, self.untils)
        sources = Buffer(np.int64)
        results = Buffer(np.int64), Buffer(np.int32), Buffer(np.int32), Buffer(np.int32), Buffer(np.uint8)
        rows, found = count, max(count + len(todo), 64)
        state = np.zeros(6, np.int64)
        state[1] = -1
        # Arrays cannot grow inside the compiled loop, or it would be slow: it comes back for more.
        while rows or found:
            state[3], state[4] = len(self), len(results[0])
            rows, found = _sweep(
                panes,
                (todo, firsts),
                per_key,
                plan,
                due.horizon,
                tuple(buffer.reserve(len(self) + rows) for buffer in log),
                sources.reserve(len(self) + rows - begin),
                begin,
                tuple(buffer.reserve(len(results[0]) + found) for buffer in results),
                state,
            )
            _, _, _, length, done, gone = state.tolist()
            for buffer in log:
                buffer.size = length
            for buffer in results:
                buffer.size = done
            sources.size = length - begin
            self.live -= gone
            state[5] = 0
        self.live += count
        active = self._active.reserve(len(todo))
        self._active.size = _keep_active(todo, self._heads.data, active)
        visits, codes, starts, ends, rebuild = (buffer.view for buffer in results)
        return SweepResult(sources.view, visits, codes, starts, ends, rebuild)

    def _todo(self, codes: Codes, table: KeyTable) -> tuple[Codes, Codes]:
        """Return the keys that have panes or get some, in order, and where new panes of each begin."""
        firsts = np.full(len(table), -1, np.int32)
        heads = np.flatnonzero(np.diff(codes, prepend=-1))
        firsts[codes[heads]] = heads
        fresh = codes[heads]
        fresh = fresh[self._heads.data[fresh] < 0]
        todo = np.concatenate([self._active.view, fresh])
        in_order = np.empty_like(todo)
        in_order[table.ranks(todo)] = todo
        return in_order, firsts

    def live_rows(self) -> Integers:
        is_live = np.zeros(len(self), np.bool_)
        _mark(self._active.view, self._heads.data, self._following.data, is_live)
        return np.flatnonzero(is_live)


@njit(cache=True)
def _sweep(
    entering: tuple[Array, ...],
    order: tuple[Array, ...],
    per_key: tuple[Array, ...],
    plan: tuple[Array, ...],
    horizon: int,
    log: tuple[Array, ...],
    sources: Integers,
    begin: int,
    found: tuple[Array, ...],
    state: Integers,
) -> tuple[int, int]:
    """Sweep key by key until all is done or arrays are full; return the rows and results that need room."""
    keys, enters, untils = entering
    todo, firsts = order
    heads, latest, is_rebuilt, partitions = per_key
    done, lasts, offsets, points, clears = plan
    previous, following, codes, leaves = log
    out_visit, out_code, out_start, out_end, out_rebuild = found
    at, i, visit, rows, results, gone = state[0], state[1], state[2], state[3], state[4], state[5]
    room = min(len(previous), len(sources) + begin)
    while at < len(todo):
        key = todo[at]
        partition = partitions[key]
        last = lasts[partition]
        if i < 0:
            i = np.int64(firsts[key]) if firsts[key] >= 0 else len(keys)
            visit = done[partition]
        while visit < last:
            has_more = i < len(keys) and keys[i] == key
            if heads[key] < 0 and not has_more:
                break
            # No pane is in any window before the one that the next pane enters.
            now = max(visit + 1, enters[i]) if heads[key] < 0 else visit + 1
            if now > last:
                break
            while i < len(keys) and keys[i] == key and enters[i] <= now:
                before = np.int64(latest[key]) if heads[key] >= 0 else np.int64(-1)
                after = 0
                row = before
                while row >= 0 and leaves[row] > untils[i]:
                    after += 1
                    row = np.int64(previous[row]) if row != heads[key] else np.int64(-1)
                if rows + after + 1 > room:
                    _keep(state, at, i, now - 1, rows, results, gone)
                    return after + 1 + len(keys) - i, 1
                if after == 0:
                    sources[rows - begin] = i
                    codes[rows], leaves[rows] = key, untils[i]
                    _link(key, rows, before, heads, previous, following)
                    latest[key] = rows
                    rows += 1
                else:
                    rows = _insert(i, after, entering, per_key, log, sources, begin, rows)
                i += 1
            place = offsets[partition] + now - done[partition] - 1 if len(offsets) else 0
            point = points[place] if len(points) else now
            head = heads[key]
            while head >= 0 and leaves[head] < point:
                head = following[head]
                gone += 1
            heads[key] = head
            if head >= 0:
                if results == len(out_code):
                    _keep(state, at, i, now - 1, rows, results, gone)
                    return 1, len(out_code) + len(todo)
                out_visit[results], out_code[results] = now, key
                out_start[results], out_end[results] = head, latest[key]
                out_rebuild[results] = is_rebuilt[key]
                results += 1
                if len(clears) and clears[place]:
                    while head >= 0:
                        head = following[head]
                        gone += 1
                    heads[key] = -1
            is_rebuilt[key] = 0
            visit = now
        while heads[key] >= 0 and leaves[heads[key]] < horizon:
            heads[key] = following[heads[key]]
            gone += 1
        i = -1
        at += 1
    _keep(state, at, i, visit, rows, results, gone)
    return 0, 0


@njit(cache=True)
def _keep(state: Integers, at: int, i: int, visit: int, rows: int, results: int, gone: int) -> None:
    state[0], state[1], state[2] = at, i, visit
    state[3], state[4], state[5] = rows, results, gone


@njit(cache=True)
def _link(key: int, row: Whole, before: Whole, heads: Codes, previous: Codes, following: Codes) -> None:
    previous[row] = before
    following[row] = -1
    if before >= 0:
        following[before] = row
    else:
        heads[key] = row


@njit(cache=True)
def _insert(
    i: int,
    after: int,
    entering: tuple[Array, ...],
    per_key: tuple[Array, ...],
    log: tuple[Array, ...],
    sources: Integers,
    begin: int,
    rows: int,
) -> int:
    """Insert a pane that leaves before others of its key, since late tuples made it.

    The rows of a key must be in the order of leaving, so the others are appended again after it.
    """
    keys, _, untils = entering
    heads, latest, is_rebuilt, _ = per_key
    previous, following, codes, leaves = log
    key = keys[i]
    repeated = np.empty(after, np.int32)
    row = np.int64(latest[key])
    for k in range(after - 1, -1, -1):
        repeated[k] = row
        row = np.int64(previous[row]) if row != heads[key] else np.int64(-1)

    sources[rows - begin] = i
    codes[rows], leaves[rows] = key, untils[i]
    _link(key, rows, row, heads, previous, following)
    for source in repeated:
        rows += 1
        sources[rows - begin] = sources[source - begin] if source >= begin else ~source
        codes[rows], leaves[rows] = key, leaves[source]
        _link(key, rows, rows - 1, heads, previous, following)
    latest[key] = rows
    is_rebuilt[key] = 1
    return rows + 1


@njit(cache=True)
def _keep_active(todo: Codes, heads: Codes, active: Codes) -> int:
    count = 0
    for key in todo:
        if heads[key] >= 0:
            active[count] = key
            count += 1
    return count


@njit(cache=True)
def _mark(active: Codes, heads: Codes, following: Codes, is_live: Array) -> None:
    for key in active:
        row = heads[key]
        while row >= 0:
            is_live[row] = True
            row = following[row]
