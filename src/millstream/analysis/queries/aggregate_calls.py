"""Calls of aggregates, in all the ways in which Spark SQL writes them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from millstream.analysis.queries.call_nodes import AggregateCall, SortKey
from millstream.analysis.queries.name_resolver import Resolver, aggregate_name, is_call
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.types.expression_types import OF_GROUP
from millstream.analysis.udas.body_elaborator import bodies_of
from millstream.errors import AnalysisError
from millstream.syntax.spans import span_of
from millstream.types import Type, struct

_OF_ONE_TUPLE = frozenset({"first", "last", "first_value", "last_value", "any_value"})
"""Aggregates whose result is the value of one tuple, which may be NULL."""

_OF_ALL_TUPLES = frozenset({"collect_list", "array_agg"})
"""Aggregates that leave NULLs out unless told otherwise."""


def aggregate_call(
    node: exp.Expr, type_: Type, resolver: Resolver, name_of_result: str, text: Callable[[exp.Expr], str]
) -> AggregateCall:
    """What is called with what; ``text`` gives a part of the query as it was written."""
    name = aggregate_name(node)
    whole = inner = node.this if isinstance(node, exp.Window) else node
    condition = None
    ignore_nulls = name.lower() in _OF_ALL_TUPLES
    ordered: list[exp.Expr] = []
    plain = resolver.with_aggregates(None, f"inside '{name}'")
    while not is_call(inner):
        if isinstance(inner, exp.Filter):
            condition = plain.condition(inner.expression.this, "FILTER")
        if isinstance(inner, exp.WithinGroup):
            ordered = inner.expression.expressions
        ignore_nulls |= isinstance(inner, exp.IgnoreNulls)
        ignore_nulls &= not isinstance(inner, exp.RespectNulls)
        if not isinstance(inner.this, exp.Expr):
            break
        inner = inner.this
    user = resolver.catalog.aggregate(name) or resolver.catalog.aggregate(name, window=True)
    arguments = [inner.this] if isinstance(inner, exp.Any) else list(inner.expressions)
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = arguments[0].expressions
    if name.lower() in _OF_ONE_TUPLE and arguments:
        # Spark has three ways to say it: behind the call, behind the argument, and as an argument.
        value, *flags = arguments
        ignore_nulls |= isinstance(value, exp.IgnoreNulls)
        ignore_nulls |= any(isinstance(flag, exp.Boolean) and bool(flag.this) for flag in flags)
        arguments = [value.this if isinstance(value, exp.IgnoreNulls | exp.RespectNulls) else value]
    sorted_by = [part.this for part in ordered]
    arguments = [*sorted_by, *arguments] if name.lower() in OF_GROUP else [*arguments, *sorted_by]
    resolved = tuple(plain.resolve(a) for a in arguments if not isinstance(a, exp.Star))
    bodies = None
    if user is not None:
        try:
            bodies = bodies_of(name, [argument.type for argument in resolved], resolver.catalog)
        except AnalysisError as error:
            error.span = error.span or span_of(node)
            raise
        body = bodies.base or bodies.window
        if body is not None:
            type_ = struct(*body.returns) if user.returns_row else body.returns[0].type
    result = ColumnRef("", name_of_result, type_)
    return AggregateCall(
        name.lower(),
        resolved,
        type_,
        result,
        distinct,
        condition,
        user,
        ignore_nulls,
        tuple(map(_sort_key, ordered)),
        bodies,
        text(whole),
        span_of(node),
    )


def _sort_key(node: exp.Expr) -> SortKey:
    return SortKey(bool(node.args.get("desc")), bool(node.args.get("nulls_first")))
