"""Changes of a relation at the slides of other windows, which tuples may decide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.core.time_order import MOST
from millstream.kernels.relational.changelog import Changelog
from millstream.kernels.relational.lifetimes import TICK, Lifetime, SlideInstants


class SampledChangelog(Changelog):
    """Rows of a relation as they are at ticks, the tuples of the second side, and at periodic slides.

    A row enters at the first of these instants that finds it, and leaves at the first that does not.
    """

    def __init__(
        self, stay: Lifetime | None, columns: Sequence[str], slides: Sequence[SlideInstants] = ()
    ) -> None:
        self._periodic = tuple(slides)
        super().__init__((stay, TICK), columns, all_=True)

    def _append(self, columns: pa.Table, enter: Integers, until: Integers) -> None:
        first = len(self._enter)
        super()._append(columns, enter, until)
        self._foreseen.view[first:] = MOST  # the slide that ends a row is not known before

    def _events(self) -> tuple[Integers, Array, Array]:
        self._snap()
        instants, ops, rows = super()._events()
        sampled = np.flatnonzero(self._codes.view[rows] % 2 == 0)
        return instants[sampled], ops[sampled], rows[sampled]

    def _snap(self) -> None:
        """Move what happened up to now to the first slide after it, or behind now if there is none yet."""
        last = self._last
        enter, until = self._enter.view, self._until.view
        of_rows = self._codes.view % 2 == 0
        ticks = np.unique(enter[self._is_waiting & ~of_rows])
        entering = np.flatnonzero(self._is_waiting & of_rows)
        enter[entering] = self._seen(enter[entering], ticks)
        # What no slide has seen is left as it is, and dropped.
        leaving = np.flatnonzero(of_rows & (until < last) & (until >= enter) & self._is_alive)
        until[leaving] = self._seen(until[leaving] + 1, ticks) - 1
        self._note_moved(np.union1d(entering, leaving))

    def _needed_until(self, until: Integers) -> int:
        return MOST  # a row that is shown stays until the next slide

    def _seen(self, points: Integers, ticks: Integers) -> Integers:
        """Return the first slide at or after each point, up to now; the next instant if there is none."""
        found = np.append(ticks, MOST)[np.searchsorted(ticks, points)]
        seen = [found, *(one.following(points) for one in self._periodic)]
        first: Integers = np.minimum(np.minimum.reduce(seen), self._last + 1)
        return first
