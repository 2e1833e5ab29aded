"""Consecutive tuples of a source partition, and arithmetic with their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Piece:
    """Consecutive tuples of a source partition.

    ``streams`` are the codes of their sub-streams. ``promises`` marks punctuation, and ``ends`` the
    punctuation without a time, which ends its sub-stream.
    """

    time: Times
    streams: Codes | None = None
    promises: Mask | None = None
    ends: Mask | None = None


@dataclass(frozen=True)
class Verdict:
    """The late tuples of a piece, and the watermark before each tuple."""

    late: Mask
    promised: Times


def smallest(time: Times) -> Any:
    """Return the smallest value of the type of these times."""
    return -np.inf if time.dtype == np.float64 else np.iinfo(np.int64).min


def minus(time: Times, slack: float) -> Times:
    """Subtract the slack; the result is at least the smallest time."""
    if not slack:
        return time
    if time.dtype == np.float64:
        return time - slack
    return np.where(time < smallest(time) + np.int64(slack), smallest(time), time - np.int64(slack))


def newest_before(time: Times, newest: Any) -> Times:
    """Return the largest time before each tuple; ``newest`` is that of earlier pieces."""
    before = np.empty_like(time)
    if len(time):
        before[0] = newest
        np.maximum.accumulate(time[:-1], out=before[1:])
        np.maximum(before, newest, out=before)
    return before
