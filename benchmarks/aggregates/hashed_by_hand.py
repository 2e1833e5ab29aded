"""Frequencies by hand with hash tables, as the query means its tables: the number of slots is unknown.

The loop with arrays knows that slots are less than 1,021, and that a partition has all of them. This one
finds the counter of a slot in a hash table, and enters it where there is none, as the tables of the aggregate
do. It looks once for a slot where the statements of the aggregate look for it again and again.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.aggregates.by_hand import ByHand, Bytes, Codes, Integers
from millstream.kernels.core import arrow_buffers

TABLES = 3
EMPTY = -1


@numba.njit(cache=True)
def _find(k, slot, owners, slots):  # type: ignore[no-untyped-def] # pragma: no cover
    """The place of a counter, or where it would be."""
    mask = len(owners) - 1
    mixed = (slot ^ k * -7046029254386353131) * -4417276706812531889
    at = (mixed ^ (mixed >> 32)) & mask
    while owners[at] != EMPTY and (owners[at] != k or slots[at] != slot):
        at = (at + 1) & mask
    return at


@numba.njit(cache=True)
def _frequency(
    codes: Codes,
    values: Integers,
    valid: Bytes,
    rings: Integers,
    known: Bytes,
    states: Integers,
    owners: Integers,
    slots: Integers,
    counts: Integers,
    factors: Integers,
    modulus: int,
    out: Integers,
    present: Bytes,
) -> None:  # pragma: no cover
    size = rings.shape[1]
    for i in range(len(values)):
        k = codes[i]
        place, rows = states[k, 0], states[k, 1]
        if rows == size:
            if known[k, place]:
                for table in range(len(factors)):
                    slot = rings[k, place] * factors[table] % modulus
                    counts[table, _find(k, slot, owners[table], slots[table])] -= 1
            rows -= 1
        rings[k, place] = values[i]
        known[k, place] = valid[i]
        present[i] = valid[i]
        if valid[i]:
            least = np.int64(2**62)
            for table in range(len(factors)):
                slot = values[i] * factors[table] % modulus
                at = _find(k, slot, owners[table], slots[table])
                owners[table, at], slots[table, at] = k, slot
                counts[table, at] += 1
                least = min(least, counts[table, at])
            out[i] = least
        states[k, 0] = place + 1 if place + 1 < size else 0
        states[k, 1] = rows + 1


class FrequencyWithHashTables(ByHand):
    def __init__(self, rows: int, factors: Integers, modulus: int) -> None:
        super().__init__(rows)
        self._factors, self._modulus = factors, modulus
        self._owners, self._slots, self._counts = _tables(16)

    def _make_room(self) -> None:
        """At least half of the places stay free."""
        used = int((self._owners != EMPTY).sum(axis=1).max())
        if 4 * used <= self._owners.shape[1]:
            return
        before = self._owners, self._slots, self._counts
        self._owners, self._slots, self._counts = _tables(8 * used)
        for table, (owners, slots, counts) in enumerate(zip(*before, strict=True)):
            for old in np.flatnonzero(owners != EMPTY):
                at = _find(owners[old], slots[old], self._owners[table], self._slots[table])
                self._owners[table, at], self._slots[table, at] = owners[old], slots[old]
                self._counts[table, at] = counts[old]

    def _results(self, codes: Codes, values: Integers, valid: Bytes) -> pa.Array:
        out, present = np.empty(len(values), np.int64), np.empty(len(values), np.uint8)
        done = 0
        while done < len(values):
            # So many tuples cannot fill the tables.
            self._make_room()
            used = int((self._owners != EMPTY).sum(axis=1).max())
            part = slice(done, done + max(self._owners.shape[1] // 2 - used, 1))
            _frequency(
                codes[part],
                values[part],
                valid[part],
                self._rings,
                self._known,
                self._states,
                self._owners,
                self._slots,
                self._counts,
                self._factors,
                self._modulus,
                out[part],
                present[part],
            )
            done = part.stop
        return arrow_buffers.build(pa.int64(), out, present != 0)


def _tables(least: int) -> tuple[Integers, Integers, npt.NDArray[np.int64]]:
    size = 1 << int(least).bit_length()
    return tuple(np.full((TABLES, size), fill, np.int64) for fill in (EMPTY, 0, 0))  # type: ignore[return-value]
