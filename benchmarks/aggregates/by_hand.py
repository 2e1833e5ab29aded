"""Hand-written code for one aggregate and one kind of window, with a ring for its tuples.

It fulfils the contract of a kernel: any number of partitions, NULLs, overflowing sums, and reports of changed
state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.column_codec import Column
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.core.key_table import KeyTable

Codes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

PLACE, ROWS, KNOWN, TOTAL = range(4)


@numba.njit(cache=True)
def _average(
    codes: Codes,
    values: Integers,
    valid: Bytes,
    rings: Integers,
    known: Bytes,
    states: Integers,
    out: npt.NDArray[np.float64],
    present: Bytes,
) -> int:  # pragma: no cover
    """Gives where a sum did not fit, -1 if all did."""
    size = rings.shape[1]
    for i in range(len(values)):
        k = codes[i]
        place, rows, count, total = states[k, 0], states[k, 1], states[k, 2], states[k, 3]
        if rows == size:
            if known[k, place]:
                total -= rings[k, place]
                count -= 1
            rows -= 1
        rings[k, place] = values[i]
        known[k, place] = valid[i]
        if valid[i]:
            before = total
            total += values[i]
            if (before ^ total) & (values[i] ^ total) < 0:
                return i
            count += 1
        present[i] = count > 0
        if count > 0:
            out[i] = total / count
        states[k, 0] = place + 1 if place + 1 < size else 0
        states[k, 1], states[k, 2], states[k, 3] = rows + 1, count, total
    return -1


@numba.njit(cache=True)
def _frequency(
    codes: Codes,
    values: Integers,
    valid: Bytes,
    rings: Integers,
    known: Bytes,
    states: Integers,
    counts: Integers,
    factors: Integers,
    out: Integers,
    present: Bytes,
) -> None:  # pragma: no cover
    size = rings.shape[1]
    _, tables, slots = counts.shape
    for i in range(len(values)):
        k = codes[i]
        place, rows = states[k, 0], states[k, 1]
        if rows == size:
            if known[k, place]:
                for table in range(tables):
                    counts[k, table, rings[k, place] * factors[table] % slots] -= 1
            rows -= 1
        rings[k, place] = values[i]
        known[k, place] = valid[i]
        present[i] = valid[i]
        if valid[i]:
            least = np.int64(2**62)
            for table in range(tables):
                slot = values[i] * factors[table] % slots
                counts[k, table, slot] += 1
                least = min(least, counts[k, table, slot])
            out[i] = least
        states[k, 0] = place + 1 if place + 1 < size else 0
        states[k, 1] = rows + 1


class ByHand(Kernel):
    """Kernel around the loop; its state chunks are the changed parts of the rings, and their positions."""

    def __init__(self, rows: int) -> None:
        self._size = rows
        self._column, self._keys = Column(pa.int64()), KeyTable()
        self._rings, self._known = np.zeros((0, rows), np.int64), np.zeros((0, rows), np.uint8)
        self._states = np.zeros((0, 4), np.int64)
        self._changed = np.zeros(0, np.int64)

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        codes = self._keys.of(tuples.columns)
        self._reserve(len(self._keys))
        values, valid = self._column.encode(tuples.columns["v"])
        self._changed += np.bincount(codes, minlength=len(self._changed))
        columns = tuples.columns.append_column("r0", self._results(codes, values, valid))
        return Tuples(columns, tuples.time, tuples.origin, tuples.number)

    def _reserve(self, keys: int) -> None:
        more = keys - len(self._states)
        if more > 0:
            self._rings = np.concatenate([self._rings, np.zeros((more, self._size), np.int64)])
            self._known = np.concatenate([self._known, np.zeros((more, self._size), np.uint8)])
            self._states = np.concatenate([self._states, np.zeros((more, 4), np.int64)])
            self._changed = np.concatenate([self._changed, np.zeros(more, np.int64)])

    @abstractmethod
    def _results(self, codes: Codes, values: Integers, valid: Bytes) -> pa.Array: ...

    def snapshot(self) -> Change:
        touched = np.flatnonzero(self._changed)
        counts = np.minimum(self._changed[touched], self._size)
        whose = np.repeat(touched, counts)
        back = np.arange(len(whose)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = (self._states[whose, PLACE] - 1 - back) % self._size
        rings = {
            "place": places,
            "v": self._column.decode(self._rings[whose, places], self._known[whose, places]),
        }
        states = {f"s{i}": self._states[touched, i] for i in range(4)}
        self._changed[:] = 0
        return Change(
            {
                "rings": pa.table({**self._keys.table(whose), **rings}),
                "states": pa.table({**self._keys.table(touched), **states}),
            },
            (),
            {},
        )

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        codes = self._keys.of(chunks["states"])
        self._reserve(len(self._keys))
        for i in range(4):
            self._states[codes, i] = np.asarray(chunks["states"][f"s{i}"])
        codes, places = self._keys.of(chunks["rings"]), np.asarray(chunks["rings"]["place"])
        self._rings[codes, places], self._known[codes, places] = self._column.encode(chunks["rings"]["v"])

    @property
    def rows(self) -> int:
        return int(self._states[:, ROWS].sum())


class AverageByHand(ByHand):
    def _results(self, codes: Codes, values: Integers, valid: Bytes) -> pa.Array:
        out, present = np.empty(len(values)), np.empty(len(values), np.uint8)
        where = _average(codes, values, valid, self._rings, self._known, self._states, out, present)
        if where >= 0:
            raise OverflowError(f"the sum does not fit at tuple {where}")
        return arrow_buffers.build(pa.float64(), out, present != 0)


class FrequencyByHand(ByHand):
    def __init__(self, rows: int, factors: Integers, slots: int) -> None:
        super().__init__(rows)
        self._factors, self._counts = factors, np.zeros((0, len(factors), slots), np.int64)

    def _reserve(self, keys: int) -> None:
        super()._reserve(keys)
        more = keys - len(self._counts)
        if more > 0:
            self._counts = np.concatenate([self._counts, np.zeros((more, *self._counts.shape[1:]), np.int64)])

    def _results(self, codes: Codes, values: Integers, valid: Bytes) -> pa.Array:
        out, present = np.empty(len(values), np.int64), np.empty(len(values), np.uint8)
        _frequency(
            codes,
            values,
            valid,
            self._rings,
            self._known,
            self._states,
            self._counts,
            self._factors,
            out,
            present,
        )
        return arrow_buffers.build(pa.int64(), out, present != 0)
