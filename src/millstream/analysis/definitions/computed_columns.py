"""Computed columns of CREATE STREAM and CREATE TABLE: ``at TIMESTAMP AS (timestamp_millis(ms))``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from millstream.analysis.error_collector import ErrorCollector, error_at
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.coercion import stores
from millstream.catalog import Catalog
from millstream.catalog.entries import ComputedColumn
from millstream.errors import Source
from millstream.syntax import nodes, parse_expression
from millstream.types import Field, Type

_READS_TIMES = frozenset(
    {"to_timestamp", "to_timestamp_ntz", "to_timestamp_ltz", "try_to_timestamp", "to_date", "unix_timestamp"}
)
_LETTERS = frozenset("GyMLdDahHkKmsSVzOXxZ")
"""Letters that Spark accepts in patterns for reading."""

Columns = tuple[tuple[Field, ...], tuple[ComputedColumn, ...]]


@dataclass(frozen=True)
class ColumnAnalyzer:
    """Analyzes the expressions of computed columns, each over the columns before it."""

    catalog: Catalog
    source: Source
    mistakes: ErrorCollector

    def columns(
        self,
        schema: Sequence[Field],
        declared: Sequence[nodes.ColumnDeclaration],
        before: Sequence[Field] = (),
    ) -> Columns:
        """Return the columns with the types of those that leave them out, and the computed ones.

        Columns ``before`` the declared ones stand at the beginning of the schema.
        """
        fields: list[Field] = list(before)
        computed: list[ComputedColumn] = []
        for field, node in zip(schema[len(before) :], declared, strict=True):
            fields.append(field)
            if node.args.get("computed") is None:
                continue
            with self.mistakes.collected():
                expr = self._expression(node, tuple(fields[:-1]), schema)
                fields[-1] = _typed(field, node, expr)
                computed.append(ComputedColumn(field.name, expr))
        return tuple(fields), tuple(computed)

    def _expression(
        self, node: nodes.ColumnDeclaration, before: tuple[Field, ...], schema: Sequence[Field]
    ) -> Expr:
        tree = node.args["computed"]
        for query in tree.find_all(exp.Query):
            _no_subquery(query, Scope([]))
        _check_order(tree, before, schema)
        _check_patterns(tree)
        scope = Scope([ScopeRelation("", before)])
        resolver = Resolver(
            scope, self.catalog, self.source, on_subquery=_no_subquery, where="in a computed column"
        )
        expr = resolver.resolve(tree)
        if self._calls_python(tree):
            raise error_at(
                tree,
                f"column '{node.name}' calls a function in Python, whose failure ends the query"
                " instead of marking a bad record",
                hint="write the function in SQL, or call it in a query that reads the stream",
            )
        if not expr.movable:
            raise error_at(
                tree,
                f"column '{node.name}' would have other values when its input is read again",
                hint="leave out functions of chance",
            )
        return replace(expr, tree=None)

    def _calls_python(self, tree: exp.Expr) -> bool:
        """Return whether a function in Python is called, possibly by functions in SQL."""
        called = [self.catalog.function(call.name) for call in tree.find_all(exp.Anonymous)]
        return any(
            function.python is not None or self._calls_python(parse_expression(function.body or "NULL"))
            for function in called
            if function is not None
        )


def _check_order(tree: exp.Expr, before: Sequence[Field], schema: Sequence[Field]) -> None:
    known = {field.name.lower() for field in before}
    for column in tree.find_all(exp.Column):
        name = column.parts[0].name
        if name.lower() not in known and any(field.name.lower() == name.lower() for field in schema):
            raise error_at(
                column,
                f"column '{name}' does not stand before the column that is computed from it",
                hint="a computed column uses the columns before it",
            )


def _check_patterns(tree: exp.Expr) -> None:
    """Refuse patterns of times that Spark does not read."""
    for call in tree.find_all(exp.Anonymous):
        pattern = call.expressions[1] if len(call.expressions) == 2 else None
        if call.name.lower() in _READS_TIMES and isinstance(pattern, exp.Literal):
            unquoted = re.sub(r"'(?:[^']|'')*'", "", pattern.name)
            letter = next((one for one in unquoted if one.isalpha() and one not in _LETTERS), None)
            if letter is not None:
                raise error_at(
                    pattern,
                    f"'{letter}' means nothing in a pattern that reads a time",
                    hint="text stands in single quotes, each written twice: 'yyyy-MM-dd''T''HH:mm:ss'",
                )


def _typed(field: Field, node: nodes.ColumnDeclaration, expr: Expr) -> Field:
    tree = node.args["computed"]
    if node.args.get("kind") is None:
        if not expr.type.is_known:
            raise error_at(
                node,
                f"column '{field.name}' needs a type, because only Spark knows that of its expression",
                hint=f"{field.name} TIMESTAMP AS (...)",
            )
        return Field(field.name, expr.type)
    if expr.type.is_known and not stores(expr.type, field.type):
        raise error_at(
            tree,
            f"column '{field.name}' is of type {field.type}, but its expression is of type {expr.type}",
            hint=f"convert it: CAST(... AS {field.type})",
        )
    return field


def _no_subquery(query: exp.Query, scope: Scope) -> Type:
    raise error_at(query, "a computed column cannot contain a query", hint="join the stream with a table")
