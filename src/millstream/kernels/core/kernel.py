"""The contract of kernels: tuples and punctuation in, tuples out, state that can be written down.

A kernel never asks for the time: what it may consider final is told to it, as a frontier. It is picklable at
any moment between two calls, so that a host can keep it in memory from one micro-batch to the next; what must
survive the loss of that memory goes through ``snapshot`` and ``restore``, as chunks that are written once,
never changed, and dropped when nothing in them is needed any more.
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

KEY = "__ms_key"
KEY2 = "__ms_key2"
"""Columns (int64) that identify the partition of a tuple: the value itself, or two hashes of it. A NULL in
the first is a key of its own; without the columns all tuples are of one partition."""

STREAM = "__ms_stream"
"""A column that has the number of each tuple's sub-stream, where these make promises of their own."""

LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, order=True)
class Frontier:
    """Everything up to it is final: no tuple with a smaller (time, origin) is still to come.

    A tuple is final if its time is smaller, or equal with an origin that is not larger: those of its own
    origin and time that are still to come have larger numbers, and so come after it in order.
    """

    time: int | float
    origin: int = 0
    newest: int | float | None = field(default=None, compare=False)
    """At the end of the input: the largest time of any tuple in it, whichever shard it went to."""
    reached: int | float | None = field(default=None, compare=False)
    """At the end of the input: what had been promised before it. No result may be older."""
    own: Times | None = field(default=None, compare=False, repr=False)
    """Of sub-streams that make promises of their own: what each has promised, by its number (see STREAM)."""

    @property
    def is_end(self) -> bool:
        """The input has ended: everything is final."""
        return self.time == np.inf

    @property
    def closing(self) -> int | float | None:
        """At the end of the input: the timestamp of results that only the end completes."""
        known = [time for time in (self.newest, self.reached) if time is not None]
        return max(known, default=None)


BEGINNING = Frontier(-np.inf, -1)
END = Frontier(np.inf, LAST)
"""Behind every time, be it the largest integer or a double that is larger still."""


@dataclass(frozen=True)
class Tuples:
    """Tuples with what travels along unseen.

    Their order is (time, origin, number): ``origin`` numbers the source partitions, ``number`` the tuples of
    each as they arrived. ``hold``, where given, is a time for each tuple that the frontier must reach before
    the tuple may count (a late tuple of a GENEROUS stream; the smallest time for all others).
    """

    columns: pa.Table
    time: Times
    origin: npt.NDArray[np.int32]
    number: Integers
    hold: Times | None = None

    def __len__(self) -> int:
        return len(self.time)

    def take(self, indices: npt.NDArray[Any]) -> Tuples:
        """Some of the tuples; indices, or a mask."""
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
    """What a snapshot writes: new chunks, the names of chunks that are no longer needed, and a few numbers.

    ``meta`` is plain data for JSON, small, and replaces what was written before.
    """

    added: Mapping[str, pa.Table] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


class Kernel(ABC):
    """A stateful operator over all partitions of a shard at once."""

    @abstractmethod
    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        """Take new tuples, in order of arrival within each origin, and give what has become final.

        The frontier holds after these tuples. It never goes back.
        """

    def passes(self, frontier: Frontier) -> Frontier:
        """What may be told to those who take this kernel's output, once ``frontier`` has been told to it."""
        return frontier

    @abstractmethod
    def snapshot(self) -> Change:
        """What has changed since the last snapshot, or since the beginning."""

    @abstractmethod
    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        """Become what the kernel was when all that was written."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows of state there are."""
