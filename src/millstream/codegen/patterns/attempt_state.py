"""The state of a matcher as columns of tables: of partitions, and of attempts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.core.value_emitter import Value
from millstream.ir.value_kinds import TRUTH, WORD, kind_of
from millstream.types import BIGINT, Field, Type


@dataclass(frozen=True)
class StateColumn:
    """A column of a table, as generated source reads and writes it."""

    prefix: str
    index: int
    type: Type

    def of(self, row: str) -> str:
        """Return the source of its value."""
        return f"{self.prefix}_c{self.index}[{row}]"

    def null_of(self, row: str) -> str:
        """Return the source of its NULL mark (1 for NULL)."""
        return f"{self.prefix}_n{self.index}[{row}]"

    def at(self, row: str) -> Value:
        code = self.of(row)
        return Value(f"({code} != 0)" if kind_of(self.type) == TRUTH else code, f"({self.null_of(row)} != 0)")

    def put(self, writer: SourceWriter, row: str, value: Value) -> None:
        code = f"int({value.code})" if kind_of(self.type) == TRUTH else value.code
        writer.lines(f"{self.of(row)} = {code}", f"{self.null_of(row)} = {null_number(value)}")

    def same(self, row: str, other: str) -> str:
        """Return the test that two rows have equal values."""
        same_null = f"{self.null_of(row)} == {self.null_of(other)}"
        return f"{self.of(row)} == {self.of(other)} and {same_null}"


def null_number(value: Value) -> str:
    """Return the source of the NULL mark of a value."""
    return {"": "0", "True": "1", "False": "0"}.get(value.null, f"1 if {value.null} else 0")


@dataclass
class StateColumns:
    """The columns of a table, by their contents.

    Columns are added while the source is generated; then it is generated again.
    """

    prefix: str
    fields: dict[Hashable, Field] = field(default_factory=dict)

    def cell(self, what: Hashable, type_: Type = BIGINT) -> StateColumn:
        known = self.fields.setdefault(what, Field(_text(what), type_))
        return StateColumn(self.prefix, list(self.fields).index(what), known.type)

    def words(self) -> list[StateColumn]:
        """Return the columns with codes of strings."""
        return [self.cell(what) for what, known in self.fields.items() if kind_of(known.type) == WORD]


def _text(what: Hashable) -> str:
    return "_".join(map(str, what)) if isinstance(what, tuple) else str(what)


@dataclass
class AttemptRequirements:
    """The requirements of a pattern: columns of tuples, their distances back, and state columns."""

    columns: list[int] = field(default_factory=list)
    back: dict[int, int] = field(default_factory=dict)
    attempt: StateColumns = field(default_factory=lambda: StateColumns("at"))
    partition: StateColumns = field(default_factory=lambda: StateColumns("pt"))

    @property
    def size(self) -> int:
        fields = len(self.attempt.fields) + len(self.partition.fields)
        return len(self.columns) + sum(self.back.values()) + fields

    def column(self, index: int) -> int:
        """Return the number of a column among those that are read."""
        if index not in self.columns:
            self.columns.append(index)
        return self.columns.index(index)
