"""Calls of aggregates, in all the ways in which Spark SQL writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.call_nodes import AggregateCall, SortKey
from millstream.analysis.queries.name_resolver import Resolver, aggregate_name, is_call
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.types.constants import NotConstantError, parameters
from millstream.analysis.udas.aggregate_versions import bodies_of
from millstream.catalog.builtin_aggregates import Nulls, Within, builtin_aggregate
from millstream.errors import AnalysisError
from millstream.syntax.spans import span_of
from millstream.types import UNKNOWN, Type, struct


def aggregate_call(
    node: exp.Expr, type_: Type, resolver: Resolver, name_of_result: str, text: Callable[[exp.Expr], str]
) -> AggregateCall:
    """Resolve an aggregate call; ``text`` returns the source text of a node."""
    name = aggregate_name(node)
    whole = inner = node.this if isinstance(node, exp.Window) else node
    condition = None
    row = builtin_aggregate(name)
    ignore_nulls = row is not None and row.nulls is Nulls.SKIP_UNLESS_TOLD
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
    _check_star(name, arguments, distinct=distinct)
    if row is not None and row.nulls is Nulls.KEEP_UNLESS_TOLD and arguments:
        # Spark has three ways to say it: behind the call, behind the argument, and as an argument.
        value, *flags = arguments
        ignore_nulls |= isinstance(value, exp.IgnoreNulls)
        ignore_nulls |= any(isinstance(flag, exp.Boolean) and bool(flag.this) for flag in flags)
        arguments = [value.this if isinstance(value, exp.IgnoreNulls | exp.RespectNulls) else value]
    sorted_by = [part.this for part in ordered]
    is_first = row is not None and row.within is Within.FIRST
    written = [*sorted_by, *arguments] if is_first else arguments
    arguments = written if is_first else [*arguments, *sorted_by]
    resolved = tuple(plain.resolve(a) for a in arguments if not isinstance(a, exp.Star))
    constants = None
    if row is not None and user is None:
        fixed = written[row.first_constant : row.last_constant]
        with suppress(NotConstantError):
            constants = parameters(row, fixed, resolved[0].type if resolved else UNKNOWN)
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
        constants,
    )


def _check_star(name: str, arguments: Sequence[exp.Expr], *, distinct: bool) -> None:
    """Refuse a star that is not the only argument of count."""
    star = next((argument for argument in arguments if isinstance(argument, exp.Star)), None)
    is_count = name.lower() == "count" and len(arguments) == 1 and not distinct
    if star is not None and not is_count:
        raise error_at(
            star, f"'{name}' takes values, not *", hint=f"name a column: {name}(price); count(*) counts rows"
        )


def _sort_key(node: exp.Expr) -> SortKey:
    return SortKey(bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def check_several_rows(calls: Sequence[AggregateCall]) -> None:
    """Refuse two aggregates without groups that return rows."""
    rows = [call for call in calls if call.user is not None and call.user.returns_row]
    if len(rows) > 1:
        raise AnalysisError(
            "at most one aggregate of a SELECT may return rows",
            span=rows[1].span,
            hint="write two queries",
        )
