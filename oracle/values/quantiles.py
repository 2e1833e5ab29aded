"""Medians and percentiles, and the value that is most frequent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from oracle.values.values import Value, order_key


def interpolated(values: Sequence[float], percentage: float) -> float:
    """The value so far along the sorted values, between two neighbours in proportion.

    The counts of Spark's ``percentile`` are those of values that repeat.

    >>> interpolated([10.0, 30.0, 20.0, 40.0], 0.5)
    25.0
    """
    ordered = sorted(values, key=order_key)
    position = (len(ordered) - 1) * percentage
    lower, upper = math.floor(position), math.ceil(position)
    low, high = ordered[lower], ordered[upper]
    if lower == upper or order_key(low) == order_key(high):
        return low
    return (upper - position) * low + (position - lower) * high


def discrete(values: Sequence[Value], percentage: float, *, descending: bool = False) -> Value:
    """The first value that so large a part of the sorted values does not exceed.

    >>> discrete([10, 30, 20, 40], 0.5), discrete([10, 30, 20, 40], 0.51)
    (20, 30)
    """
    ordered = sorted(values, key=order_key, reverse=descending)
    return ordered[max(math.ceil(percentage * len(ordered)) - 1, 0)]


def most_frequent(values: Sequence[Value], *, descending: bool = False) -> Value:
    """Of several equally frequent values the smallest, or the largest."""
    counts: Counter[Any] = Counter(order_key(value) for value in values)
    most = max(counts.values())
    chosen = max if descending else min
    return chosen((value for value in values if counts[order_key(value)] == most), key=order_key)
