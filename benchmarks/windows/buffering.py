"""The algorithms of the window-id paper and its baseline as printed: plain loops, compiled.

Row windows [RANGE r ROWS SLIDE s ROWS], each with its maximum, over tuples that come in batches. Both give
one maximum for each window that is complete, the partial ones of the beginning included.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Doubles = npt.NDArray[np.float64]


class Buffering:
    """Keeps the tuples of the last window, and goes through all of them again when a window is complete."""

    def __init__(self, range_: int, slide: int) -> None:
        self._range, self._slide = range_, slide
        self._buffer = np.empty(0)
        self._count = 0

    def process(self, values: Doubles) -> Doubles:
        content = np.concatenate([self._buffer, values])
        first = self._count - len(self._buffer)
        self._count += len(values)
        results = _recompute(content, first, self._count - len(values), self._range, self._slide)
        self._buffer = content[-self._range :].copy()
        return results


@njit(cache=True)
def _recompute(content, first, before, range_, slide):  # type: ignore[no-untyped-def] # pragma: no cover
    """`content` are the tuples from the `first` on; windows that ended at `before` or earlier are done."""
    count = first + len(content)
    results = np.empty(count // slide - before // slide)
    for number in range(len(results)):
        end = (before // slide + 1 + number) * slide
        largest = -np.inf
        for row in range(max(end - range_, 0), end):
            largest = max(largest, content[row - first])
        results[number] = largest
    return results


class Buckets:
    """WID as the paper has it, without panes: each tuple updates the aggregates of all its windows."""

    def __init__(self, range_: int, slide: int) -> None:
        self._slide = slide
        self._overlap = -(-range_ // slide)
        self._range = range_
        self._open = np.full(self._overlap + 1, -np.inf)
        """The windows that are open, in a ring: window w is at w modulo its length."""

        self._count = 0

    def process(self, values: Doubles) -> Doubles:
        results = _fill(values, self._count, self._range, self._slide, self._open)
        self._count += len(values)
        return results


@njit(cache=True)
def _fill(values, before, range_, slide, ring):  # type: ignore[no-untyped-def] # pragma: no cover
    results = np.empty((before + len(values)) // slide - before // slide)
    given = 0
    for i in range(len(values)):
        row = before + i
        # Window w has the rows from (w+1)*slide-range to (w+1)*slide: the paper's function wids.
        begin = row // slide % len(ring)
        end = begin + (row + range_) // slide - row // slide
        for place in range(begin, min(end, len(ring))):
            ring[place] = max(ring[place], values[i])
        for place in range(end - len(ring)):
            ring[place] = max(ring[place], values[i])
        if (row + 1) % slide == 0:
            wid = (row + 1) // slide - 1
            results[given] = ring[wid % len(ring)]
            ring[wid % len(ring)] = -np.inf
            given += 1
    return results
