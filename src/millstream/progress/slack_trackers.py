"""Trackers of SLACK, in time and in rows; a stream without the clause has a slack of 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from millstream.jit import njit
from millstream.progress.clause_tracker import ClauseTracker
from millstream.progress.piece import Mask, Piece, Times, minus, newest_before, smallest


@dataclass
class SlackTracker(ClauseTracker):
    """Order, and SLACK INTERVAL: the newest time less the slack."""

    kept = ("promised", "newest")
    slack: Any
    promised: Any
    newest: Any = None

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        lowest = smallest(piece.time)
        before = newest_before(piece.time, lowest if self.newest is None else self.newest)
        if len(piece.time):
            self.newest = max(before[-1], piece.time[-1]).item()
            self.promised = minus(np.array([self.newest], piece.time.dtype), self.slack)[0].item()
        return None, minus(before, self.slack)


@dataclass
class RowSlackTracker(ClauseTracker):
    """SLACK n ROWS: the (n+1)-th largest time so far."""

    kept = ("promised", "ranked")
    rows: int
    promised: Any
    is_float: bool
    largest: Times = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        # Twice the room needed: the list moves along the array, and back to its start at the end of it.
        self.largest = np.empty(2 * (self.rows + 1), np.float64 if self.is_float else np.int64)

    @property
    def ranked(self) -> Times:
        """The largest times, in ascending order."""
        return self.largest[: self.count]

    @ranked.setter
    def ranked(self, times: Times) -> None:
        self.count = len(times)
        self.largest[: self.count] = times

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        # Punctuation is no tuple, and overtakes none.
        counts = np.ones(len(piece.time), np.bool_) if piece.promises is None else ~piece.promises
        before = np.empty_like(piece.time)
        self.count = _rank(piece.time, counts, self.largest, self.count, self.rows + 1, self.promised, before)
        if self.count == self.rows + 1:
            self.promised = self.largest[0].item()
        return None, before


@njit(cache=True)
def _rank(time, counts, largest, count, room, promised, before):  # type: ignore[no-untyped-def] # pragma: no cover
    """Keep the ``room`` largest times in order; an insertion takes as many steps as the tuple lags."""
    first = 0
    for i in range(len(time)):
        before[i] = promised
        if not counts[i]:
            continue
        t = time[i]
        if count == room and t <= largest[first]:
            continue
        if first + count == len(largest):
            for j in range(count):
                largest[j] = largest[first + j]
            first = 0
        at = first + count
        while at > first and largest[at - 1] > t:
            largest[at] = largest[at - 1]
            at -= 1
        largest[at] = t
        if count == room:
            first += 1
        else:
            count += 1
        if count == room:
            promised = largest[first]
    for j in range(count):
        largest[j] = largest[first + j]
    return count
