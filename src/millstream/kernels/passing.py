"""Windows pass over the panes of all keys: which panes enter and leave, and which keys have a result.

Every window is looked at once and only by the keys that have a pane in it, so the work is that of the panes
and of the results; where there are no panes, no window is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from millstream.kernels.arrays import NO_BYTES, NO_CODES, NO_INTEGERS, Array, Buffer, Codes, Integers, frozen
from millstream.kernels.keys import KeyTable

Panes = tuple[Integers, Codes, Integers, Integers]
"""The first window, key, number and last window of panes."""

KeyOrder = tuple[int, Integers, Integers]
"""The code of NULL and the pairs of all codes: the keys are in the order of these, NULL first."""


@dataclass(frozen=True)
class Passed:
    """What passing windows has led to: rows added to the log, and results wanted.

    ``sources`` says for each new row of the log which of the panes it is; numbers below zero, which of the
    rows of the log it repeats (the complement: ~source).
    """

    sources: Integers
    windows: Integers
    codes: Codes
    starts: Codes
    ends: Codes
    rebuild: Array

    @classmethod
    def nothing(cls) -> Passed:
        return cls(NO_INTEGERS, NO_INTEGERS, NO_CODES, NO_CODES, NO_CODES, NO_BYTES)


class PaneLog:
    """The panes in open windows, linked for each key in the order of time."""

    def __init__(self) -> None:
        self.previous = Buffer(np.int32)
        self._following = Buffer(np.int32)
        self.codes = Buffer(np.int32)
        self.panes = Buffer(np.int64)
        self._untils = Buffer(np.int64)
        self._heads = Buffer(np.int32, -1)
        self._latest = Buffer(np.int32, -1)
        self._is_rebuilt = Buffer(np.uint8, 0)
        self._active = Buffer(np.int32)
        """The keys with a pane in the window, in the order of keys."""

        self.live = 0

    def __len__(self) -> int:
        return len(self.previous)

    def advance(self, entering: Panes, keys: KeyTable, window: int, last: int) -> Passed:
        """Let windows pass from one to another; panes must come in the order of window, key and number."""
        panes = tuple(frozen(column) for column in entering)
        count, entered, begin = len(keys), 0, len(self)
        order = keys.absent, keys.first.view, keys.second.view
        heads, latest, is_rebuilt = (b.resize(count) for b in (self._heads, self._latest, self._is_rebuilt))
        per_key = heads, latest, is_rebuilt, self._active.reserve(count), np.empty(count, np.int32)
        log = (self.previous, self._following, self.codes, self.panes, self._untils)
        sources = Buffer(np.int64)
        results = Buffer(np.int64), Buffer(np.int32), Buffer(np.int32), Buffer(np.int32), Buffer(np.uint8)
        rows, found = len(panes[0]), len(panes[0]) + count
        # Arrays cannot grow inside the compiled loop, or it would be slow: it comes back for more.
        while rows or found:
            state = np.array([window, entered, len(self), self._active.size, len(results[0]), 0])
            rows, found = _advance(
                panes,
                order,
                per_key,
                tuple(buffer.reserve(len(self) + rows) for buffer in log),
                sources.reserve(len(self) + rows - begin),
                begin,
                tuple(buffer.reserve(len(results[0]) + found) for buffer in results),
                last,
                state,
            )
            window, entered, length, self._active.size, done, gone = state.tolist()
            for buffer in log:
                buffer.size = length
            for buffer in results:
                buffer.size = done
            sources.size = length - begin
            self.live -= gone
        self.live += len(panes[0])
        windows, codes, starts, ends, rebuild = (buffer.view for buffer in results)
        return Passed(sources.view, windows, codes, starts, ends, rebuild)

    def live_rows(self) -> Integers:
        is_live = np.zeros(len(self), np.bool_)
        _mark(self._active.view, self._heads.data, self._following.data, is_live)
        return np.flatnonzero(is_live)


@njit(cache=True)
def _advance(
    entering: tuple[Array, ...],
    order: KeyOrder,
    per_key: tuple[Array, ...],
    log: tuple[Array, ...],
    sources: Integers,
    begin: int,
    found: tuple[Array, ...],
    last: int,
    state: Integers,
) -> tuple[int, int]:
    """Until the last window has passed, or there is no room: gives how many more rows and results need it."""
    windows, keys, numbers, lasts = entering
    heads, latest, is_rebuilt, active, fresh = per_key
    previous, following, codes, panes, untils = log
    out_window, out_code, out_start, out_end, out_rebuild = found
    window, i, rows, actives, results, gone = state[0], state[1], state[2], state[3], state[4], state[5]
    while True:
        if actives == 0:
            # No pane is in any window before the one that the next pane enters.
            if i == len(keys):
                break
            window = max(window, windows[i])
        if window > last:
            break
        end = i
        while end < len(keys) and windows[end] <= window:
            end += 1
        room = _room(entering, i, end, per_key, log)
        need = actives + end - i
        if rows + room > min(len(previous), len(sources) + begin) or results + need > len(out_code):
            _keep(state, window, i, rows, actives, results, gone)
            return room + len(keys) - i, need

        # Panes enter.
        more = 0
        for k in range(i, end):
            key = keys[k]
            before = latest[key]
            if heads[key] < 0:
                fresh[more] = key
                more += 1
                before = -1
            elif panes[before] > numbers[k]:
                rows = _insert(k, entering, per_key, log, sources, begin, rows)
                continue
            sources[rows - begin] = k
            codes[rows], panes[rows], untils[rows] = key, numbers[k], lasts[k]
            _link(key, rows, before, heads, previous, following)
            latest[key] = rows
            rows += 1
        i = end
        if more:
            _merge_active(active, actives, fresh, more, order)
            actives += more

        # Panes leave, and keys without any; the others have a result.
        kept = 0
        for k in range(actives):
            key = active[k]
            head = heads[key]
            if untils[head] < window:
                while head >= 0 and untils[head] < window:
                    head = following[head]
                    gone += 1
                heads[key] = head
                if head < 0:
                    is_rebuilt[key] = 0
                    continue
            active[kept] = key
            kept += 1
            out_window[results], out_code[results] = window, key
            out_start[results], out_end[results] = head, latest[key]
            out_rebuild[results] = is_rebuilt[key]
            is_rebuilt[key] = 0
            results += 1
        actives = kept
        if window == last:
            break
        window += 1
    _keep(state, window, i, rows, actives, results, gone)
    return 0, 0


@njit(cache=True)
def _keep(
    state: Integers, window: int, entered: int, rows: int, actives: int, results: int, gone: int
) -> None:
    state[0], state[1], state[2] = window, entered, rows
    state[3], state[4], state[5] = actives, results, gone


@njit(cache=True)
def _link(key: int, row: int, before: int, heads: Codes, previous: Codes, following: Codes) -> None:
    previous[row] = before
    following[row] = -1
    if before >= 0:
        following[before] = row
    else:
        heads[key] = row


@njit(cache=True)
def _room(
    entering: tuple[Array, ...], start: int, end: int, per_key: tuple[Array, ...], log: tuple[Array, ...]
) -> int:
    """How many rows of the log the panes that enter take at most, with those that must be repeated."""
    _, keys, numbers, _ = entering
    heads, latest, _, _, _ = per_key
    previous, _, _, panes, _ = log
    room = end - start
    for i in range(start, end):
        key = keys[i]
        row = latest[key] if heads[key] >= 0 else -1
        while row >= 0 and panes[row] > numbers[i]:
            room += 1
            row = previous[row] if row != heads[key] else -1
    return room


@njit(cache=True)
def _insert(
    i: int,
    entering: tuple[Array, ...],
    per_key: tuple[Array, ...],
    log: tuple[Array, ...],
    sources: Integers,
    begin: int,
    rows: int,
) -> int:
    """A pane that lies before others of its key, since late tuples made it.

    The rows of a key must be in the order of time, so the others come after it anew.
    """
    _, keys, numbers, lasts = entering
    heads, latest, is_rebuilt, _, _ = per_key
    previous, following, codes, panes, untils = log
    key = keys[i]
    after = 0
    row = latest[key]
    while row >= 0 and panes[row] > numbers[i]:
        after += 1
        row = previous[row] if row != heads[key] else -1
    repeated = np.empty(after, np.int32)
    row = latest[key]
    for k in range(after - 1, -1, -1):
        repeated[k] = row
        row = previous[row] if row != heads[key] else -1

    sources[rows - begin] = i
    codes[rows], panes[rows], untils[rows] = key, numbers[i], lasts[i]
    _link(key, rows, row, heads, previous, following)
    for source in repeated:
        rows += 1
        sources[rows - begin] = sources[source - begin] if source >= begin else ~source
        codes[rows], panes[rows], untils[rows] = key, panes[source], untils[source]
        _link(key, rows, rows - 1, heads, previous, following)
    latest[key] = rows
    is_rebuilt[key] = 1
    return rows + 1


@njit(cache=True)
def _is_before(key: int, other: int, order: KeyOrder) -> bool:
    absent, first, second = order
    if key == absent or other == absent:
        return key == absent
    if first[key] != first[other]:
        return bool(first[key] < first[other])
    return bool(second[key] < second[other])


@njit(cache=True)
def _merge_active(active: Codes, count: int, fresh: Codes, more: int, order: KeyOrder) -> None:
    """Put new keys among the others, from the end: there is room."""
    place = count + more - 1
    i, j = count - 1, more - 1
    while j >= 0:
        if i >= 0 and _is_before(fresh[j], active[i], order):
            active[place] = active[i]
            i -= 1
        else:
            active[place] = fresh[j]
            j -= 1
        place -= 1


@njit(cache=True)
def _mark(active: Codes, heads: Codes, following: Codes, is_live: Array) -> None:
    for key in active:
        row = heads[key]
        while row >= 0:
            is_live[row] = True
            row = following[row]
