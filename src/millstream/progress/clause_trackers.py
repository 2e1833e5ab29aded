"""Trackers of clauses about a whole source partition: order, SLACK, PUNCTUATED BY and HEARTBEAT."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from millstream.jit import njit
from millstream.progress.piece import Mask, Piece, Times, minus, newest_before, smallest
from millstream.progress.plain_data import as_data, from_data


class ClauseTracker(ABC):
    """The state of one clause; ``kept`` names the attributes in a checkpoint."""

    kept: ClassVar[tuple[str, ...]] = ("promised",)
    promised: Any
    """The watermark by this clause."""

    @abstractmethod
    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        """Follow a piece; return the tuples that break this clause, and the watermark before each tuple."""

    def as_data(self) -> dict[str, Any]:
        return {name: as_data(getattr(self, name)) for name in self.kept}

    def restore(self, data: Mapping[str, Any]) -> None:
        for name in self.kept:
            setattr(self, name, from_data(data[name]))


@dataclass
class HeartbeatTracker(ClauseTracker):
    """HEARTBEAT: progress from outside; tuples change nothing."""

    promised: Any

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        return None, np.full_like(piece.time, self.promised)


@dataclass
class OrderTracker(ClauseTracker):
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
class PunctuationTracker(ClauseTracker):
    """PUNCTUATED BY: the largest time of punctuation, and whether punctuation had no time."""

    kept = ("promised", "ended")
    promised: Any
    ended: bool = False

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        assert piece.promises is not None
        counts = piece.promises if piece.ends is None else piece.promises & ~piece.ends
        values = np.where(counts, piece.time, smallest(piece.time))
        if piece.ends is not None:
            # Punctuation without a time ends the whole partition.
            last = np.inf if piece.time.dtype == np.float64 else np.iinfo(np.int64).max
            ends = piece.promises & piece.ends
            values = np.where(ends, last, values)
            self.ended = self.ended or bool(ends.any())
        before = newest_before(values, self.promised)
        if len(values):
            self.promised = max(before[-1], values[-1]).item()
        return None, before


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
