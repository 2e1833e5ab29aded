"""Local tables as generated source, and those of one row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.core.value_emitter import Value, either, truth
from millstream.ir.typed_nodes import Table
from millstream.ir.value_kinds import TRUTH, kind_of, zero
from millstream.types import Type

Consume = Callable[[str], None]
"""Writes what is to be done with a row, given the name that has its number."""


@dataclass
class TableRequirements:
    """Requirements of statements on a table, learnt in one draft for the next."""

    hashes: list[tuple[int, ...]] = field(default_factory=list)
    nullable: set[int] = field(default_factory=set)
    """Columns that a NULL may get into: until one is seen on its way there is none."""
    ordered: list[int] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    assigned: set[int] = field(default_factory=set)
    """Columns of a table of one row that get another value."""

    def hash(self, columns: tuple[int, ...]) -> int:
        return _number(self.hashes, columns)

    def tree(self, column: int) -> int:
        return _number(self.ordered, column)

    def count(self, column: int) -> None:
        _number(self.counted, column)

    @property
    def size(self) -> int:
        columns = len(self.ordered) + len(self.counted) + len(self.nullable) + len(self.assigned)
        return len(self.hashes) + columns

    def certain(self, columns: int) -> tuple[int, ...]:
        """Return the columns that have no NULLs."""
        return tuple(index for index in range(columns) if index not in self.nullable)


def _number(known: list[Any], wanted: Any) -> int:
    if wanted not in known:
        known.append(wanted)
    return known.index(wanted)


class LocalTableEmitter(ABC):
    """A table of the instance ``k``."""

    def __init__(
        self, table: Table, prefix: str, writer: SourceWriter, instance: str, needs: TableRequirements
    ) -> None:
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
        """Tell whether one of the columns is NULL in a row; nothing if none can be."""
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


class SingleRow(LocalTableEmitter):
    """At most one row: a value for each instance. The number of the row is that of the instance.

    With ``held`` the values of the instance at hand are in variables, from where it becomes known to where
    it is let go. Several statements, for several tuples in turn, then change registers, and memory once.
    """

    is_there = False
    """True if there surely is one in the current block."""

    def __init__(
        self,
        table: Table,
        prefix: str,
        writer: SourceWriter,
        instance: str,
        needs: TableRequirements,
        *,
        held: bool,
    ) -> None:
        super().__init__(table, prefix, writer, instance, needs)
        self._is_held = held

    def hold(self) -> None:
        for index in range(len(self.table.fields)):
            self._writer.line(f"{self._value(index)} = {super().column(self.instance, index).code}")
            if index in self.needs.nullable:
                self._writer.line(f"{self._null(index)} = {super().null(self.instance, index)}")

    def let_go(self) -> None:
        for index in sorted(self.needs.assigned):
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
        self.needs.assigned.add(index)
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


@runtime_checkable
class CachedVariables(Protocol):
    """Variables of a table while an instance is held."""

    def hold(self) -> None: ...

    def let_go(self) -> None: ...


def if_there(row: str, value: Value, type_: Type) -> Value:
    """Return a column of a row, NULL if the number of the row is -1."""
    null = either(f"{row} < 0", value.null) if value.null else f"({row} < 0)"
    return Value(f"({value.code} if {row} >= 0 else {zero(kind_of(type_))})", null)
