"""Local tables as generated source: how rows are found, added, changed and removed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from millstream.types import Type
from millstream.uda.checked import Table
from millstream.uda.emitting import Value, either, truth
from millstream.uda.kinds import DOUBLE, TRUTH, kind_of, zero
from millstream.uda.program import TableLayout
from millstream.uda.records import ENDS, META, NODE
from millstream.uda.unpacking import larger
from millstream.uda.writer import Writer

Consume = Callable[[str], None]
"""Writes what is to be done with a row, given the name that has its number."""


@dataclass(frozen=True)
class Way:
    """How to go from row to row: texts with a hole for the row, and -1 at the end."""

    first: str
    next: str

    def following(self, row: str) -> str:
        return self.next.replace("{row}", row)


@dataclass
class Needs:
    """What statements want of a table, learnt while they are written: then they are written again."""

    hashes: list[tuple[int, ...]] = field(default_factory=list)
    nullable: set[int] = field(default_factory=set)
    """Columns that a NULL may get into: until one is seen on its way there is none."""
    ordered: list[int] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)

    def hash(self, columns: tuple[int, ...]) -> int:
        return _number(self.hashes, columns)

    def tree(self, column: int) -> int:
        return _number(self.ordered, column)

    def count(self, column: int) -> None:
        _number(self.counted, column)

    @property
    def size(self) -> int:
        return len(self.hashes) + len(self.ordered) + len(self.counted) + len(self.nullable)

    def certain(self, columns: int) -> tuple[int, ...]:
        """Of so many columns those without NULLs."""
        return tuple(index for index in range(columns) if index not in self.nullable)


def _number(known: list[Any], wanted: Any) -> int:
    if wanted not in known:
        known.append(wanted)
    return known.index(wanted)


class TableCode(ABC):
    """A table of the instance ``k``."""

    def __init__(self, table: Table, prefix: str, writer: Writer, instance: str, needs: Needs) -> None:
        self.table, self.prefix, self.instance, self.needs = table, prefix, instance, needs
        self._writer = writer

    def name(self, array: str) -> str:
        return f"{self.prefix}_{array}"

    def column(self, row: str, index: int) -> Value:
        code = f"{self.name(f'c{index}')}[{row}]"
        if kind_of(self.table.fields[index].type) == TRUTH:
            code = f"({code} != 0)"
        return Value(code, self.null(row, index))

    def null(self, row: str, *columns: int) -> str:
        """Whether one of the columns is NULL in a row; nothing if none can be."""
        nulls = [f"{self.name(f'n{index}')}[{row}] != 0" for index in columns if index in self.needs.nullable]
        return f"({' or '.join(nulls)})" if nulls else ""

    def _store(self, row: str, index: int, value: Value) -> None:
        kind = kind_of(self.table.fields[index].type)
        code = f"int({value.code})" if kind == TRUTH else value.code
        self._writer.line(f"{self.name(f'c{index}')}[{row}] = {code}")
        if value.null not in ("", "False"):
            self.needs.nullable.add(index)
        if index in self.needs.nullable:
            self._writer.line(f"{self.name(f'n{index}')}[{row}] = {truth(value.null)}")

    @abstractmethod
    def scan(self, consume: Consume, stop: str = "") -> None:
        """Write a loop over the rows, which may be removed meanwhile."""

    @abstractmethod
    def insert(self, values: Sequence[Value], place: str = "") -> None: ...

    @abstractmethod
    def assign(self, row: str, values: dict[int, Value]) -> None: ...

    @abstractmethod
    def remove(self, row: str) -> None: ...

    @abstractmethod
    def clear(self) -> None: ...

    @property
    @abstractmethod
    def count(self) -> str:
        """How many rows there are."""


class SingleRow(TableCode):
    """At most one row: a value for each instance. The number of the row is that of the instance.

    With ``held`` the values of the instance at hand are in variables, from where it becomes known to where
    it is let go. Several statements for a tuple then change registers, and memory once.
    """

    is_there = False
    """Whether there surely is one in the block at hand."""

    def __init__(
        self, table: Table, prefix: str, writer: Writer, instance: str, needs: Needs, *, held: bool
    ) -> None:
        super().__init__(table, prefix, writer, instance, needs)
        self._is_held = held
        self._changed: set[int] = set()
        """Columns whose variables may have another value than memory."""

    def hold(self) -> None:
        self._changed = set()
        for index in range(len(self.table.fields)):
            self._writer.line(f"{self._value(index)} = {super().column(self.instance, index).code}")
            if index in self.needs.nullable:
                self._writer.line(f"{self._null(index)} = {super().null(self.instance, index)}")

    def let_go(self) -> None:
        for index in sorted(self._changed):
            null = self._null(index) if index in self.needs.nullable else ""
            super()._store(self.instance, index, Value(self._value(index), null))

    def _value(self, index: int) -> str:
        return f"{self.prefix}_v{index}"

    def _null(self, index: int) -> str:
        return f"{self.prefix}_z{index}"

    def column(self, row: str, index: int) -> Value:
        if not self._is_held:
            return super().column(row, index)
        # In brackets, as it is no value of its own: what is computed of it must not change with it.
        return Value(f"({self._value(index)})", self.null(row, index))

    def null(self, row: str, *columns: int) -> str:
        if not self._is_held:
            return super().null(row, *columns)
        nulls = [self._null(index) for index in columns if index in self.needs.nullable]
        return f"({' or '.join(nulls)})" if nulls else ""

    def _store(self, row: str, index: int, value: Value) -> None:
        if not self._is_held:
            super()._store(row, index, value)
            return
        self._changed.add(index)
        self._writer.line(f"{self._value(index)} = {value.code}")
        if value.null not in ("", "False"):
            self.needs.nullable.add(index)
        if index in self.needs.nullable:
            self._writer.line(f"{self._null(index)} = {value.null or 'False'}")

    def scan(self, consume: Consume, stop: str = "") -> None:
        tests = [] if self.is_there else [f"{self.name('rows')}[{self.instance}] != 0"]
        tests += [f"not {stop}"] if stop else []
        with self._writer.deeper(f"if {' and '.join(tests) or 'True'}:"):
            consume(self.instance)

    def insert(self, values: Sequence[Value], place: str = "") -> None:
        for index, value in enumerate(values):
            self._store(self.instance, index, value)
        self._writer.line(f"{self.name('rows')}[{self.instance}] = 1")

    def assign(self, row: str, values: dict[int, Value]) -> None:
        for index, value in values.items():
            self._store(row, index, value)

    def remove(self, row: str) -> None:
        self._writer.line(f"{self.name('rows')}[{row}] = 0")

    def clear(self) -> None:
        self.remove(self.instance)

    @property
    def count(self) -> str:
        return "1" if self.is_there else f"int({self.name('rows')}[{self.instance}])"


class ManyRows(TableCode):
    """Rows of all instances in the same arrays, those of an instance linked in order."""

    def __init__(
        self,
        table: Table,
        prefix: str,
        writer: Writer,
        instance: str,
        needs: Needs,
        *,
        grows: bool,
        placed: bool,
        passing: bool = False,
    ) -> None:
        super().__init__(table, prefix, writer, instance, needs)
        self._grows, self._placed, self._passing = grows, placed, passing

    def scan(self, consume: Consume, stop: str = "") -> None:

        way, row, after = self.order(), self._writer.name("r"), self._writer.name("s")
        self._writer.line(f"{row} = {way.first}")
        more = f" and not {stop}" if stop else ""
        with self._writer.deeper(f"while {row} >= 0{more}:"):
            self._writer.line(f"{after} = {way.following(row)}")
            consume(row)
            self._writer.line(f"{row} = {after}")

    def probe(self, columns: tuple[int, ...], values: Sequence[str], consume: Consume, stop: str) -> None:
        """A loop over the rows whose columns may equal the values; who consumes them must look."""
        way, row = self.chain(columns, values), self._writer.name("r")
        self._writer.line(f"{row} = {way.first}")
        with self._writer.deeper(f"while {row} >= 0:"):
            consume(row)
            if stop:
                with self._writer.deeper(f"if {stop}:"):
                    self._writer.line("break")
            self._writer.line(f"{row} = {way.following(row)}")

    def order(self) -> Way:
        """From row to row in the order of insertion."""
        return Way(f"{self.name('head')}[{self.instance}]", f"{self.name('next')}[{{row}}]")

    def chain(self, columns: tuple[int, ...], values: Sequence[str]) -> Way:
        """From row to row of those whose columns may equal the values."""
        index = self.needs.hash(columns)
        hashed = f"chain_code({self._hashed(columns, values)})"
        code = self._writer.recall(hashed)
        if code is None:
            code = self._writer.name("h")
            self._writer.line(f"{code} = {hashed}")
            if all(value.isidentifier() for value in values):
                self._writer.remember(hashed, code)
        heads, chain = self.name(f"heads{index}"), self.name(f"chain{index}")
        return Way(
            f"chain_first({code}, {self.instance}, {heads}, {chain})",
            f"chain_next({{row}}, {code}, {self.instance}, {chain})",
        )

    def walk(self, column: int, ascending: bool, consume: Callable[[str, str], None], stop: str) -> None:
        """A loop along the order of a column; what is consumed gets a name to set when it is over."""
        row, after, over = (self._writer.name(prefix) for prefix in ("r", "s", "e"))
        nodes, side = self.name(f"nodes{self.needs.tree(column)}"), NODE["right" if ascending else "left"]
        self._writer.line(f"{row} = {self._end(column, ascending)}")
        self._writer.line(f"{over} = False")
        more = f" and not {stop}" if stop else ""
        with self._writer.deeper(f"while {row} >= 0 and not {over}{more}:"):
            self._writer.line(f"{after} = tree_beside({row}, {side}, {nodes})")
            consume(row, over)
            self._writer.line(f"{row} = {after}")

    def end(self, column: int, ascending: bool) -> str:
        """The row with the least or the greatest value of a column, -1 if there is none."""
        name = self._writer.name("r")
        self._writer.line(f"{name} = {self._end(column, ascending)}")
        return name

    def _end(self, column: int, ascending: bool) -> str:
        ends = self.name(f"ends{self.needs.tree(column)}")
        return f"{ends}[{len(ENDS)} * {self.instance} + {ENDS['first' if ascending else 'last']}]"

    # ------------------------------------------------------------ changes

    def insert(self, values: Sequence[Value], place: str = "") -> None:
        writer = self._writer
        if self._grows:
            self._grow()
        row = writer.name("r")
        names = ("meta", "id", "owner", "head", "tail", "count", "next", "prev")
        writer.line(f"{row} = new_row({self.instance}, {', '.join(map(self.name, names))})")
        for index, value in enumerate(values):
            self._store(row, index, value)
        if place:
            writer.line(f"{self.name('place')}[{row}] = {place}")
        self._touch(row)
        for index in range(len(self.table.fields)):
            self._count(row, index, "+")
        for number in range(len(self.needs.hashes)):
            self._add_to_hash(row, number)
        for number in range(len(self.needs.ordered)):
            self._add_to_tree(row, number)

    def expire(self, leaving: Consume) -> None:
        """Of a window: what lies before the bound leaves, and ``leaving`` writes what is done before."""
        writer, head = self._writer, f"{self.name('head')}[{self.instance}]"
        writer.lines("mark = out", f"row = {head}")
        with writer.deeper(f"while row >= 0 and {self.name('place')}[row] < bound:"):
            leaving("row")
            self.leave("row")
            writer.lines("out = mark", f"row = {head}")

    def leave(self, row: str) -> None:
        """The first row leaves, unless the body has deleted it."""
        with self._writer.deeper(f"if {self.name('head')}[{self.instance}] == {row}:"):
            self.remove(row)

    def _grow(self) -> None:
        meta = self.name("meta")
        changed = (array for array in self.layout().arrays() if array.per in ("row", "bucket"))
        arrays = {self.name(array.name): array.dtype for array in changed}
        size, free, room = (f"{meta}[{META[name]}]" for name in ("size", "free", "room"))
        with self._writer.deeper(f"if {free} < 0 and {size} == {room}:"):
            self._writer.lines(*larger(arrays))

    def layout(self) -> TableLayout:
        return TableLayout(
            self.table.name,
            self.prefix,
            self.table.fields,
            False,
            tuple(self.needs.hashes),
            tuple(self.needs.ordered),
            tuple(self.needs.counted),
            None,
            self._placed,
            self._passing,
            certain=self.needs.certain(len(self.table.fields)),
        )

    def assign(self, row: str, values: dict[int, Value]) -> None:
        hashes = [n for n, columns in enumerate(self.needs.hashes) if set(columns) & set(values)]
        trees = [n for n, column in enumerate(self.needs.ordered) if column in values]
        for number in hashes:
            self._remove_from_hash(row, number)
        for number in trees:
            self._remove_from_tree(row, number)
        for index, value in values.items():
            self._count(row, index, "-")
            self._store(row, index, value)
            self._count(row, index, "+")
        self._touch(row)
        for number in hashes:
            self._add_to_hash(row, number)
        for number in trees:
            self._add_to_tree(row, number)

    def remove(self, row: str) -> None:
        for number in range(len(self.needs.hashes)):
            self._remove_from_hash(row, number)
        for number in range(len(self.needs.ordered)):
            self._remove_from_tree(row, number)
        for index in range(len(self.table.fields)):
            self._count(row, index, "-")
        names = ("meta", "id", "mark", "gone", "head", "tail", "count", "next", "prev")
        links = ", ".join(self.name(n) for n in names)
        self._writer.line(f"drop_row({row}, {self.instance}, {links})")

    def clear(self) -> None:
        self.scan(self.remove)

    def _touch(self, row: str) -> None:
        if not self._passing:
            names = ", ".join(self.name(n) for n in ("meta", "mark", "touched"))
            self._writer.line(f"touch_row({row}, {names})")

    def _count(self, row: str, index: int, sign: str) -> None:
        if index in self.needs.counted:
            with self._known(row, index):
                self._writer.line(f"{self.name(f'known{index}')}[{self.instance}] {sign}= 1")

    def _known(self, row: str, *columns: int) -> AbstractContextManager[None]:
        """A block for a row that has values in all of the columns."""
        null = self.null(row, *columns)
        return self._writer.deeper(f"if not {null}:") if null else nullcontext()

    # ------------------------------------------------------------ indexes

    def _hashed(self, columns: tuple[int, ...], values: Sequence[str]) -> str:
        code = f"hash_start({self.instance})"
        for column, value in zip(columns, values, strict=True):
            kind = kind_of(self.table.fields[column].type)
            function = "hash_double" if kind == DOUBLE else "hash_integer"
            number = f"int({value})" if kind == TRUTH else value
            code = f"{function}({code}, {number})"
        return code

    def _add_to_hash(self, row: str, number: int) -> None:
        columns = self.needs.hashes[number]
        values = [f"{self.name(f'c{column}')}[{row}]" for column in columns]
        arrays = self._hash_arrays(number)
        code = self._writer.name("h")
        with self._known(row, *columns):
            self._writer.line(f"{code} = chain_code({self._hashed(columns, values)})")
            self._writer.line(f"chain_add({row}, {self.instance}, {code}, {arrays}, {self.name('id')})")

    def _remove_from_hash(self, row: str, number: int) -> None:
        with self._known(row, *self.needs.hashes[number]):
            self._writer.line(f"chain_remove({row}, {self._hash_arrays(number)})")

    def _hash_arrays(self, number: int) -> str:
        return ", ".join(self.name(f"{n}{number}") for n in ("heads", "tails", "chain"))

    def _add_to_tree(self, row: str, number: int) -> None:
        self._change_tree("tree_add", row, number, f"c{self.needs.ordered[number]}", "id")

    def _remove_from_tree(self, row: str, number: int) -> None:
        self._change_tree("tree_remove", row, number)

    def _change_tree(self, function: str, row: str, number: int, *known: str) -> None:
        arrays = ", ".join(self.name(n) for n in (*known, f"ends{number}", f"nodes{number}"))
        with self._known(row, self.needs.ordered[number]):
            self._writer.line(f"{function}({row}, {self.instance}, {arrays})")

    @property
    def count(self) -> str:
        return f"{self.name('count')}[{self.instance}]"

    def known(self, column: int) -> str:
        """How many rows have a value in a column."""
        self.needs.count(column)
        return f"{self.name(f'known{column}')}[{self.instance}]"


def if_there(row: str, value: Value, type_: Type) -> Value:
    """A column of a row that there may not be: then its number is -1, and there is nothing to look at."""
    null = either(f"{row} < 0", value.null) if value.null else f"({row} < 0)"
    return Value(f"({value.code} if {row} >= 0 else {zero(kind_of(type_))})", null)
