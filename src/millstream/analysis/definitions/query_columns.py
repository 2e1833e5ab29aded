"""Columns of streams, tables and views that are made by queries."""

from __future__ import annotations

from sqlglot import exp

from millstream.analysis.queries.resolved_query import Query, Select
from millstream.errors import AnalysisError, Span
from millstream.syntax.spans import span_of
from millstream.types import Field


def told_apart(name: str, query: Query, node: exp.Expr) -> tuple[Field, ...]:
    """Return the columns of a query, if others can tell them apart."""
    fields = query.fields or ()
    for i, field in enumerate(fields):
        if any(field.name.lower() == other.name.lower() for other in fields[:i]):
            raise AnalysisError(
                f"two columns of '{name}' are called '{field.name}'",
                span=_span_of_column(field.name, query) or span_of(node),
                hint="rename one of them with AS",
            )
    return fields


def _span_of_column(name: str, query: Query) -> Span | None:
    """Return the place of the last column of a name."""
    outputs = query.outputs if isinstance(query, Select) else ()
    spans = [output.expr.span for output in outputs if output.name.lower() == name.lower()]
    return spans[-1] if spans else None
