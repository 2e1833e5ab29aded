"""Complete instants: the base of kernels whose results are correct at every instant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.core.kernel import BEGINNING, LAST, Frontier, Kernel, Tuples
from millstream.kernels.core.time_order import LEAST, MOST, from_order, order_of
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants

_LAST_ORIGIN = 2**31 - 1


class CompleteInstants(Kernel):
    """A kernel that processes each instant once, when all its tuples have come.

    ``stays`` has the lifetime of the tuples of each input, or None for an input of changes. With ``slides``
    results change only at these instants.
    """

    def __init__(self, stays: Sequence[Lifetime | None], slides: Sequence[SlideInstants]) -> None:
        self._stays = tuple(stays)
        self._slides = tuple(slides)
        self._frontier = BEGINNING
        self._is_float = False

    @property
    def _last(self) -> int:
        """The last complete instant."""
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
        """Return changes in the order of their instants, numbered within each instant."""
        origins = np.zeros(len(instants), np.int32)
        return Tuples(pa.table(columns), self._times(instants), origins, _numbers(instants))


@njit(cache=True)
def _numbers(instants: Integers) -> Integers:
    """Number equal neighbours from 0."""
    numbers = np.zeros(len(instants), np.int64)
    for i in range(1, len(instants)):
        if instants[i] == instants[i - 1]:
            numbers[i] = numbers[i - 1] + 1
    return numbers
