"""Resolved expressions of a pattern query: trees with types, and text with holes for what a match has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.patterns.pattern_names import PatternTyper, is_aggregate, is_part_of_row
from millstream.analysis.patterns.tuple_columns import TupleColumn, tuple_column
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, Part
from millstream.catalog.functions import is_deterministic
from millstream.errors import AnalysisError
from millstream.syntax import to_sql
from millstream.syntax.spans import span_of
from millstream.types import BOOLEAN, NULL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.analysis.patterns.pattern_names import PatternNames
    from millstream.analysis.queries.name_resolver import Resolver

_HOLE = re.compile(r"__hole(\d+)__")

Spoken = TupleColumn | exp.Expr
"""What a match is asked for: a column of one of its tuples, or a column of the partition, or an aggregate."""


class PatternExpressions:
    """Resolves the expressions of one pattern query.

    Columns of tuples (``X.price``, ``FIRST(Y).price``) and aggregates of stars are holes in the text. So
    what comes after the search only has to put in what a match has of them: ``spoken`` is what they stand
    for.
    """

    def __init__(self, names: PatternNames, resolver: Resolver) -> None:
        self.names = names
        self.resolver = resolver
        self.typer = PatternTyper(names, resolver)
        self.spoken: dict[ColumnRef, Spoken] = {}
        self._aggregates: dict[str, ColumnRef] = {}

    def resolve(self, node: exp.Expr) -> Expr:
        """A resolved expression.

        The text is printed from the tree: a conjunct is a part of an expression, and only whole expressions
        know exactly where they stand in the source.
        """
        self._check_exists(node)
        type_ = self.typer.type_of(node)
        parts = with_holes(node, self._ref)
        movable = not any(_stays(part) for part in node.walk())
        return Expr(parts, type_, node, span_of(node), movable)

    def condition(self, node: exp.Expr, what: str) -> Expr:
        resolved = self.resolve(node)
        if resolved.type.is_known and resolved.type not in (BOOLEAN, NULL):
            raise AnalysisError(
                f"{what} must be a condition, but this is of type {resolved.type}", span=span_of(node)
            )
        return resolved

    def _check_exists(self, node: exp.Expr) -> None:
        """The query of EXISTS has no type, but must be right too."""
        for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
            if isinstance(part, exp.Exists):
                self.resolver.type_of(part.this)

    def _ref(self, node: exp.Expr) -> tuple[ColumnRef, tuple[str, ...]] | None:
        """A column of a tuple or of a table, or an aggregate, and the fields of a struct taken from it."""
        column = tuple_column(node, self.names)
        if column is not None:
            self.spoken.setdefault(column.ref, column)
            return column.ref, column.fields
        if is_aggregate(node, self.resolver.catalog) or is_part_of_row(node, self.resolver.catalog):
            return self._aggregate(node), ()
        if not isinstance(node, exp.Column) or self.names.variable_of(node) is not None:
            return None
        if len(node.parts) > 1:
            found = self.names.tables.resolve(node)
            return (found.column, found.fields) if found is not None else None
        if not self.names.is_partition_column(node.name):
            return None
        partition = self.names.relation.find(node.name)
        assert partition is not None, "the pattern has been partitioned by it"
        self.spoken.setdefault(partition, node)
        return partition, ()

    def _aggregate(self, node: exp.Expr) -> ColumnRef:
        """An aggregate by its text, numbered where only capitals differ, which Spark does not tell apart."""
        text = to_sql(node)
        if text not in self._aggregates:
            alike = sum(known.lower() == text.lower() for known in self._aggregates)
            name = f"{text} ({alike + 1})" if alike else text
            self._aggregates[text] = ColumnRef("", name, self.typer.type_of(node))
            self.spoken[self._aggregates[text]] = node
        return self._aggregates[text]


def with_holes(
    node: exp.Expr, ref: Callable[[exp.Expr], tuple[ColumnRef, tuple[str, ...]] | None]
) -> tuple[Part, ...]:
    """The text of an expression, with columns in the places of which ``ref`` knows one."""
    tree = node.copy()
    holes: list[ColumnRef] = []
    for part, (column, fields) in list(_known(tree, node, ref)):
        hole: exp.Expr = exp.column(f"__hole{len(holes)}__")
        for name in fields:
            hole = exp.Dot(this=hole, expression=exp.to_identifier(name))
        holes.append(column)
        if part is tree:
            tree = hole
        else:
            part.replace(hole)
    pieces = _HOLE.split(to_sql(tree))
    parts: list[Part] = [holes[int(p)] if i % 2 else p for i, p in enumerate(pieces)]
    return tuple(part for part in parts if part != "")


def _known(
    copy: exp.Expr, node: exp.Expr, ref: Callable[[exp.Expr], tuple[ColumnRef, tuple[str, ...]] | None]
) -> Iterator[tuple[exp.Expr, tuple[ColumnRef, tuple[str, ...]]]]:
    """The outermost parts that are columns, outside of subqueries. A copy does not know what is around it."""
    found = ref(node)
    if found is not None:
        yield copy, found
    elif not isinstance(node, exp.Query):
        for one, other in zip(copy.iter_expressions(), node.iter_expressions(), strict=True):
            yield from _known(one, other, ref)


def _stays(node: exp.Expr) -> bool:
    """Whether a part of an expression depends on where it stands."""
    if isinstance(node, exp.Anonymous):
        return not is_deterministic(node.name, len(node.expressions))
    return isinstance(node, exp.Query)
