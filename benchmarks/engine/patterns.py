"""The patterns of the queries as plain loops over the values of a key: attempt after attempt, by definition.

Python runs them as they are, and Numba compiles them. A match goes from a row to the one before its end, and
its result is how much higher its last row is than its first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.engine.contract import HIGH, LEAST, MIDDLE

FAILED, OPEN = -1, -2
"""Instead of the end of a match: there is none, or more rows must be seen."""

Attempt = Callable[[Sequence[float], int, int], int]
"""The end of the match that begins at a row; before the last number, rows belong to matches."""


def recovery(v: Sequence[float], start: int, free: int) -> int:
    """(A, *B, C, D)"""
    if v[start] <= HIGH:
        return FAILED
    at = start + 1
    while at < len(v) and v[at] < v[at - 1]:
        at += 1
    if at + 1 >= len(v):
        return OPEN
    return at + 2 if at > start + 1 and v[at + 1] > v[start] else FAILED


def double_bottom(v: Sequence[float], start: int, free: int) -> int:
    """(A, *W, *X, *Y, *Z, E): E has ended Z, and so it falls."""
    if v[start] <= MIDDLE:
        return FAILED
    at = start + 1
    for leg in range(4):
        first = at
        while at < len(v) and (v[at] < v[at - 1]) == (leg % 2 == 0):
            at += 1
        if at == len(v):
            return OPEN
        if at - first < LEAST:
            return FAILED
    return at + 1


def six_stars(v: Sequence[float], start: int, free: int) -> int:
    """(*A, *B, *C, *D, *E, *F): the first is maximal on the left, and the end of the input ends the last."""
    if start == 0 or not v[start] < v[start - 1]:
        return FAILED
    if start - 1 >= free and start > 1 and v[start - 1] < v[start - 2]:
        return FAILED
    at = start
    for leg in range(6):
        first = at
        while at < len(v) and (v[at] < v[at - 1]) == (leg % 2 == 0):
            at += 1
        if at - first < LEAST:
            return FAILED
    return at


ATTEMPTS: dict[str, Attempt] = {
    "recovery": recovery,
    "double_bottom": double_bottom,
    "six_stars": six_stars,
}


def search(v: Sequence[float], attempt: Attempt, more: bool) -> tuple[list[tuple[int, int]], int]:
    """The matches, each from a row to the one before its end, and the first row that is still needed.

    Whether `more` rows are to come says what becomes of an attempt that would like to see them.
    """
    found = [(0, 0) for _ in range(0)]  # gives Numba the type of the elements
    start, free = 0, 0
    while start < len(v):
        end = attempt(v, start, free)
        if end == OPEN and more:
            break
        if end < 0:
            start += 1
        else:
            found.append((start, end))
            start = free = end
    return found, start
