"""Resolved expressions of a pattern query: trees with types, and text with holes for what a match has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.patterns.pattern_names import TupleColumn, is_aggregate, is_part_of_row, tuple_column
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, Part
from millstream.analysis.types.operator_types import check_condition_type
from millstream.catalog.functions import is_deterministic
from millstream.syntax import to_sql
from millstream.syntax.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.analysis.patterns.pattern_names import PatternTyper
    from millstream.analysis.queries.name_resolver import Resolver

_HOLE = re.compile(r"__hole(\d+)__")

Spoken = TupleColumn | exp.Expr
"""Part of a match: a column of one of its tuples, a column of the partition, or an aggregate."""


class PatternExpressions:
    """Resolver of the expressions of one pattern query.

    Columns of tuples (``X.price``, ``FIRST(Y).price``) and aggregates of stars are holes in the text. So
    what comes after the search only has to put in what a match has of them: ``spoken`` is what they stand
    for.
    """

    def __init__(self, typer: PatternTyper, resolver: Resolver) -> None:
        self.names = typer.names
        self.resolver = resolver
        self._typer = typer
        self.spoken: dict[ColumnRef, Spoken] = {}
        self._aggregates: dict[str, ColumnRef] = {}

    def resolve(self, node: exp.Expr) -> Expr:
        """Return a resolved expression.

        The text is printed from the tree: a conjunct is a part of an expression, and only whole expressions
        know exactly where they stand in the source.
        """
        self._check_exists(node)
        type_ = self._typer.type_of(node)
        parts = with_holes(node, self._ref)
        movable = not any(_stays(part) for part in node.walk())
        return Expr(parts, type_, node, span_of(node), movable)

    def condition(self, node: exp.Expr, what: str) -> Expr:
        resolved = self.resolve(node)
        check_condition_type(resolved.type, node, what)
        return resolved

    def _check_exists(self, node: exp.Expr) -> None:
        """Check the queries of EXISTS, which have no type."""
        for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
            if isinstance(part, exp.Exists):
                self.resolver.type_of(part.this)

    def _ref(self, node: exp.Expr) -> tuple[ColumnRef, tuple[str, ...]] | None:
        """Return a column of a tuple or table, or an aggregate, with the struct fields taken from it."""
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
        """Name an aggregate by its text, with a number where only capitals differ."""
        text = to_sql(node)
        if text not in self._aggregates:
            alike = sum(known.lower() == text.lower() for known in self._aggregates)
            name = f"{text} ({alike + 1})" if alike else text
            self._aggregates[text] = ColumnRef("", name, self._typer.type_of(node))
            self.spoken[self._aggregates[text]] = node
        return self._aggregates[text]


def with_holes(
    node: exp.Expr, ref: Callable[[exp.Expr], tuple[ColumnRef, tuple[str, ...]] | None]
) -> tuple[Part, ...]:
    """Return the text of an expression, with columns in the places of which ``ref`` knows one."""
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
    """Yield the outermost parts that are columns, outside of subqueries; a copy has no parents."""
    found = ref(node)
    if found is not None:
        yield copy, found
    elif not isinstance(node, exp.Query):
        for one, other in zip(copy.iter_expressions(), node.iter_expressions(), strict=True):
            yield from _known(one, other, ref)


def _stays(node: exp.Expr) -> bool:
    """Tell whether a part of an expression depends on where it stands."""
    if isinstance(node, exp.Anonymous):
        return not is_deterministic(node.name, len(node.expressions))
    return isinstance(node, exp.Query)
