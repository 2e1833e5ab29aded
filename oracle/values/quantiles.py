"""Medians, percentiles and modes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from oracle.values.values import Value, order_key


def interpolated(values: Sequence[float], percentage: float) -> float:
    """Interpolate at a percentage of the sorted values.

    The frequencies of Spark's ``percentile`` repeat values.
    """
    ordered = sorted(values, key=order_key)
    position = (len(ordered) - 1) * percentage
    lower, upper = math.floor(position), math.ceil(position)
    low, high = ordered[lower], ordered[upper]
    if lower == upper or order_key(low) == order_key(high):
        return low
    return (upper - position) * low + (position - lower) * high


def discrete(values: Sequence[Value], percentage: float, *, descending: bool = False) -> Value:
    """Return the first of the sorted values whose cumulative share reaches the percentage.

    >>> discrete([10, 30, 20, 40], 0.5), discrete([10, 30, 20, 40], 0.51)
    (20, 30)
    """
    ordered = sorted(values, key=order_key, reverse=descending)
    return ordered[max(math.ceil(percentage * len(ordered)) - 1, 0)]


def most_frequent(values: Sequence[Value], *, descending: bool = False) -> Value:
    """Return the most frequent value; of equally frequent ones the smallest, or the largest."""
    counts: Counter[Any] = Counter(order_key(value) for value in values)
    most = max(counts.values())
    chosen = max if descending else min
    return chosen((value for value in values if counts[order_key(value)] == most), key=order_key)
