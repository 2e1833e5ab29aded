"""Trackers of PUNCTUATED BY and HEARTBEAT: progress that is sent, by the source or by the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.progress.clause_tracker import ClauseTracker
from millstream.progress.piece import Mask, Piece, Times, newest_before, smallest


@dataclass
class HeartbeatTracker(ClauseTracker):
    """HEARTBEAT: progress from outside; tuples change nothing."""

    promised: Any

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        return None, np.full_like(piece.time, self.promised)


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
