"""Contract of kernels: tuples and a watermark in, tuples out, state in chunks.

A kernel never reads a clock: the frontier tells which tuples are final. A kernel is picklable between two
calls, so a host can keep it in memory from one micro-batch to the next. State that must survive the loss of
that memory goes through ``snapshot`` and ``restore``, as chunks that are written once, never changed, and
dropped when no row in them is needed any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Times = npt.NDArray[np.int64] | npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

STREAM = "__ms_stream"
"""A column with the number of each tuple's sub-stream, where sub-streams have watermarks of their own."""

LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, order=True)
class Frontier:
    """A watermark: no tuple with a smaller (time, origin) is still to come.

    A tuple is final if its time is smaller, or equal with an origin that is not larger: tuples of its own
    origin and time that are still to come have larger numbers, and so come after it in order.
    """

    time: int | float
    origin: int = 0
    newest: int | float | None = field(default=None, compare=False)
    """Largest time of any tuple of the input, in any shard; set at the end of the input."""
    reached: int | float | None = field(default=None, compare=False)
    """Watermark before the end of the input, set at its end. No result may be older."""
    own: Times | None = field(default=None, compare=False, repr=False)
    """Watermarks of sub-streams by number (see STREAM), where they have their own."""

    @property
    def is_end(self) -> bool:
        """True if the input has ended, so that everything is final."""
        return self.time == np.inf

    @property
    def closing(self) -> int | float | None:
        """Timestamp of results that only the end of the input completes."""
        known = [time for time in (self.newest, self.reached) if time is not None]
        return max(known, default=None)


BEGINNING = Frontier(-np.inf, -1)
END = Frontier(np.inf, LAST)
"""A frontier beyond every time, even the largest integer and any double."""


@dataclass(frozen=True)
class Tuples:
    """Tuples with their positions.

    Their order is (time, origin, number): ``origin`` numbers the source partitions, ``number`` the tuples of
    each in order of arrival. ``hold``, where given, is a time for each tuple that the frontier must reach
    before the tuple counts (for a late tuple of a GENEROUS stream; the smallest time for all others).
    """

    columns: pa.Table
    time: Times
    origin: npt.NDArray[np.int32]
    number: Integers
    hold: Times | None = None

    def __len__(self) -> int:
        return len(self.time)

    def take(self, indices: npt.NDArray[Any]) -> Tuples:
        """Return some of the tuples, by indices or by a mask."""
        if indices.dtype == np.bool_:
            indices = np.flatnonzero(indices)
        hold = None if self.hold is None else self.hold[indices]
        return Tuples(
            self.columns.take(pa.array(indices)),
            self.time[indices],
            self.origin[indices],
            self.number[indices],
            hold,
        )


@dataclass(frozen=True)
class Change:
    """Changes of state written by a snapshot: new chunks, names of chunks to drop, and a few numbers.

    ``meta`` is plain data for JSON, small, and replaces what was written before.
    """

    added: Mapping[str, pa.Table] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


class Kernel(ABC):
    """A stateful operator over all partitions of a shard at once."""

    @abstractmethod
    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        """Take new tuples, in order of arrival within each origin, and return results that have become final.

        The frontier holds after these tuples. It never goes back.
        """

    def passes(self, frontier: Frontier) -> Frontier:
        """Return the frontier of this kernel's output at a frontier of its input."""
        return frontier

    @abstractmethod
    def snapshot(self) -> Change:
        """Return the changes of state since the last snapshot, or since the beginning."""

    @abstractmethod
    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        """Restore the state that snapshots have written."""

    @property
    def is_done(self) -> bool:
        """True if the query needs no more input, whatever comes."""
        return False

    @property
    @abstractmethod
    def rows(self) -> int:
        """Number of rows of state."""
