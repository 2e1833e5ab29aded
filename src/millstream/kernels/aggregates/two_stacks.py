"""Two stacks, for measures that can be merged but not subtracted.

The rows of a window are those of an older part and those that came after it. With each row of the older part
is kept the aggregate from that row to the part's end; of the newer rows only the aggregate of all. A window's
aggregate is one merge of the two. When the older part has left, the rows that are there become the older
part: each row is turned over once, so the cost is constant, and nothing that has left leaves a trace.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from millstream.kernels.aggregates.accumulator import Accumulator, AccumulatorLog, WindowBatch
from millstream.kernels.core.buffers import Array, Buffer


class TwoStacks:
    """The two stacks of each key, for one window: records, since all of one is needed at the same time.

    ``older`` has with each row of the log the aggregate from there on; ``newer`` with each key that of the
    newer rows, the ``bound`` before which rows are of the older part, and the ``latest`` row that is in it.
    """

    def __init__(self, kept: Mapping[str, type]) -> None:
        self._older = Buffer(np.dtype([*kept.items()], align=True))
        self._newer = Buffer(
            np.dtype([("bound", np.int64), *kept.items(), ("latest", np.int32)], align=True), 0
        )

    def records(self, keys: int, rows: int) -> tuple[Array, Array]:
        """Both, grown to the number of rows and of keys."""
        return self._older.resize(rows), self._newer.resize(keys)


class TwoStacksLog(AccumulatorLog):
    """A log with two stacks for each window; ``kept`` is what an aggregate is made of."""

    def __init__(self, accumulator: Accumulator, windows: int, kept: Mapping[str, type]) -> None:
        super().__init__(accumulator)
        self._stacks = [TwoStacks(kept) for _ in range(windows)]

    def stacks(self, window: int, batch: WindowBatch) -> tuple[Array, Array]:
        return self._stacks[window].records(batch.keys, len(batch.previous))
