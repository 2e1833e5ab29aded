"""Clauses of SQL that a stream does not take, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.from_clause import facts_of, is_declared, length_on
from millstream.analysis.queries.name_resolver import aggregate_name
from millstream.analysis.queries.rank_clause import is_ranking
from millstream.analysis.queries.resolved_query import ReadQuery, ReadStream
from millstream.analysis.queries.window_bounds import aggregates_in
from millstream.catalog.functions import FunctionKind, builtin
from millstream.errors import AnalysisError
from millstream.syntax.foreign_syntax import RANKED, WINDOW_FUNCTIONS
from millstream.syntax.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.analysis.queries.name_resolver import Resolver
    from millstream.analysis.queries.resolved_query import FromItem, Output
    from millstream.analysis.queries.window_clause import StreamFacts

_NOT_ON_STREAMS = (
    ("sort", "SORT BY has no meaning", "a stream is ordered by its timestamp"),
    ("cluster", "CLUSTER BY has no meaning", None),
    ("distribute", "DISTRIBUTE BY has no meaning", None),
    ("sample", "TABLESAMPLE is not used", "WHERE rand() < 0.1 samples a stream"),
    ("pivots", "PIVOT is not used", None),
    ("connect", "CONNECT BY is not used", None),
)
_NAMING = ("pivots",)
"""Clauses that bring columns of their own: without them nothing can be said of the names in the query."""


def refuse_clauses(node: exp.Select, resolver: Resolver, *, has_content: bool) -> None:
    """Refuse what a SELECT over streams cannot have."""
    for argument, what, hint in _NOT_ON_STREAMS:
        part = node.args.get(argument)
        if part:
            part = part[0] if isinstance(part, list) else part
            error = AnalysisError(f"{what} on a stream", span=span_of(part) or span_of(node), hint=hint)
            if argument in _NAMING:
                raise error
            with resolver.collected():
                raise error
    if node.args.get("distinct") is not None and not has_content:
        with resolver.collected():
            raise AnalysisError(
                "DISTINCT on a stream needs a window",
                span=span_of(node.args["distinct"]) or span_of(node),
                hint="without one every value ever seen would have to be kept: FROM s [RANGE 10 SECONDS]",
            )
    _refuse_window_functions(node, resolver)


def _refuse_window_functions(node: exp.Select, resolver: Resolver) -> None:
    """Refuse windows that are written as functions: all else would only follow from that."""
    group = node.args.get("group")
    for part in (*node.expressions, *(group.expressions if group is not None else ())):
        for call in part.find_all(exp.Anonymous):
            hint = WINDOW_FUNCTIONS.get(call.name.lower())
            own = resolver.catalog.has_aggregate(call.name) or resolver.catalog.function(call.name)
            if hint is not None and not own:
                raise error_at(call, f"{call.name}(...) is not part of ESL", hint=hint)
            known = None if own else builtin(call.name)
            if known is not None and known.kind is FunctionKind.WINDOW and not _has_over(call):
                raise error_at(
                    call, f"'{call.name}' needs OVER", hint=f"write {call.name}(...) OVER (PARTITION BY k)"
                )


def _has_over(call: exp.Expr) -> bool:
    """Tell whether a call is that of a window, perhaps with IGNORE NULLS between them."""
    around = call.parent
    while isinstance(around, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        around = around.parent
    return isinstance(around, exp.Window)


def window_hint(item: FromItem, call: str) -> str:
    """Say where the window of a blocking aggregate can stand."""
    facts = facts_of(item)
    timestamp = facts.timestamp.column if facts is not None and not is_declared(item) else None
    keyed = f"GROUP BY {timestamp}, too, or " if timestamp is not None else ""
    if isinstance(item, ReadQuery):
        inner = "(SELECT ...)" if item.alias.startswith("__query") else item.alias
        return (
            f"{keyed}the query in FROM gives a stream, which needs a window of its own: FROM {inner} [NOW]"
            f" for results of one instant together, or [TUMBLE {length_on(item, '1 HOUR')}]"
        )
    name = item.stream.name if isinstance(item, ReadStream) else item.alias
    reach, slide = length_on(item, "5 MINUTES"), length_on(item, "1 MINUTE", "10")
    interval = reach if reach.isdigit() else f"INTERVAL {reach}"
    return (
        f"{keyed}use a window on '{name}', as in FROM {name} [RANGE {reach} SLIDE {slide}] or"
        f" {call} OVER (RANGE {interval} PRECEDING), or a non-blocking aggregate of your own"
        " (CREATE AGGREGATE with an empty TERMINATE)"
    )


def refuse_ranks(node: exp.Window, resolver: Resolver) -> None:
    """Refuse functions of OVER that are no aggregates."""
    name = aggregate_name(node)
    known = None if resolver.catalog.has_aggregate(name) else builtin(name)
    if known is not None and known.kind is not FunctionKind.AGGREGATE and not is_ranking(node, resolver):
        raise error_at(
            node,
            f"'{name}' is no aggregate, and on a stream only aggregates go with OVER",
            hint=RANKED,
        )


def check_order(node: exp.Select, outputs: Sequence[Output], resolver: Resolver, facts: StreamFacts) -> None:
    """Refuse an order of a stream that does not begin with the timestamp."""
    order = node.args.get("order")
    timestamp = facts.timestamp.column
    for ordered in order.expressions[:1] if order is not None else ():
        named = next((o.expr for o in outputs if o.name.lower() == ordered.this.name.lower()), None)
        column = (named or resolver.resolve(ordered.this)).column
        if column is None or column.name.lower() != (timestamp or "").lower() or ordered.args.get("desc"):
            hint = f"write ORDER BY {timestamp}, or leave it out" if timestamp else "leave ORDER BY out"
            raise error_at(ordered, "a stream can only be ordered by its timestamp", hint=hint)


def instead_of_alias(
    column: exp.Column, select: exp.Select, resolver: Resolver, written: Callable[[exp.Expr], str]
) -> str | None:
    """Return a hint for WHERE about a name that SELECT gives."""
    aliased = (item for item in select.expressions if isinstance(item, exp.Alias))
    value = next((item.this for item in aliased if item.alias.lower() == column.name.lower()), None)
    if value is None:
        return None
    condition = written(_condition_around(column))
    if value.find(exp.Window):
        return f"WHERE cannot see it: put the query into FROM (...) and write {condition} outside"
    if aggregates_in(value, resolver.catalog):
        return f"an aggregate is filtered behind GROUP BY: HAVING {condition}"
    return f"WHERE comes before SELECT: write {written(value)} in the place of {column.name}"


def _condition_around(node: exp.Expr) -> exp.Expr:
    """Return the condition that a name stands in, between AND and OR."""
    while node.parent is not None and not isinstance(node.parent, exp.Connector | exp.Where | exp.Query):
        node = node.parent
    return node
