"""Resolved expressions of a pattern query: trees with their types, and text with holes for plain columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.expressions import ColumnRef, Expr, Part
from millstream.analysis.pattern_names import PatternTyper, is_aggregate
from millstream.catalog.functions import is_deterministic
from millstream.errors import AnalysisError
from millstream.syntax import to_sql
from millstream.syntax.positions import span_of
from millstream.types import BOOLEAN, NULL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.pattern_names import PatternNames
    from millstream.analysis.resolver import Resolver

_HOLE = re.compile(r"__hole(\d+)__")


class PatternExpressions:
    """Resolves the expressions of one pattern query."""

    def __init__(self, names: PatternNames, resolver: Resolver) -> None:
        self.names = names
        self.resolver = resolver
        self._typer = PatternTyper(names, resolver)

    def resolve(self, node: exp.Expr) -> Expr:
        """A resolved expression; what it says of the pattern beyond plain columns stays text.

        The text is printed from the tree: a conjunct is a part of an expression, and only whole expressions
        know exactly where they stand in the source.
        """
        self._check_exists(node)
        type_ = self._typer.type_of(node)
        tree = node.copy()
        columns = [(column, ref) for column in self._plain(tree) if (ref := self._ref(column)) is not None]
        for index, (column, _) in enumerate(columns):
            hole = exp.column(f"__hole{index}__")
            if column is tree:
                tree = hole
            else:
                column.replace(hole)
        pieces = _HOLE.split(to_sql(tree))
        parts: list[Part] = [columns[int(p)][1] if i % 2 else p for i, p in enumerate(pieces)]
        movable = not any(_stays(part) for part in node.walk())
        return Expr(tuple(part for part in parts if part != ""), type_, node, span_of(node), movable)

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

    def _plain(self, node: exp.Expr) -> Iterator[exp.Column]:
        """The columns of an expression that stand outside of aggregates and subqueries."""
        if isinstance(node, exp.Column):
            yield node
        elif not isinstance(node, exp.Query) and not is_aggregate(node, self.resolver.catalog):
            for child in node.iter_expressions():
                yield from self._plain(child)

    def _ref(self, node: exp.Column) -> ColumnRef | None:
        """What a plain column is: of a variable, of a table, or one of the partition."""
        variable = self.names.variable_of(node)
        if len(node.parts) > 2 or (len(node.parts) == 1 and variable is not None):
            return None
        if variable is None and len(node.parts) == 2:
            found = self.names.tables.resolve(node)
            return found.column if found is not None else None
        column = self.names.relation.find(node.name)
        if column is None or variable is None:
            return column
        return ColumnRef(variable.name, column.name, column.type)


def _stays(node: exp.Expr) -> bool:
    """Whether a part of an expression depends on where it stands."""
    if isinstance(node, exp.Anonymous):
        return not is_deterministic(node.name, len(node.expressions))
    return isinstance(node, exp.Query)
