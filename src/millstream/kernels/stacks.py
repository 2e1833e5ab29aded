"""Two stacks, for measures that can be merged but not subtracted.

The rows of a window are those of an older part and those that came after it. With each row of the older part
is kept the aggregate from that row to the part's end; of the newer rows only the aggregate of all. A window's
aggregate is one merge of the two. When the older part has left, the rows that are there become the older
part: each row is turned over once, so the cost is constant, and nothing that has left leaves a trace.
"""

from __future__ import annotations

import numpy as np

from millstream.kernels.arrays import Array, Buffer
from millstream.kernels.measures import Asked, Measure, Parts, Trail


class Stacks:
    """The two stacks of each key, for one window."""

    def __init__(self, kept: Parts) -> None:
        self.bounds = Buffer(np.int64, 0)
        """Rows before it are of the older part."""

        self.latest = Buffer(np.int32, -1)
        """The last row that is in the newer part."""

        self.older = tuple(Buffer(part.dtype) for part in kept)
        """With each row of the log."""

        self.newer = tuple(Buffer(part.dtype, 0) for part in kept)
        """With each key."""

    def arrays(self, keys: int, rows: int) -> tuple[Array, Array, Parts, Parts]:
        """All of them, grown to the number of keys and of rows."""
        return (
            self.bounds.resize(keys),
            self.latest.resize(keys),
            tuple(buffer.resize(rows) for buffer in self.older),
            tuple(buffer.resize(keys) for buffer in self.newer),
        )


class StackTrail(Trail):
    """A log with two stacks for each window; ``kept`` are the arrays of one aggregate."""

    def __init__(self, measure: Measure, windows: int, kept: Parts) -> None:
        super().__init__(measure)
        self._stacks = [Stacks(kept) for _ in range(windows)]

    def stacks(self, window: int, asked: Asked) -> tuple[Array, Array, Parts, Parts]:
        return self._stacks[window].arrays(asked.keys, len(asked.previous))
