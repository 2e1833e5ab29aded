"""Rows of local tables: lists in the order of insertion, and chains of a hash index."""

from __future__ import annotations

import numpy as np

from millstream.program import row_layout
from millstream.program.jit_registry import for_programs

# Indices of a table's numbers in its array ``meta``, and flags of a row in ``mark``: it has changed, and it
# has been persisted before. ``row_layout`` is no compiled source, so its constants are not in the digest.
SIZE, FREE, NEXT_ID, TOUCHED, GONE, ROOM, META = 0, 1, 2, 3, 4, 5, 6
CHANGED, WRITTEN = 1, 2
# The numbers of a row in a chain lie together, so that a lookup waits once for memory.
AFTER, BEFORE, CODE, OWNER, LINK = 0, 1, 2, 3, 4
# Before the heads of chains are the mask of used ones and the number of all; before the tails, the number
# of rows.
USED, BUCKETS, CHAINED, CHAINS = 0, 1, 0, 2
assert tuple(row_layout.META.values()) == (SIZE, FREE, NEXT_ID, TOUCHED, GONE, ROOM)
assert tuple(row_layout.CHAIN.values()) == (AFTER, BEFORE, CODE, OWNER)


@for_programs
def take_row(meta, following):  # type: ignore[no-untyped-def] # pragma: no cover
    row = meta[FREE]
    if row >= 0:
        meta[FREE] = following[row]
        return row
    row = meta[SIZE]
    meta[SIZE] = row + 1
    return row


@for_programs
def number_row(row, meta, ids):  # type: ignore[no-untyped-def] # pragma: no cover
    ids[row] = meta[NEXT_ID]
    meta[NEXT_ID] += 1


@for_programs
def new_row(k, meta, ids, owner, head, tail, count, following, previous):  # type: ignore[no-untyped-def] # pragma: no cover
    row = take_row(meta, following)
    owner[row] = k
    number_row(row, meta, ids)
    link_row(row, k, head, tail, count, following, previous)
    return row


@for_programs
def link_row(row, k, head, tail, count, following, previous):  # type: ignore[no-untyped-def] # pragma: no cover
    last = tail[k]
    previous[row] = last
    following[row] = -1
    if last >= 0:
        following[last] = row
    else:
        head[k] = row
    tail[k] = row
    count[k] += 1


@for_programs
def drop_row(row, k, meta, ids, mark, gone, head, tail, count, following, previous):  # type: ignore[no-untyped-def] # pragma: no cover
    before, after = previous[row], following[row]
    if before >= 0:
        following[before] = after
    else:
        head[k] = after
    if after >= 0:
        previous[after] = before
    else:
        tail[k] = before
    count[k] -= 1
    if mark[row] & WRITTEN:
        gone[meta[GONE]] = ids[row]
        meta[GONE] += 1
    mark[row] &= CHANGED
    ids[row] = -1
    following[row] = meta[FREE]
    meta[FREE] = row


@for_programs
def touch_row(row, meta, mark, touched):  # type: ignore[no-untyped-def] # pragma: no cover
    if not mark[row] & CHANGED:
        mark[row] |= CHANGED
        touched[meta[TOUCHED]] = row
        meta[TOUCHED] += 1


# ---------------------------------------------------------------- queues


@for_programs
def new_in_queue(k, place, meta, owner, places, head, tail, count, following):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the slot of the row that left last, if possible: it is still in the processor's cache."""
    row = take_row(meta, following)
    owner[row] = k
    places[row] = place
    queue_row(row, k, head, tail, count, following)
    return row


@for_programs
def queue_row(row, k, head, tail, count, following):  # type: ignore[no-untyped-def] # pragma: no cover
    last = tail[k]
    following[row] = -1
    if last >= 0:
        following[last] = row
    else:
        head[k] = row
    tail[k] = row
    count[k] += 1


@for_programs
def leave_queue(row, k, meta, head, tail, count, following):  # type: ignore[no-untyped-def] # pragma: no cover
    after = following[row]
    head[k] = after
    if after < 0:
        tail[k] = -1
    count[k] -= 1
    following[row] = meta[FREE]
    meta[FREE] = row


# ---------------------------------------------------------------- chains


@for_programs
def chain_code(code):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return a hash as chains store it."""
    return np.int64(code) & np.int64(0x7FFFFFFF)


@for_programs
def _use_more_buckets(heads, tails, chain):  # type: ignore[no-untyped-def] # pragma: no cover
    """Double the number of buckets, if there is room: the rows of each are split in two, in their order."""
    used = heads[USED] + 1
    if 2 * used > heads[BUCKETS]:
        return
    heads[USED] = 2 * used - 1
    for bucket in range(CHAINS + used, CHAINS + 2 * used):
        heads[bucket] = tails[bucket] = -1
    for bucket in range(CHAINS, CHAINS + used):
        row = heads[bucket]
        heads[bucket] = tails[bucket] = -1
        while row >= 0:
            following = chain[LINK * row + AFTER]
            own = CHAINS + (chain[LINK * row + CODE] & (2 * used - 1))
            last = tails[own]
            chain[LINK * row + AFTER] = -1
            chain[LINK * row + BEFORE] = last
            if last >= 0:
                chain[LINK * last + AFTER] = row
            else:
                heads[own] = row
            tails[own] = row
            row = following


@for_programs
def chain_first(code, k, heads, chain):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the first row of an instance with a hash, -1 if there is none."""
    row = heads[CHAINS + (code & heads[USED])]
    while row >= 0 and (chain[LINK * row + CODE] != code or chain[LINK * row + OWNER] != k):
        row = chain[LINK * row + AFTER]
    return row


@for_programs
def chain_next(row, code, k, chain):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the next row, even if this one has been removed just now."""
    row = chain[LINK * row + AFTER]
    while row >= 0 and (chain[LINK * row + CODE] != code or chain[LINK * row + OWNER] != k):
        row = chain[LINK * row + AFTER]
    return row


@for_programs
def chain_add(row, k, code, heads, tails, chain, ids):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add a row to its chain, in the order of insertion, whatever its time."""
    tails[CHAINED] += 1
    if tails[CHAINED] > heads[USED]:
        _use_more_buckets(heads, tails, chain)
    bucket = CHAINS + (code & heads[USED])
    last = tails[bucket]
    while last >= 0 and ids[last] > ids[row]:
        last = chain[LINK * last + BEFORE]
    following = chain[LINK * last + AFTER] if last >= 0 else heads[bucket]
    chain[LINK * row + AFTER] = following
    chain[LINK * row + BEFORE] = last
    chain[LINK * row + CODE] = code
    chain[LINK * row + OWNER] = k
    if last >= 0:
        chain[LINK * last + AFTER] = row
    else:
        heads[bucket] = row
    if following >= 0:
        chain[LINK * following + BEFORE] = row
    else:
        tails[bucket] = row


@for_programs
def chain_remove(row, heads, tails, chain):  # type: ignore[no-untyped-def] # pragma: no cover
    tails[CHAINED] -= 1
    bucket = CHAINS + (chain[LINK * row + CODE] & heads[USED])
    previous, following = chain[LINK * row + BEFORE], chain[LINK * row + AFTER]
    if previous >= 0:
        chain[LINK * previous + AFTER] = following
    else:
        heads[bucket] = following
    if following >= 0:
        chain[LINK * following + BEFORE] = previous
    else:
        tails[bucket] = previous
