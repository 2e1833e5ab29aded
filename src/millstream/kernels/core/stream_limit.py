"""StreamLimit: the first tuples of a stream, after which there are no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from millstream.kernels.core.kernel import LAST, Change, Frontier, Kernel, Tuples
from millstream.kernels.core.tuple_batch import cut


class StreamLimit(Kernel):
    """A counter of tuples in the order of the stream: those from ``offset`` on pass, up to ``limit``.

    With ``ends`` the query has ended when the last of them has passed.
    """

    def __init__(self, limit: int | None, offset: int, ends: bool) -> None:
        self._first = offset
        self._end = LAST if limit is None else offset + limit
        self._ends = ends
        self._count = 0

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        start, end = (min(max(bound - self._count, 0), len(tuples)) for bound in (self._first, self._end))
        self._count += len(tuples)
        return cut(tuples, start, end)

    @property
    def is_done(self) -> bool:
        return self._ends and self._count >= self._end

    def snapshot(self) -> Change:
        return Change(meta={"count": self._count})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._count = int(meta.get("count", 0))

    @property
    def rows(self) -> int:
        return 0
