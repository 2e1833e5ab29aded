"""The watermark of one source partition, and its late tuples.

A tuple is judged by the tuples before it in its own source partition alone, so the division of a partition
into pieces does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from millstream.progress.clause_tracker import ClauseTracker
from millstream.progress.disorder_clauses import (
    Clause,
    Heartbeats,
    InOrder,
    OrderedPer,
    Promises,
    Punctuated,
    RowSlack,
)
from millstream.progress.piece import Mask, Piece, Times, Verdict, minus
from millstream.progress.plain_data import as_data, from_data
from millstream.progress.punctuation_trackers import HeartbeatTracker, PunctuationTracker
from millstream.progress.slack_trackers import RowSlackTracker, SlackTracker
from millstream.progress.substream_trackers import OrderedPerTracker, PunctuatedPerTracker, SubstreamTracker


@dataclass
class Tracker:
    """The watermark of one source partition."""

    promises: Promises
    is_float: bool = False
    parts: list[ClauseTracker] = field(init=False)
    promised: Any = field(init=False)
    timed: Any = field(init=False)
    """The watermark without punctuation that has no time and ends the partition."""

    def __post_init__(self) -> None:
        self.promised = self.timed = self.lowest
        self.parts = [_tracker_of(clause, self.is_float) for clause in self.promises.clauses]

    @property
    def lowest(self) -> Any:
        """The watermark before the first tuple."""
        return -np.inf if self.is_float else int(np.iinfo(np.int64).min)

    @property
    def highest(self) -> Any:
        """The watermark at the end of the input."""
        return np.inf if self.is_float else int(np.iinfo(np.int64).max)

    def show(self, piece: Piece) -> Verdict:
        """Judge the next tuples, and advance the watermark."""
        late = np.zeros(len(piece.time), np.bool_)
        promised = np.full(len(piece.time), self.promised, np.float64 if self.is_float else np.int64)
        for part in self.parts:
            own_late, before = part.show(piece)
            if own_late is not None:
                late |= own_late
            np.maximum(promised, before, out=promised)
        np.maximum.accumulate(promised, out=promised)
        late |= piece.time < promised
        if piece.promises is not None:
            late &= ~piece.promises
        self._settle()
        if self.has_last_word:
            # The end of the partition has no time, and nothing after it advances the watermark.
            before = promised[promised < self.highest]
            self.timed = before[-1].item() if len(before) else self.timed
        return Verdict(late, promised)

    @property
    def has_last_word(self) -> bool:
        """True if punctuation has ended the whole partition; the largest timestamp alone does not."""
        return any(isinstance(part, PunctuationTracker) and part.ended for part in self.parts)

    def judge(self, time: Times, *, broken: Mask | None = None, newest: Times | None = None) -> Verdict:
        """Judge some tuples of a piece without the rest of it; only for a single SLACK clause.

        The caller passes either the tuples that break the clause within the piece (``broken``), or the newest
        time before each tuple in the piece.
        """
        promised = np.full(len(time), self.promised, np.float64 if self.is_float else np.int64)
        if newest is not None:
            slack = self.promises.slack
            assert slack is not None
            np.maximum(promised, minus(newest, slack), out=promised)
        late = time < promised
        return Verdict(late if broken is None else late | broken, promised)

    def pass_over(self, newest: Any) -> None:
        """Advance the watermark by a piece of which only the newest time is known."""
        self.show(Piece(np.array([newest], np.float64 if self.is_float else np.int64)))

    def heartbeat(self, time: Any) -> None:
        """Advance the watermark from outside."""
        for part in self.parts:
            if isinstance(part, HeartbeatTracker):
                part.promised = max(part.promised, time)
        self._settle()

    def of_streams(self, count: int) -> Times:
        """Return the watermarks of the first ``count`` sub-streams, by their codes."""
        promised = np.full(count, self.promised, np.float64 if self.is_float else np.int64)
        for part in self.parts:
            if isinstance(part, SubstreamTracker):
                own = part.own()[:count]
                np.maximum(promised[: len(own)], own, out=promised[: len(own)])
        return promised

    def as_data(self) -> dict[str, Any]:
        """Return the state as plain data: the watermark, and the state of each clause in order."""
        return {
            "promised": as_data(self.promised),
            "timed": as_data(self.timed),
            "clauses": [part.as_data() for part in self.parts],
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Read the state back."""
        self.promised = from_data(data["promised"])
        self.timed = from_data(data["timed"])
        for part, written in zip(self.parts, data["clauses"], strict=True):
            part.restore(written)

    def _settle(self) -> None:
        self.promised = max([self.promised, *(part.promised for part in self.parts)])
        self.promised = float(self.promised) if self.is_float else int(self.promised)
        if not self.has_last_word:
            self.timed = self.promised


def _tracker_of(clause: Clause, is_float: bool) -> ClauseTracker:
    lowest = -np.inf if is_float else int(np.iinfo(np.int64).min)
    match clause:
        case InOrder(slack):
            return SlackTracker(slack, lowest)
        case RowSlack(rows):
            return RowSlackTracker(rows, lowest, is_float)
        case OrderedPer(idle_after):
            return OrderedPerTracker(idle_after, lowest, is_float)
        case Punctuated(per):
            return PunctuatedPerTracker(lowest, is_float) if per else PunctuationTracker(lowest)
        case Heartbeats():
            return HeartbeatTracker(lowest)
