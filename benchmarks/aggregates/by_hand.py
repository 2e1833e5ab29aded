"""What somebody would write for one aggregate and one kind of window, with a ring for its tuples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.kernels.base import Change, Frontier, Kernel, Tuples

Integers = npt.NDArray[np.int64]


@numba.njit(cache=True)
def _average(
    values: Integers, ring: Integers, state: Integers, out: npt.NDArray[np.float64]
) -> None:  # pragma: no cover
    place, count, total = state
    for i in range(len(values)):
        if count == len(ring):
            total -= ring[place]
            count -= 1
        ring[place] = values[i]
        place = place + 1 if place + 1 < len(ring) else 0
        total += values[i]
        count += 1
        out[i] = total / count
    state[0], state[1], state[2] = place, count, total


@numba.njit(cache=True)
def _frequency(
    values: Integers,
    ring: Integers,
    state: Integers,
    counts: Integers,
    factors: Integers,
    out: Integers,
) -> None:  # pragma: no cover
    place, count = state[0], state[1]
    tables, slots = counts.shape
    for i in range(len(values)):
        if count == len(ring):
            for table in range(tables):
                counts[table, ring[place] * factors[table] % slots] -= 1
            count -= 1
        ring[place] = values[i]
        place = place + 1 if place + 1 < len(ring) else 0
        count += 1
        least = np.int64(2**62)
        for table in range(tables):
            slot = values[i] * factors[table] % slots
            counts[table, slot] += 1
            least = min(least, counts[table, slot])
        out[i] = least
    state[0], state[1] = place, count


class _ByHand(Kernel):
    """One partition; what it writes of its state is the part of the ring that has changed."""

    def __init__(self, rows: int) -> None:
        self._ring, self._state = np.zeros(rows, np.int64), np.zeros(3, np.int64)
        self._changed = 0

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        values = tuples.columns["v"].combine_chunks().to_numpy()
        self._changed = min(len(values), len(self._ring))
        columns = tuples.columns.append_column("r0", pa.array(self._results(values)))
        return Tuples(columns, tuples.time, tuples.origin, tuples.number)

    @abstractmethod
    def _results(self, values: Integers) -> npt.NDArray[Any]: ...

    def snapshot(self) -> Change:
        places = (self._state[0] - np.arange(1, self._changed + 1)) % len(self._ring)
        ring = pa.table({"place": places, "v": self._ring[places]})
        return Change({"ring": ring}, (), {"state": self._state.tolist()})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._state[:] = meta["state"]
        self._ring[np.asarray(chunks["ring"]["place"])] = np.asarray(chunks["ring"]["v"])

    @property
    def rows(self) -> int:
        return len(self._ring)


class AverageByHand(_ByHand):
    def _results(self, values: Integers) -> npt.NDArray[np.float64]:
        out = np.empty(len(values))
        _average(values, self._ring, self._state, out)
        return out


class FrequencyByHand(_ByHand):
    def __init__(self, rows: int, factors: Integers, slots: int) -> None:
        super().__init__(rows)
        self._factors, self._counts = factors, np.zeros((len(factors), slots), np.int64)

    def _results(self, values: Integers) -> Integers:
        out = np.empty(len(values), np.int64)
        _frequency(values, self._ring, self._state, self._counts, self._factors, out)
        return out
