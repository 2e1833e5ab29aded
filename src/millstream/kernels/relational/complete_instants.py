"""Which instants are complete: what all kernels have in common whose results are right at every instant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.core.kernel import BEGINNING, LAST, Frontier, Kernel, Tuples
from millstream.kernels.core.time_order import LEAST, MOST, from_order, order_of
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants

_LAST_ORIGIN = 2**31 - 1


class CompleteInstants(Kernel):
    """Looks at an instant when everything of it is known, and only once.

    ``stays`` has for each input how long its tuples stay, or None if changes come. If anything ``slides``,
    results are looked at only then.
    """

    def __init__(self, stays: Sequence[Lifetime | None], slides: Sequence[SlideInstants]) -> None:
        self._stays = tuple(stays)
        self._slides = tuple(slides)
        self._frontier = BEGINNING
        self._is_float = False

    @property
    def _last(self) -> int:
        """The last instant of which everything is known."""
        frontier = self._frontier
        if frontier.is_end:
            return MOST - 1
        if frontier.time == -np.inf:
            return LEAST
        bound = order_of(frontier.time, self._is_float)
        slides = [stay is not None and stay.slides is not None for stay in self._stays]
        return bound if all(slides) or frontier.origin >= _LAST_ORIGIN else bound - 1

    def passes(self, frontier: Frontier) -> Frontier:
        if frontier.is_end or frontier.time == -np.inf:
            return frontier
        is_known = self._last == order_of(frontier.time, self._is_float)
        return Frontier(frontier.time, LAST if is_known else -1)

    def _times(self, instants: Integers) -> Array:
        return from_order(instants, self._is_float)

    def _changes(self, columns: dict[str, pa.Array], instants: Integers) -> Tuples:
        """Changes at instants, one after the other."""
        count = len(instants)
        numbers = np.arange(count) - np.searchsorted(instants, instants, "left")
        return Tuples(pa.table(columns), self._times(instants), np.zeros(count, np.int32), numbers)
