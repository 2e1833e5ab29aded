"""Rows that a hash index has found are remembered: the next statement mostly looks for the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.core.value_emitter import Value, is_simple


@dataclass(frozen=True)
class LookupKey:
    """What is looked for in a table: rows with these values in these columns."""

    table: str
    columns: tuple[int, ...]
    values: tuple[Value, ...]

    @property
    def can_be_known(self) -> bool:
        """Whether the values stay what they are where they are written again."""
        return all(is_simple(value.code) for value in self.values)

    def is_in(self, row: Sequence[Value]) -> bool:
        """Whether a row surely has these values, or NULLs."""
        return all(row[c].code == v.code for c, v in zip(self.columns, self.values, strict=True))

    def is_apart_from(self, row: Sequence[Value]) -> bool:
        """Whether a row surely has others."""
        pairs = ((row[c].code, v.code) for c, v in zip(self.columns, self.values, strict=True))
        return any(a.isdigit() and b.isdigit() and int(a) != int(b) for a, b in pairs)


class LookupCache:
    """The names that have rows of one table, by what was looked for. They hold until the table changes."""

    def __init__(self, table: str, writer: SourceWriter) -> None:
        self._table, self._writer = table, writer

    def recall(self, key: LookupKey) -> str | None:
        name: str | None = self._writer.recall(key)
        return name

    def remember(self, key: LookupKey, name: str) -> None:
        if key.can_be_known:
            self._writer.remember(key, name)

    def __iter__(self) -> Iterator[tuple[LookupKey, str]]:
        return iter([pair for pair in self._writer.remembered(LookupKey) if pair[0].table == self._table])

    def forget(self, *columns: int) -> None:
        """Rows have changed in some columns, or (without any) are no longer there."""
        for sought, _ in self:
            if not columns or set(columns) & set(sought.columns):
                self._writer.forget(sought)
