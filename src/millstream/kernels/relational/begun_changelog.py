"""Changes of a relation that has rows before its first instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.core.kernel import Change
from millstream.kernels.core.time_order import order_of
from millstream.kernels.relational.changelog import Changelog
from millstream.kernels.relational.lifetimes import Lifetime

_NO_EVENTS = np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int64)


class BegunChangelog(Changelog):
    """Changes from the first instant at which a relation is not what it was in the beginning.

    All its rows enter then, also those that were there in the beginning, at the instant ``first``.
    """

    def __init__(self, stay: Lifetime | None, columns: Sequence[str], first: int | float) -> None:
        self._first = order_of(first, isinstance(first, float))
        self._has_begun = False
        super().__init__((stay,), columns, all_=True)

    def _events(self) -> tuple[Integers, Array, Array]:
        if not self._has_begun:
            start = self._start()
            if start > self._last:
                return _NO_EVENTS
            self._has_begun = True
            initial = np.flatnonzero(self._enter.view <= self._first)
            self._enter.view[initial] = start
            self._note_moved(initial)
        return super()._events()

    def _start(self) -> int:
        """Return the first instant at which a row enters or leaves."""
        enter, until = self._enter.view, self._until.view
        visible = until >= enter
        enters = enter[visible & (enter > self._first)]
        leaves = until[visible & (until < self._last)] + 1
        return int(min(enters.min(initial=self._last + 1), leaves.min(initial=self._last + 1)))

    def snapshot(self) -> Change:
        change = super().snapshot()
        return replace(change, meta={**change.meta, "begun": self._has_begun})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._has_begun = bool(meta.get("begun"))
        super().restore(meta, chunks)
        if not self._has_begun:
            self._status.view[:] = 0  # no row has entered
