"""Groups whose rows leave in order of arrival: their contents are windows along one log.

Windows of time are of this kind. An accumulator then follows the content of a group with two stacks, as for
OVER windows, instead of recomputing it at every instant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen
from millstream.kernels.relational.linked_rows import Links


@dataclass(frozen=True)
class FifoGroups:
    """A log of rows, and the windows of it whose results are needed.

    ``previous`` has the place of the previous row of the same group for each row of the log. For each change
    of a group at an instant, ``starts`` and ``ends`` have the first and the last place of its content; -1 if
    it is empty.
    """

    log: Codes
    previous: Codes
    groups: int
    codes: Codes
    starts: Codes
    ends: Codes


def fifo_groups(
    instants: Integers, ops: Array, rows: Array, codes: Codes, links: Links, sizes: Integers
) -> FifoGroups | None:
    """Return the changes of groups as windows of a log; None if rows leave in another order.

    ``links`` and ``sizes`` are the contents of the groups before the changes.
    """
    given = frozen(instants), frozen(ops), frozen(rows), frozen(codes)
    is_queue, log, previous, groups, *asked = _laid(*given, links, sizes)
    return FifoGroups(log, previous, groups, *asked) if is_queue else None


@njit(cache=True)
def _laid(
    instants: Integers,
    ops: Array,
    rows: Array,
    codes: Codes,
    links: Links,
    sizes: Integers,
) -> tuple[bool, Codes, Codes, int, Codes, Codes, Codes]:
    """Lay out the log; windows are in the order of ``group_aggregate._change``."""
    _, preceding, _, tails = links
    number = np.full(len(tails), -1, np.int32)
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
            row = tails[code]
            for place in range(size + content - 1, size - 1, -1):
                log[place] = row
                row = preceding[row]
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
