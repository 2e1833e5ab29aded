"""The local tables of aggregates, of all instances of a shard: arrays for programs, rows for the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.ir.value_kinds import DOUBLE, kind_of
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.buffers import NO_INTEGERS, Array, Codes, Integers, frozen
from millstream.kernels.core.column_codec import Column
from millstream.kernels.udas import local_table_links as links
from millstream.program.jit_registry import COMPILED
from millstream.program.program import TableLayout
from millstream.program.row_lists import CHANGED, FREE, GONE, META, NEXT_ID, ROOM, SIZE, TOUCHED, WRITTEN
from millstream.types import Field

ID, PLACE = "__ms_id", "__ms_place"

Columns = Callable[[pa.DataType], Column]
"""The dictionary of a type, which all tables of an aggregate share."""


def written(values: Array, nulls: Array, column: Field, columns: Columns) -> pa.Array:
    """Values of a program as Arrow has them; nobody may change them afterwards."""
    type_ = arrow_type(column.type)
    if pa.types.is_int64(type_) or pa.types.is_float64(type_) or pa.types.is_timestamp(type_):
        return arrow_buffers.build(type_, values, nulls == 0)
    bits = values.view(np.int64) if kind_of(column.type) == DOUBLE else values
    return columns(type_).decode(bits, nulls == 0)


def read(array: pa.ChunkedArray | pa.Array, column: Field, columns: Columns) -> tuple[Array, Array]:
    """Values as programs have them, and 1 where there is none."""
    bits, valid = columns(arrow_type(column.type)).encode(array)
    values = bits.view(np.float64) if kind_of(column.type) == DOUBLE else bits
    return values, valid ^ 1


class LocalTableState:
    """The arrays of one table."""

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
        """Of a queue: the number of the first row that has not been written down."""
        self.stored_firsts = NO_INTEGERS
        """Of a queue that is read back: the number of the first row that each instance had."""

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def named(self) -> dict[str, Array]:
        """The arrays by the names that programs have for them."""
        return {f"{self.layout.prefix}_{name}": array for name, array in self.arrays.items()}

    def nulls(self, column: int) -> Array:
        """For each row, or instance: 1 where there is no value."""
        if column in self.layout.certain:
            return np.zeros(len(self[f"c{column}"]), np.uint8)
        return self[f"n{column}"]

    def put(self, column: int, where: Any, stored: pa.ChunkedArray | pa.Array, columns: Columns) -> None:
        """Values that were written down, back to their rows or instances."""
        values, nulls = read(stored, self.layout.fields[column], columns)
        self[f"c{column}"][where] = values
        if column not in self.layout.certain:
            self[f"n{column}"][where] = nulls

    @property
    def is_window(self) -> bool:
        return self.layout.placed

    @property
    def next_id(self) -> int:
        """The number that the next row will have."""
        return int(self["meta"][NEXT_ID])

    @next_id.setter
    def next_id(self, number: int) -> None:
        self["meta"][NEXT_ID] = number

    @property
    def size(self) -> int:
        """How many rows there have been room for so far."""
        return 0 if self.layout.single else int(self["meta"][SIZE])

    @property
    def live(self) -> Integers:
        """The rows that there are, in the order in which they were inserted."""
        if self.layout.queue:
            return self._staying(0)
        ids = self["id"][: self.size]
        rows = np.flatnonzero(ids >= 0)
        return rows[np.argsort(ids[rows], kind="stable")]

    def _staying(self, number: int) -> Integers:
        """Of the rows of a queue with that number and later ones, those that have not left."""
        if self.layout.ring:  # the place of whatever left has been taken
            rows: Integers = np.flatnonzero(self["id"][: self.size] >= number)
        else:
            ids = self["id"][: self.size]
            rows = np.flatnonzero((ids >= number) & (ids >= self.firsts()[self["owner"][: self.size]]))
        return rows[np.argsort(self["id"][rows], kind="stable")]

    def firsts(self) -> Integers:
        """Of a queue, by instance: the number of the first row, or a number that none has yet."""
        heads = self["head"]
        return np.where(heads >= 0, self["id"][heads], self.next_id)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.size if self.layout.ring else int(self["count"].sum())

    def places(self) -> tuple[Integers, Codes]:
        """Where the tuples of windows are, and to which instances they belong."""
        rows = self.live
        return self["place"][rows], self["owner"][rows]

    def rows_of(self, numbers: Integers) -> Codes:
        """The rows with these numbers, -1 for those that are gone."""
        rows = self.live
        found = np.searchsorted(self["id"][rows], numbers)
        known = found < len(rows)
        known[known] = self["id"][rows[found[known]]] == numbers[known]
        out = np.full(len(numbers), -1, np.int32)
        out[known] = rows[found[known]]
        return out

    def reserve(self, rows: int, instances: int) -> None:
        """Make room for so many more rows, and for so many instances."""
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
                    # Whoever makes a row fills it. Memory that has not been touched costs nothing.
                    used, grown = self.size * array.width, np.zeros(room, array.dtype)
                grown[:used] = have[:used]
                self.arrays[array.name] = grown

    def _link(self, owners: Codes) -> None:
        links.link(owners, self["head"], self["tail"], self["next"], self.arrays.get("prev"))
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
            codes = links.hashed(owners, [self[f"c{column}"][own] for column in columns])
            chain = self[f"chain{i}"]
            self.arrays[f"heads{i}"], self.arrays[f"tails{i}"] = links.chains(
                own, owners, codes, chain, self._buckets
            )

    # ------------------------------------------------------------ state

    def changed(self) -> tuple[Integers, Integers]:
        """The rows that have changed since this was asked before, and the numbers of those that are gone."""
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
        """Rows with their numbers and the keys of their instances."""
        content: dict[str, Any] = {ID: pa.array(self["id"][rows])}
        content |= key(self["owner"][rows])
        if "place" in self.arrays:
            content[PLACE] = pa.array(self["place"][rows])
        for i, column in enumerate(self.layout.fields):
            content[f"c{i}"] = written(self[f"c{i}"][rows], self.nulls(i)[rows], column, columns)
        return pa.table(content)

    def restore(self, table: pa.Table, owners: Codes, instances: int, columns: Columns) -> None:
        """Become what those rows were, in the order of their numbers."""
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
