"""Late tuples of an input, separated from the tuples in time by the verdicts of the watermark trackers.

Late tuples are the stream of LATE INTO. On a GENEROUS stream some of them are also counted in the windows
that are still open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.tuple_batch import joined
from millstream.progress.piece import Verdict
from millstream.stage.attribute_progress import AttributeVerdicts


@dataclass
class JudgedTuples:
    """The tuples of one input and micro-batch: those in time, and the late ones."""

    in_time: list[Tuples] = field(default_factory=list)
    too_late: list[Tuples] = field(default_factory=list)

    @property
    def tuples(self) -> Tuples | None:
        """The tuples that the kernels process."""
        return joined(self.in_time) if self.in_time else None

    @property
    def late(self) -> Tuples | None:
        """The tuples of the stream of LATE INTO."""
        return joined(self.too_late) if self.too_late else None

    def add(self, tuples: Tuples, verdict: AttributeVerdicts) -> None:
        """Separate the late tuples of a piece; spared ones are late and processed too.

        A spared tuple holds the watermark before it, so that kernels tell which windows are still open.
        """
        if not verdict.late.any():
            self.in_time.append(tuples)
            return
        self.too_late.append(tuples.take(verdict.late))
        if not verdict.spared.any():
            self.in_time.append(tuples.take(~verdict.late))
            return
        lowest = -np.inf if tuples.time.dtype == np.float64 else np.iinfo(np.int64).min
        hold = np.where(verdict.late, verdict.promised, lowest)
        held = Tuples(tuples.columns, tuples.time, tuples.origin, tuples.number, hold)
        lost = verdict.late & ~verdict.spared
        self.in_time.append(held.take(~lost) if lost.any() else held)


def spared(verdict: Verdict, *, generous: bool) -> AttributeVerdicts:
    """Return a verdict in which the late tuples of a GENEROUS stream are spared."""
    return AttributeVerdicts(verdict.late, verdict.promised, verdict.late & generous)


def all_late(rows: int, punctuation: npt.NDArray[np.bool_] | None, promised: Any) -> AttributeVerdicts:
    """Return the verdict on rows that come after the end of their input; punctuation is never late."""
    late = np.ones(rows, np.bool_) if punctuation is None else ~punctuation
    return AttributeVerdicts(late, np.full(rows, promised), late)
