"""Groups whose rows leave in the order in which they came: their contents are windows along one log.

Windows of time are like that. A measure can then follow the content of a group with two stacks, as it follows
windows of OVER, and need not look at all of it again at every instant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen


@dataclass(frozen=True)
class FifoGroups:
    """Rows one after the other, those of a group in order, and what is asked about them.

    ``previous`` leads from each row of the log to the one before it of its group. For each group that has
    changed at an instant there are the first and the last place of its content; -1 if it has none.
    """

    log: Codes
    previous: Codes
    groups: int
    codes: Codes
    starts: Codes
    ends: Codes


def fifo_groups(
    instants: Integers, ops: Array, rows: Array, codes: Codes, lists: tuple[Codes, Codes, Codes, Integers]
) -> FifoGroups | None:
    """What is to happen to groups, as windows; None if rows leave in another order.

    ``lists`` are those of the groups as they are before that: the newest row of each is its head.
    """
    following, _, heads, sizes = lists
    given = frozen(instants), frozen(ops), frozen(rows), frozen(codes)
    is_queue, log, previous, groups, *asked = _laid(*given, following, heads, sizes)
    return FifoGroups(log, previous, groups, *asked) if is_queue else None


@njit(cache=True)
def _laid(
    instants: Integers,
    ops: Array,
    rows: Array,
    codes: Codes,
    following: Codes,
    heads: Codes,
    sizes: Integers,
) -> tuple[bool, Codes, Codes, int, Codes, Codes, Codes]:
    """Groups are numbered as they are met, and asked about in the order of ``group_changes._change``."""
    number = np.full(len(heads), -1, np.int32)
    count, room = 0, 0
    for i in range(len(rows)):
        code = codes[rows[i]]
        if number[code] < 0:
            number[code] = count
            count += 1
            room += sizes[code]
        if ops[i] > 0:
            room += 1
    log, previous = np.empty(room, np.int32), np.full(room, -1, np.int32)
    after = np.full(room, -1, np.int32)
    first, last = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    size = 0
    met = 0
    for i in range(len(rows)):
        code = codes[rows[i]]
        group = number[code]
        if group == met:
            met += 1
            content = sizes[code]
            row = heads[code]
            for place in range(size + content - 1, size - 1, -1):
                log[place] = row
                row = following[row]
                if place > size:
                    previous[place] = place - 1
                    after[place - 1] = place
            if content:
                first[group], last[group] = size, size + content - 1
            size += content
    asked, starts, ends = (
        np.empty(len(rows), np.int32),
        np.empty(len(rows), np.int32),
        np.empty(len(rows), np.int32),
    )
    seen = np.full(count, -1, np.int64)
    found = 0
    i = 0
    while i < len(rows):
        begin, now = i, instants[i]
        while i < len(rows) and instants[i] == now:
            row = rows[i]
            group = number[codes[row]]
            if ops[i] > 0:
                log[size] = row
                previous[size] = last[group]
                if last[group] >= 0:
                    after[last[group]] = size
                if first[group] < 0:
                    first[group] = size
                last[group] = size
                size += 1
            else:
                oldest = first[group]
                if oldest < 0 or log[oldest] != row:
                    return False, log, previous, count, asked, starts, ends
                first[group] = after[oldest]
            i += 1
        for event in range(i - 1, begin - 1, -1):
            group = number[codes[rows[event]]]
            if seen[group] == begin:
                continue
            seen[group] = begin
            asked[found], starts[found] = group, first[group]
            ends[found] = last[group] if first[group] >= 0 else -1
            found += 1
    return True, log, previous, count, asked[:found], starts[:found], ends[:found]
