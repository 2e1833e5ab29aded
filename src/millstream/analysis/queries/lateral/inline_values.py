"""VALUES in FROM: a table that is written in the query."""

from __future__ import annotations

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.resolved_query import ReadQuery, TableQuery
from millstream.analysis.queries.scope import UNNAMED, Scope
from millstream.analysis.types.coercion import common_type_of
from millstream.syntax.spans import span_of
from millstream.types import Field


def inline_values(node: exp.Values, resolver: Resolver, scope: Scope) -> ReadQuery:
    """Return the rows of VALUES as a query over no table."""
    alias = node.args.get("alias")
    written = [column.name for column in (alias.args.get("columns") or ())] if alias is not None else []
    rows = [tuple(resolver.resolve(value) for value in row.expressions) for row in node.expressions]
    width = len(rows[0])
    for row, values in zip(node.expressions, rows, strict=True):
        if len(values) != width:
            raise error_at(row, f"this row has {len(values)} values, and the first has {width}")
    if written and len(written) != width:
        raise error_at(node, f"VALUES has {width} columns, and {len(written)} names")
    if resolver.mistakes is not None:
        resolver.mistakes.check()
    names = written or [f"col{i + 1}" for i in range(width)]
    fields = []
    for i, name in enumerate(names):
        type_ = common_type_of(row[i].type for row in rows)
        if type_ is None:
            raise error_at(node, f"the values of '{name}' have no type in common")
        fields.append(Field(name, type_))
    shown = ", ".join(f"({', '.join(value.sql for value in row)})" for row in rows)
    listed = ", ".join(f"`{name}`" for name in names)
    span = span_of(node)
    query = TableQuery(
        f"SELECT * FROM VALUES {shown} AS t({listed})", (), tuple(fields), span=span, rows=tuple(rows)
    )
    name = alias.name if alias is not None and alias.this is not None else f"{UNNAMED}{len(scope.relations)}"
    return ReadQuery(name, query, span=span)
