"""Columns in which rows of two relations travel together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from millstream.analysis.queries.resolved_expression import ColumnRef, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.physical import expressions as ex
from millstream.physical.node import Column, Role
from millstream.types import Field


@dataclass(frozen=True)
class JoinSlots:
    """Columns in which rows of both sides of a join travel.

    Columns of one type share a slot, whatever they are called on either side: what a side has not is NULL,
    and would be shipped for nothing.
    """

    fields: tuple[Field, ...]
    left: dict[ColumnRef, str]
    right: dict[ColumnRef, str]

    @classmethod
    def of(cls, left: Iterable[ColumnRef], right: Iterable[ColumnRef]) -> JoinSlots:
        """The slots of the columns that are wanted of each side."""
        fields: list[Field] = []
        found: list[dict[ColumnRef, str]] = []
        for side in (left, right):
            free = list(fields)
            mine: dict[ColumnRef, str] = {}
            for column in side:
                field = next((f for f in free if f.type == column.type), None)
                if field is None:
                    field = Field(f"s{len(fields)}", column.type)
                    fields.append(field)
                else:
                    free.remove(field)
                mine[column] = field.name
            found.append(mine)
        return cls(tuple(fields), *found)

    def outputs(self, side: int) -> Iterator[Output]:
        """A side as a projection onto the slots."""
        by_slot = {slot: column for column, slot in (self.left, self.right)[side].items()}
        for field in self.fields:
            column = by_slot.get(field.name)
            yield Output(field.name, ex.nothing(field.type) if column is None else of_column(column))

    def columns(self) -> list[tuple[ColumnRef, str]]:
        """The columns of a pair by the names that kernels give them."""
        sides = ("l", self.left), ("r", self.right)
        return [(ref, f"{letter}{i}") for letter, side in sides for i, ref in enumerate(side)]

    def results(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the slots of a pair's rows by the names of its columns."""
        left = {f"l{i}": slot for i, slot in enumerate(self.left.values())}
        right = {f"r{i}": slot for i, slot in enumerate(self.right.values())}
        return left, right


def joined_columns(columns: Sequence[tuple[ColumnRef, str]]) -> tuple[Column, ...]:
    """Return the columns of pairs."""
    return tuple(Column(name, ref.type, role=Role.RESULT) for ref, name in columns)
