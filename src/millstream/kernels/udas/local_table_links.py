"""How rows of local tables find each other, when many are entered at once.

Programs enter rows one by one, with compiled helpers (``program.row_lists``, ``program.spark_hash``). Loops
over arrays that call them would be compiled too, which took a second before the first program of a machine
could run.
"""

from __future__ import annotations

import numpy as np

from millstream.kernels.core.buffers import Array, Codes, Doubles, Integers
from millstream.program.row_lists import AFTER, BEFORE, BUCKETS, CHAINED, CHAINS, CODE, LINK, OWNER, USED

_START, _STEP = np.int64(-7046029254386353131), np.int64(-4417276706812531889)
_NAN = np.int64(9221120237041090560)
_FEW = 16


def link(owners: Codes, head: Codes, tail: Codes, following: Codes, previous: Codes | None = None) -> None:
    """The rows of each instance in the order of their numbers, given whose each is."""
    rows = np.argsort(owners, kind="stable").astype(np.int32)
    _connect(rows, owners[rows], head, tail, following, previous)


def _connect(
    rows: Codes, lists: Array, head: Codes, tail: Codes, following: Codes, previous: Codes | None
) -> None:
    """Rows that stand one behind the other if they are of the same list."""
    if not len(rows):
        return
    is_last = np.append(lists[1:] != lists[:-1], True)
    is_first = np.roll(is_last, 1)
    following[rows] = np.where(is_last, -1, np.roll(rows, -1))
    if previous is not None:
        previous[rows] = np.where(is_first, -1, np.roll(rows, 1))
    head[lists[is_first]] = rows[is_first]
    tail[lists[is_last]] = rows[is_last]


def hashed(owners: Codes, columns: list[Integers | Doubles]) -> Integers:
    """The hashes of rows, as programs compute them."""
    codes = owners.astype(np.int64) * _START
    for values in columns:
        mixed = (codes ^ _bits(values)) * _STEP
        codes = mixed ^ (mixed >> np.int64(32))
    return codes & np.int64(0x7FFFFFFF)


def _bits(values: Integers | Doubles) -> Integers:
    """Of doubles; there is one NaN and one zero."""
    if values.dtype != np.float64:
        return values.astype(np.int64, copy=False)
    return np.where(np.isnan(values), _NAN, (values + 0.0).view(np.int64))


def chains(rows: Integers, owners: Codes, codes: Integers, chain: Codes, buckets: int) -> tuple[Codes, Codes]:
    """Enter rows, in the order in which they were inserted, into chains by their hashes.

    Gives heads and tails of so many chains, of which only some are used while there are few rows: few are
    near each other in memory, whatever there is room for.
    """
    used = min(buckets, max(_FEW, 1 << len(rows).bit_length()))
    heads, tails = np.empty(CHAINS + buckets, np.int32), np.empty(CHAINS + buckets, np.int32)
    heads[: CHAINS + used] = tails[: CHAINS + used] = -1
    heads[USED], heads[BUCKETS], tails[CHAINED] = used - 1, buckets, len(rows)
    links = chain.reshape(-1, LINK)
    links[rows, CODE], links[rows, OWNER] = codes, owners
    own = codes & (used - 1)
    order = np.argsort(own, kind="stable")
    after, before = links[:, AFTER], links[:, BEFORE]
    _connect(rows[order].astype(np.int32), own[order], heads[CHAINS:], tails[CHAINS:], after, before)
    return heads, tails
