"""Resolved expressions: the user's own text, with its columns known.

Catalyst will run most expressions, and printing a tree for Spark loses something for some functions. So an
expression keeps the text that was written, cut at the places where it names a column or calls an aggregate;
putting other names (or other expressions) into these holes is all that planning ever has to do to it. The
tree stays beside it for the type checker, pattern and aggregate
compilers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from millstream.errors import Span
from millstream.types import BOOLEAN, UNKNOWN, Field, Type


@dataclass(frozen=True)
class ColumnRef:
    """A column of a relation in scope; generated columns have no relation."""

    relation: str
    name: str
    type: Type = field(default=UNKNOWN, compare=False)

    @property
    def sql(self) -> str:
        """Text for Spark, with quoted names."""
        name = _quoted(self.name)
        return f"{_quoted(self.relation)}.{name}" if self.relation else name

    def __str__(self) -> str:
        return f"{self.relation}.{self.name}" if self.relation else self.name


Part = str | ColumnRef


@dataclass(frozen=True)
class Expr:
    """A resolved scalar expression."""

    parts: tuple[Part, ...]
    type: Type = field(default=UNKNOWN, compare=False)
    tree: exp.Expr | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    movable: bool = True
    """False where the text depends on where it stands: random functions, subqueries."""

    calls_python: bool = field(default=False, compare=False, repr=False)
    """Whether it calls a function in Python, which Spark runs on all rows, unwanted ones included."""

    @property
    def sql(self) -> str:
        """The text for Spark."""
        return "".join(part if isinstance(part, str) else part.sql for part in self.parts)

    def __str__(self) -> str:
        return " ".join("".join(str(part) for part in self.parts).split())

    def columns(self) -> Iterator[ColumnRef]:
        return (part for part in self.parts if isinstance(part, ColumnRef))

    def relations(self) -> frozenset[str]:
        return frozenset(column.relation for column in self.columns())

    @property
    def column(self) -> ColumnRef | None:
        """The column, if the expression is nothing else."""
        match self.parts:
            case (ColumnRef() as only,):
                return only
            case _:
                return None

    def substitute(self, value: Callable[[ColumnRef], Expr | ColumnRef]) -> Expr:
        """Put something else into the holes."""
        parts: list[Part] = []
        calls_python = self.calls_python
        for part in self.parts:
            filling = part if isinstance(part, str) else value(part)
            calls_python |= isinstance(filling, Expr) and filling.calls_python
            for piece in (filling,) if isinstance(filling, str) else _filled(filling):
                if isinstance(piece, str) and parts and isinstance(parts[-1], str):
                    parts[-1] += piece
                else:
                    parts.append(piece)
        return replace(self, parts=tuple(parts), tree=None, calls_python=calls_python)


def of_column(column: ColumnRef) -> Expr:
    return Expr((column,), column.type)


def all_of(conditions: Sequence[Expr]) -> Expr | None:
    """Join conditions with AND, if there are any."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else None
    parts: list[Part] = []
    for condition in conditions:
        parts += [*([" AND "] if parts else []), *condition.parts]
    movable = all(condition.movable for condition in conditions)
    calls_python = any(condition.calls_python for condition in conditions)
    return Expr(tuple(parts), BOOLEAN, span=conditions[0].span, movable=movable, calls_python=calls_python)


def part_of(whole: Expr, part: Field) -> Expr:
    """Return a field of a struct."""
    return Expr(
        (*whole.parts, f".{_quoted(part.name)}"), part.type, span=whole.span, calls_python=whole.calls_python
    )


def cut(text: str, span: Span, holes: Iterable[tuple[Span, ColumnRef | Expr]]) -> tuple[Part, ...]:
    """Return a piece of text with some of its places replaced by columns or by other expressions."""
    parts: list[Part] = []
    position = span[0]
    for (start, end), filling in sorted(holes, key=lambda hole: hole[0]):
        if text[position:start]:
            parts.append(text[position:start])
        parts += _filled(filling)
        position = end + 1
    if text[position : span[1] + 1]:
        parts.append(text[position : span[1] + 1])
    return tuple(parts)


def _filled(filling: Expr | ColumnRef) -> tuple[Part, ...]:
    """Return the parts for a hole, in parentheses for an expression."""
    if isinstance(filling, ColumnRef):
        return (filling,)
    return filling.parts if filling.column is not None else ("(", *filling.parts, ")")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
