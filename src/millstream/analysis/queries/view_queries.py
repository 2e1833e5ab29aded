"""Queries of views: every part that is no stream by nature is the current result over windows.

GROUP BY, DISTINCT and set operations without ALL over a stream without a window are over all tuples so far:
the result grows with the groups and not with the stream.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.from_clause import facts_of, with_window
from millstream.analysis.queries.rank_clause import UNORDERED, count_of
from millstream.analysis.queries.relation_kind import has_content, is_relation, reads_relation
from millstream.analysis.queries.resolved_expression import ColumnRef, of_column
from millstream.analysis.queries.resolved_query import (
    Arrangement,
    FromItem,
    JoinClause,
    Output,
    Query,
    ReadQuery,
    Select,
    SetOperation,
    SortedBy,
)
from millstream.analysis.queries.set_operations import require_windows
from millstream.analysis.queries.window_bounds import aggregates_anything
from millstream.catalog import Catalog
from millstream.errors import AnalysisError, did_you_mean
from millstream.types import Field
from millstream.windows.window_spec import LandmarkWindow

_OUTSIDE = (
    "make a view of the query without it, and a view of that one: SELECT ... FROM v ORDER BY ... LIMIT n"
)


def over_all_tuples(
    node: exp.Select, source: FromItem, joins: list[JoinClause], catalog: Catalog
) -> tuple[FromItem, list[JoinClause]]:
    """Put UNBOUNDED on the only stream of an aggregate or a DISTINCT in a view, if it has no window."""
    items = [source, *(join.item for join in joins)]
    streams = [item for item in items if facts_of(item) is not None]
    if len(streams) != 1 or has_content(streams[0]):
        return source, joins
    if node.args.get("distinct") is None and not aggregates_anything(node, catalog):
        return source, joins
    window = _unbounded(streams[0])
    if source is streams[0]:
        return window, joins
    return source, [replace(join, item=window) if join.item is streams[0] else join for join in joins]


def all_rows(query: Query) -> Query:
    """Return all rows so far of a query that gives a stream; other queries are returned as they are."""
    if query.facts is None or is_relation(query):
        return query
    item = _unbounded(ReadQuery("__all", query, span=query.span))
    fields = query.fields or ()
    outputs = tuple(Output(f.name, of_column(ColumnRef("__all", f.name, f.type))) for f in fields)
    return Select(item, (), outputs, facts=query.facts, span=query.span)


def _unbounded(item: FromItem) -> FromItem:
    facts = facts_of(item)
    assert facts is not None, "it is a stream"
    return with_window(item, LandmarkWindow(attribute=facts.timestamp.column))


def refuse_order_inside(query: Select) -> None:
    """Refuse ranks and an order of contents below the result of a view: they make reports of contents."""
    if query.is_ranked and any(reads_relation(item, query.items()) for item in query.items()):
        raise AnalysisError(
            "ranks, ORDER BY and LIMIT of contents of windows inside a view",
            span=query.span,
            hint=_OUTSIDE,
        )


def require_current(query: Query, node: exp.Expr) -> None:
    """Refuse a query that has no current result."""
    if isinstance(query, Select) and (
        query.implied or not any(reads_relation(item, query.items()) for item in query.items())
    ):
        raise error_at(node, "a view needs a window: the current result of a bare stream would grow for ever")
    if isinstance(query, SetOperation):
        require_windows(query, "a view")


# ---------------------------------------------------------------- ORDER BY and LIMIT


def without_order(node: exp.Expr) -> exp.Expr:
    """Return a query without its own ORDER BY, LIMIT and OFFSET."""
    if not any(node.args.get(name) for name in ("order", "limit", "offset")):
        return node
    bare = node.copy()
    for name in ("order", "limit", "offset"):
        bare.set(name, None)
    return bare


def order_of_view(node: exp.Expr, fields: tuple[Field, ...]) -> Arrangement | None:
    """Return ORDER BY, LIMIT and OFFSET of a view, which are about its columns."""
    order = node.args.get("order")
    keys = tuple(_key(part, node, fields) for part in (order.expressions if order is not None else ()))
    limit, offset = (count_of(node, clause) for clause in ("limit", "offset"))
    return Arrangement(keys, limit, offset or 0) if keys or limit is not None or offset else None


def _key(part: exp.Expr, node: exp.Expr, fields: tuple[Field, ...]) -> SortedBy:
    wanted = part.this
    names = [field.name.lower() for field in fields]
    if isinstance(wanted, exp.Literal) and wanted.name.isdigit() and 1 <= int(wanted.name) <= len(fields):
        at = int(wanted.name) - 1
    elif isinstance(wanted, exp.Column) and wanted.name.lower() in names:
        at = names.index(wanted.name.lower())
    else:
        items = node.selects if isinstance(node, exp.Query) else []
        same = [number for number, item in enumerate(items) if item.unalias() == wanted]
        if not same or len(items) != len(fields):
            raise error_at(
                wanted,
                "ORDER BY of a view names a column of it",
                hint=did_you_mean(wanted.name, [field.name for field in fields])
                or "select it, or sort where the view is read",
            )
        at = same[0]
    if fields[at].type.kind in UNORDERED:
        raise error_at(part, f"values of type {fields[at].type} have no order")
    descending = bool(part.args.get("desc"))
    return SortedBy(at, descending, bool(part.args.get("nulls_first", not descending)))
