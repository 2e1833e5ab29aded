"""Ranking functions along the order of a stream."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.call_nodes import RANKS_ALONG, AggregateCall, Frame, OverCall
from millstream.analysis.queries.name_resolver import Resolver, aggregate_name
from millstream.analysis.queries.over_clause import check_order, frame_of
from millstream.analysis.queries.rank_clause import RankArguments
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.catalog.entries import TimestampKind
from millstream.errors import AnalysisError
from millstream.quantity import Rows
from millstream.syntax import nodes
from millstream.syntax.spans import span_of
from millstream.types import Type

_LATEST = "the latest tuple of each key is a window: FROM s [PARTITION BY k ROWS 1]"
_OF_ALL = frozenset({"percent_rank", "cume_dist", "ntile"})
_OF_TIES = frozenset({"rank", "dense_rank"})


def is_rank_along(node: exp.Window, resolver: Resolver) -> bool:
    """Tell whether a call with OVER is a ranking function, and no aggregate."""
    name = aggregate_name(node).lower()
    return name in RANKS_ALONG | _OF_ALL and not resolver.catalog.has_aggregate(name)


def rank_along(
    node: exp.Window,
    type_: Type,
    facts: StreamFacts,
    resolver: Resolver,
    result: str,
    text: Callable[[exp.Expr], str],
) -> OverCall:
    """Resolve a ranking function OVER a stream; the name of the ``result`` is that of its column."""
    given = RankArguments.of(node)
    _check_function(node, given, facts)
    _check_order(node, given.name, facts, resolver)
    frame = _frame(node, given, facts)
    values = (value for value in (given.value, given.default) if value is not None)
    call = AggregateCall(
        given.name,
        tuple(resolver.resolve(value) for value in values),
        type_,
        ColumnRef("", result, type_),
        ignore_nulls=given.ignore_nulls,
        text=text(given.inner),
        span=span_of(node),
        constants=(given.number,),
    )
    return OverCall(call, tuple(resolver.resolve(e) for e in node.args.get("partition_by") or ()), frame)


def _check_function(node: exp.Window, given: RankArguments, facts: StreamFacts) -> None:
    name = given.name
    if name in _OF_ALL:
        raise error_at(
            node,
            f"'{name}' needs the number of rows of its partition, which a stream never has",
            hint="rank the rows of each window: FROM s [TUMBLE 1 HOUR]",
        )
    if name in _OF_TIES and facts.timestamp.kind is TimestampKind.LATENT:
        raise error_at(
            node,
            f"'{name}' ranks by the timestamp, and this stream has none",
            hint="row_number() numbers tuples in the order of arrival",
        )
    if not given.ignore_nulls:
        return
    if name == "lead" or (name == "lag" and given.number < 0):
        raise error_at(
            node,
            f"'{name}' with IGNORE NULLS may wait for ever for a value",
            hint="select tuples with a value before: FROM (SELECT ... WHERE v IS NOT NULL)",
        )
    if name == "lag" and given.number != 1:
        raise error_at(
            node,
            "IGNORE NULLS goes with the last value before the current row",
            hint="select tuples with a value before: FROM (SELECT ... WHERE v IS NOT NULL)",
        )


def _check_order(node: exp.Window, name: str, facts: StreamFacts, resolver: Resolver) -> None:
    """Check that tuples are ranked in the order of the stream."""
    try:
        check_order(node, facts, resolver)
    except AnalysisError as error:
        order = node.args["order"].expressions[0]
        if order.args.get("desc") and _is_time(order.this, facts, resolver):
            error.hint = f"{_LATEST}, and a view keeps its content"
        else:
            error.hint = f"{error.hint}; rows of a window have any order: FROM s [TUMBLE 1 HOUR]"
        error.message = f"'{name}' goes along a stream, which is ordered by its timestamp"
        raise


def _is_time(node: exp.Expr, facts: StreamFacts, resolver: Resolver) -> bool:
    column = resolver.resolve(node).column
    return column is not None and column.name.lower() == (facts.timestamp.column or "").lower()


def _frame(node: exp.Window, given: RankArguments, facts: StreamFacts) -> Frame:
    """Return the frame of nth_value; the other functions have none."""
    spec = node.args.get("spec")
    if given.name in ("lag", "lead"):
        distance = given.number if given.name == "lag" else -given.number
        return Frame(True, Rows(distance), Rows(distance) if distance else None)
    if not isinstance(spec, nodes.OverSpec):
        return Frame(rows=given.name != "nth_value", preceding=None)
    if given.name != "nth_value":
        raise error_at(spec, f"'{given.name}' has no frame", hint="leave ROWS or RANGE out")
    if any(spec.args.get(clause) for clause in ("slide", "active", "emit")):
        raise error_at(
            spec, "'nth_value' gives a result for every tuple", hint="leave SLIDE and EMIT EVERY out"
        )
    frame = frame_of(spec, facts)
    if frame.preceding is not None and (not frame.rows or given.ignore_nulls):
        raise error_at(
            spec,
            "the n-th row of such a frame is not at a fixed place",
            hint="use ROWS without IGNORE NULLS, or UNBOUNDED PRECEDING, or first_value",
        )
    return frame
