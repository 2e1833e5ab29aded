"""Scope functions (Patroumpas and Sellis, section 3): the content of a window at an instant.

Time is counted in whole instants, as in the paper. The scope of a logical window is an interval of instants
with both ends included, or None if it is empty. The scope of a physical window is counted in tuples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

Scope = tuple[int, int] | None


def sliding_scope(applied: int, size: int, step: int, now: int) -> Scope:
    """Return the scope of a time-based sliding window that was applied at some instant and moves by steps.

    >>> [sliding_scope(0, 5, 2, now) for now in range(8)]
    [(0, 0), (0, 0), (0, 2), (0, 2), (0, 4), (0, 4), (2, 6), (2, 6)]
    """
    if now < applied:
        return None
    latest = now - (now - applied) % step
    return max(applied, latest - size + 1), latest


def tumbling_scope(applied: int, size: int, now: int) -> Scope:
    """Return the scope of a time-based tumbling window, which slides by its own size."""
    return sliding_scope(applied, size, size, now)


def now_scope(now: int) -> Scope:
    """Return the scope of NOW: a sliding window of one instant."""
    return sliding_scope(now, 1, 1, now)


def landmark_scope(applied: int, lower: int | None, upper: int | None, now: int) -> Scope:
    """Return the scope of a landmark window: lower-bounded, upper-bounded (then frozen), or a fixed band.

    >>> [landmark_scope(0, 2, 4, now) for now in range(6)]
    [None, None, (2, 2), (2, 3), (2, 4), (2, 4)]
    """
    first = applied if lower is None else lower
    last = now if upper is None else min(now, upper)
    return (first, last) if now >= applied and first <= last else None


def count_scope(size: int, times: Sequence[int], now: int) -> range:
    """Return the scope of a count-based window: the positions of the latest tuples, in stream order.

    If only some of the tuples of an instant fit, they are the last of them to have arrived; the paper leaves
    the choice open.

    >>> count_scope(2, [1, 1, 1, 5], now=4)
    range(1, 3)
    """
    arrived = sum(time <= now for time in times)
    return range(max(0, arrived - size), arrived)


def partitioned_scope(size: int, times: Sequence[int], partitions: Sequence[Hashable], now: int) -> list[int]:
    """Return the scope of a partitioned window: the union of a count-based window on each partition.

    >>> partitioned_scope(1, [1, 2, 3, 9], ["a", "b", "a", "b"], now=5)
    [1, 2]
    """
    counts: Counter[Hashable] = Counter()
    shown = []
    for position in count_scope(len(times), times, now)[::-1]:
        if counts[partitions[position]] < size:
            shown.append(position)
        counts[partitions[position]] += 1
    return shown[::-1]
