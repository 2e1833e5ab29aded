"""Local tables of UDAs, of all instances of a shard: arrays for programs, rows for the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.ir.value_kinds import DOUBLE, kind_of
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Codes, Doubles, Integers, frozen
from millstream.kernels.core.column_codec import Column
from millstream.program.jit_registry import COMPILED
from millstream.program.program import TableLayout
from millstream.program.row_lists import (
    AFTER,
    BEFORE,
    BUCKETS,
    CHAINED,
    CHAINS,
    CHANGED,
    CODE,
    FREE,
    GONE,
    LINK,
    META,
    NEXT_ID,
    OWNER,
    ROOM,
    SIZE,
    TOUCHED,
    USED,
    WRITTEN,
)
from millstream.types import Field

ID, PLACE = "__ms_id", "__ms_place"

_START, _STEP = np.int64(-7046029254386353131), np.int64(-4417276706812531889)
_NAN = np.int64(9221120237041090560)
_FEW = 16

Columns = Callable[[pa.DataType], Column]
"""Dictionary of a type, shared by all tables of a UDA."""


def written(values: Array, nulls: Array, column: Field, columns: Columns) -> pa.Array:
    """Return values of a program as an Arrow array; they must not change afterwards."""
    type_ = arrow_type(column.type)
    if pa.types.is_int64(type_) or pa.types.is_float64(type_) or pa.types.is_timestamp(type_):
        return arrow_buffers.build(type_, values, nulls == 0)
    bits = values.view(np.int64) if kind_of(column.type) == DOUBLE else values
    return columns(type_).decode(bits, nulls == 0)


def read(array: pa.ChunkedArray | pa.Array, column: Field, columns: Columns) -> tuple[Array, Array]:
    """Return values in the form of programs, and 1 where there is none."""
    bits, valid = columns(arrow_type(column.type)).encode(array)
    values = bits.view(np.float64) if kind_of(column.type) == DOUBLE else bits
    return values, valid ^ 1


class LocalTableState:
    """Arrays of one table."""

    def __init__(self, layout: TableLayout) -> None:
        self.layout = layout
        self.arrays: dict[str, Array] = {}
        self._rows = self._instances = 0
        self._buckets = 16
        for array in layout.arrays():
            size = META if array.per == "meta" else array.width
            self.arrays[array.name] = np.full(size, array.fill, array.dtype)
        if not layout.single:
            self.arrays["meta"][FREE], self.arrays["meta"][ROOM] = -1, 1
            self.arrays["id"][:] = -1
        if layout.hashes:
            self._chain_again()
        self._written = 0
        """Number of the first row of a queue that has not been persisted."""
        self.stored_firsts = NO_INTEGERS
        """Number of the first row of each instance of a restored queue."""

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def named(self) -> dict[str, Array]:
        """Return the arrays by the names that programs have for them."""
        return {f"{self.layout.prefix}_{name}": array for name, array in self.arrays.items()}

    def nulls(self, column: int) -> Array:
        """Return 1 for each row, or instance, without a value."""
        if column in self.layout.certain:
            return np.zeros(len(self[f"c{column}"]), np.uint8)
        return self[f"n{column}"]

    def put(self, column: int, where: Any, stored: pa.ChunkedArray | pa.Array, columns: Columns) -> None:
        """Write persisted values to their rows or instances."""
        values, nulls = read(stored, self.layout.fields[column], columns)
        self[f"c{column}"][where] = values
        if column not in self.layout.certain:
            self[f"n{column}"][where] = nulls

    @property
    def is_window(self) -> bool:
        return self.layout.placed

    @property
    def next_id(self) -> int:
        """Number of the next row."""
        return int(self["meta"][NEXT_ID])

    @next_id.setter
    def next_id(self, number: int) -> None:
        self["meta"][NEXT_ID] = number

    @property
    def size(self) -> int:
        """Number of rows that there has been room for so far."""
        return 0 if self.layout.single else int(self["meta"][SIZE])

    @property
    def live(self) -> Integers:
        """Rows that exist, in the order in which they were inserted."""
        if self.layout.queue:
            return self._staying(0)
        ids = self["id"][: self.size]
        rows = np.flatnonzero(ids >= 0)
        return rows[np.argsort(ids[rows], kind="stable")]

    def _staying(self, number: int) -> Integers:
        """Return the rows of a queue from a number on that have not left."""
        if self.layout.ring:  # the place of whatever left has been taken
            rows: Integers = np.flatnonzero(self["id"][: self.size] >= number)
        else:
            ids = self["id"][: self.size]
            rows = np.flatnonzero((ids >= number) & (ids >= self.firsts()[self["owner"][: self.size]]))
        return rows[np.argsort(self["id"][rows], kind="stable")]

    def firsts(self) -> Integers:
        """Return the number of the first row of each instance of a queue, or a number that none has yet."""
        heads = self["head"]
        return np.where(heads >= 0, self["id"][heads], self.next_id)

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.size if self.layout.ring else int(self["count"].sum())

    def places(self) -> tuple[Integers, Codes]:
        """Return the places of the tuples of windows, and their instances."""
        rows = self.live
        return self["place"][rows], self["owner"][rows]

    def rows_of(self, numbers: Integers) -> Codes:
        """Return the rows with these numbers, -1 for those that are gone."""
        rows = self.live
        found = np.searchsorted(self["id"][rows], numbers)
        known = found < len(rows)
        known[known] = self["id"][rows[found[known]]] == numbers[known]
        out = np.full(len(numbers), -1, np.int32)
        out[known] = rows[found[known]]
        return out

    def reserve(self, rows: int, instances: int) -> None:
        """Make room for more rows and instances."""
        self._grow("instance", instances)
        if not self.layout.single:
            self._grow("row", self.size + rows + 1)
            self["meta"][ROOM] = len(self["next"])
            if self.size + rows > self._buckets and self.layout.hashes:
                self._buckets = 1 << int(self.size + rows).bit_length()
                self._chain_again()

    def _grow(self, per: str, size: int) -> None:
        for array in self.layout.arrays():
            have = self.arrays[array.name]
            if array.per == per and size * array.width > len(have):
                room = max(size * array.width, 2 * len(have))
                if per == "instance":
                    used, grown = len(have), np.full(room, array.fill, array.dtype)
                else:
                    # A new row is filled by its creator. Memory that has not been touched costs nothing.
                    used, grown = self.size * array.width, np.zeros(room, array.dtype)
                grown[:used] = have[:used]
                self.arrays[array.name] = grown

    def _link(self, owners: Codes) -> None:
        _link(owners, self["head"], self["tail"], self["next"], self.arrays.get("prev"))
        if not self.layout.ring:
            np.add.at(self["count"], owners, 1)

    def _chain_again(self) -> None:
        rows = self.live
        for i, columns in enumerate(self.layout.hashes):
            known = np.ones(len(rows), np.bool_)
            for column in columns:
                known &= self.nulls(column)[rows] == 0
            own = rows[known]
            owners = self["owner"][own]
            codes = _hashed(owners, [self[f"c{column}"][own] for column in columns])
            chain = self[f"chain{i}"]
            self.arrays[f"heads{i}"], self.arrays[f"tails{i}"] = _chains(
                own, owners, codes, chain, self._buckets
            )

    # ------------------------------------------------------------ state

    def changed(self) -> tuple[Integers, Integers]:
        """Return the rows that have changed since the last call, and the numbers of those that are gone."""
        meta = self["meta"]
        if self.layout.queue:
            rows = self._staying(self._written)
            self._written = self.next_id
            return rows, NO_INTEGERS
        rows = self["touched"][: meta[TOUCHED]].astype(np.int64)
        self["mark"][rows] &= ~np.uint8(CHANGED)
        rows = rows[self["id"][rows] >= 0]
        self["mark"][rows] |= WRITTEN
        gone = self["gone"][: meta[GONE]].copy()
        meta[TOUCHED] = meta[GONE] = 0
        return rows, gone

    def table(
        self, rows: Integers, key: Callable[[Codes], Mapping[str, pa.Array]], columns: Columns
    ) -> pa.Table:
        """Return rows with their numbers and the keys of their instances."""
        content: dict[str, Any] = {ID: pa.array(self["id"][rows])}
        content |= key(self["owner"][rows])
        if "place" in self.arrays:
            content[PLACE] = pa.array(self["place"][rows])
        for i, column in enumerate(self.layout.fields):
            content[f"c{i}"] = written(self[f"c{i}"][rows], self.nulls(i)[rows], column, columns)
        return pa.table(content)

    def restore(self, table: pa.Table, owners: Codes, instances: int, columns: Columns) -> None:
        """Restore rows, in the order of their numbers."""
        count = table.num_rows
        self.reserve(count, instances)
        rows = np.arange(count)
        self["id"][:count] = np.asarray(table[ID])
        self["owner"][:count] = owners
        if "place" in self.arrays:
            self["place"][:count] = np.asarray(table[PLACE])
        for i in range(len(self.layout.fields)):
            self.put(i, slice(count), table[f"c{i}"], columns)
        meta = self["meta"]
        meta[SIZE] = count
        self.next_id = int(self["id"][count - 1]) + 1 if count else 0
        self._written = self.next_id
        if not self.layout.queue:
            self["mark"][:count] = WRITTEN
        self._link(owners)
        for i in self.layout.counted:
            np.add.at(self[f"known{i}"], owners, (self.nulls(i)[:count] == 0).astype(np.int64))
        if self.layout.hashes:
            self._chain_again()
        for i, index in enumerate(self.layout.ordered):
            known = rows[self.nulls(index)[:count] == 0]
            COMPILED["plant_rows"](
                known, frozen(owners), self[f"c{index}"], self["id"], self[f"ends{i}"], self[f"nodes{i}"]
            )


# ---------------------------------------------------------------- links of many rows at once
# Programs insert rows one by one, with compiled helpers (``program.row_lists``, ``program.spark_hash``).
# Loops over arrays that call them would have to be compiled too, which took a second before the first
# program of a machine could run. So this is NumPy.


def _link(owners: Codes, head: Codes, tail: Codes, following: Codes, previous: Codes | None = None) -> None:
    """Link the rows of each instance in the order of their numbers, given the instance of each."""
    rows = np.argsort(owners, kind="stable").astype(np.int32)
    _connect(rows, owners[rows], head, tail, following, previous)


def _connect(
    rows: Codes, lists: Array, head: Codes, tail: Codes, following: Codes, previous: Codes | None
) -> None:
    """Link neighbouring rows that are of the same list."""
    if not len(rows):
        return
    is_last = np.append(lists[1:] != lists[:-1], True)
    is_first = np.roll(is_last, 1)
    following[rows] = np.where(is_last, -1, np.roll(rows, -1))
    if previous is not None:
        previous[rows] = np.where(is_first, -1, np.roll(rows, 1))
    head[lists[is_first]] = rows[is_first]
    tail[lists[is_last]] = rows[is_last]


def _hashed(owners: Codes, columns: list[Integers | Doubles]) -> Integers:
    """Return the hashes of rows, as programs compute them."""
    codes = owners.astype(np.int64) * _START
    for values in columns:
        mixed = (codes ^ _bits(values)) * _STEP
        codes = mixed ^ (mixed >> np.int64(32))
    return codes & np.int64(0x7FFFFFFF)


def _bits(values: Integers | Doubles) -> Integers:
    """Return the bits of doubles; there is one NaN and one zero."""
    if values.dtype != np.float64:
        return values.astype(np.int64, copy=False)
    return np.where(np.isnan(values), _NAN, (values + 0.0).view(np.int64))


def _chains(
    rows: Integers, owners: Codes, codes: Integers, chain: Codes, buckets: int
) -> tuple[Codes, Codes]:
    """Add rows, in the order in which they were inserted, to chains by their hashes.

    Return heads and tails of all chains, of which only some are used while there are few rows: few are near
    each other in memory, whatever there is room for.
    """
    used = min(buckets, max(_FEW, 1 << len(rows).bit_length()))
    heads, tails = np.empty(CHAINS + buckets, np.int32), np.empty(CHAINS + buckets, np.int32)
    heads[: CHAINS + used] = tails[: CHAINS + used] = -1
    heads[USED], heads[BUCKETS], tails[CHAINED] = used - 1, buckets, len(rows)
    links = chain.reshape(-1, LINK)
    links[rows, CODE], links[rows, OWNER] = codes, owners
    own = codes & (used - 1)
    order = np.argsort(own, kind="stable")
    after, before = links[:, AFTER], links[:, BEFORE]
    _connect(rows[order].astype(np.int32), own[order], heads[CHAINS:], tails[CHAINS:], after, before)
    return heads, tails
