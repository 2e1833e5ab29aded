"""The list of refusals: everything that is right but cannot be run is refused here, before Spark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from millstream.analysis.queries.call_nodes import AggregateCall, OverCall, ranks_along
from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.queries.resolved_query import Query
from millstream.catalog.builtin_aggregates import Arguments, Family, builtin_aggregate
from millstream.errors import NotExecutableError, Span
from millstream.plan import nodes
from millstream.plan.aggregate_strategies import constants
from millstream.plan.maintained_relations import expressions, why_not_maintained
from millstream.plan.relation_variance import varies
from millstream.plan.time_attributes import attribute_beside_time
from millstream.quantity import Distance, Duration, Quantity, Rows
from millstream.types import Kind, Type
from millstream.windows.window_properties import counts_arrivals, is_contextual
from millstream.windows.window_spec import (
    LandmarkWindow,
    PredicateWindow,
    RangeWindow,
    RowWindow,
    SessionWindow,
    Window,
)

_NOT_KEPT = frozenset({Kind.VARIANT, Kind.YEAR_MONTH_INTERVAL})
"""Kinds of values that kernels cannot store in state; they only pass through."""


_WHOLE_LANGUAGE = "`millstream check` and EXPLAIN LOGICAL work on the whole language"

_MANY = 1_000_000
"""Limit on the emission instants of a period; more would take too much memory."""


_DIGITS = 18
"""Digits of a decimal that fit the 64 bits of a timestamp."""


@dataclass(frozen=True)
class Refusal:
    """A part of a query that cannot be run: the object, the reason, the remedy and the place."""

    what: str
    why: str | None = None
    hint: str | None = None
    span: Span | None = None
    """None if the place is the query."""

    verb: str = "run"

    @property
    def message(self) -> str:
        reason = f": {self.why}" if self.why is not None else " by this version of Millstream yet"
        return f"{self.what} cannot be {self.verb}{reason}"

    def __str__(self) -> str:
        return self.message


def why_not(plan: nodes.Node) -> Refusal | None:
    """The first part of a plan that cannot be run, or None."""
    for node in plan.walk():
        match node:
            case nodes.StreamScan():
                reason = _scan(node)
            case nodes.BaseAggregate():
                reason = next(filter(None, map(_user, node.aggregates)), None) or _input(node)
            case nodes.OverAggregate():
                reason = next(filter(None, map(_over, node.calls)), None) or _input(node)
            case nodes.StreamLimit():
                reason = _input(node)
            case nodes.WindowRank():
                reason = _rank(node) or _input(node)
            case nodes.WindowAggregate():
                reason = (_maintained_aggregate if varies(node) else _window_aggregate)(node) or _input(node)
            case nodes.RelationToStream():
                what = why_not_maintained(node)
                reason = _rows(node) if what is None else Refusal(*what)
            case nodes.PatternMatch():
                reason = _pattern(node) or _input(node)
            case nodes.WindowRows():
                reason = _window_rows(node) or _input(node)
            case nodes.Windowed():
                reason = _window(node)
            case _:
                reason = None
        if reason is not None:
            return reason
    return None


def _scan(node: nodes.StreamScan) -> Refusal | None:
    """Attributes about which a stream promises something are 64-bit numbers."""
    timestamp = node.stream.timestamp.column
    names = {*node.stream.promises_on_others, *([timestamp.lower()] if timestamp is not None else [])}
    for field in node.stream.schema:
        if field.name.lower() in names and not field.type.is_known:
            return Refusal(
                f"a query of '{node.stream.name}'",
                f"'{field.name}', by which it is ordered, has no type",
                f"declare it in CREATE STREAM: {field.name} TIMESTAMP",
            )
        if field.name.lower() in names and _is_long(field.type):
            return Refusal(
                f"a query of '{node.stream.name}'",
                f"'{field.name}', by which it is ordered, is {field.type}, and the limit is {_DIGITS} digits",
                f"declare '{field.name}' with at most {_DIGITS} digits, or as BIGINT",
            )
    return None


def _is_long(type_: Type) -> bool:
    return type_.kind is Kind.DECIMAL and type_.precision > _DIGITS


def _pattern(node: nodes.PatternMatch) -> Refusal | None:
    unfit = node.pattern.unfit
    return None if unfit is None else Refusal("this pattern", unfit, _WHOLE_LANGUAGE, verb="searched for")


def _input(node: nodes.Node) -> Refusal | None:
    latent = any(isinstance(n, nodes.StreamUnion) and n.latent for n in node.walk())
    if not latent:
        return None
    return Refusal(
        "an aggregate or LIMIT over a union with a latent stream",
        "one of the streams has no timestamp, so there is no order of both",
        "declare all streams of the union with ORDER BY, or none of them",
    )


def _over(over: OverCall) -> Refusal | None:
    if (lost := _keys(over.partition_by, "PARTITION BY")) is not None:
        return lost
    if ranks_along(over.call):
        return _values(over.call)
    if (reason := _offset(over)) is not None:
        return reason
    if over.call.user is None:
        return _aggregate(over.call)
    unbounded = over.frame.preceding is None
    if (over.call.filter is not None or over.call.distinct) and (unbounded or over.active_expiration):
        window = "with ACTIVE EXPIRATION" if over.active_expiration else "over an unbounded window"
        return Refusal(f"FILTER or DISTINCT of '{over.call.name}' {window}", span=over.call.span)
    return _user(over.call)


def _offset(over: OverCall) -> Refusal | None:
    """Refuse an aggregate of all rows up to another than the current one if its results are not kept."""
    if over.frame.until is None or over.frame.preceding is not None:
        return None
    row = builtin_aggregate(over.call.name)
    if over.call.user is None and row is not None and row.empty != []:
        return None
    return Refusal(
        f"'{over.call.name}' over all tuples up to another than the current one",
        "its results would be kept for many tuples",
        "bound the window, for instance ROWS BETWEEN 100 PRECEDING AND 1 PRECEDING",
        over.call.span,
    )


def _values(call: AggregateCall) -> Refusal | None:
    """Refuse values of other rows that state cannot hold."""
    for argument in call.arguments:
        if _is_lost(argument.type):
            return Refusal(
                f"{call.name} of values of type {argument.type}",
                "state cannot hold such values",
                "convert the argument, for example to a STRING",
                argument.span or call.span,
            )
    return None


def _rank(node: nodes.WindowRank) -> Refusal | None:
    partitions = (expr for call in node.calls for expr in call.partition_by)
    orders = (key.expr for keys in (node.order_by, *(c.order_by for c in node.calls)) for key in keys)
    if (lost := _keys(partitions, "PARTITION BY") or _keys(orders, "ORDER BY")) is not None:
        return lost
    counted = [w.window for w in node.walk() if isinstance(w, nodes.Windowed)] if node.report else []
    if counted and isinstance(counted[0].emit_every, Rows):
        return Refusal(
            f"an order of the reports of {counted[0]}",
            "reports after so many rows may have the same timestamp, and then are not told apart",
            "put the query into FROM (...), and order by the timestamp outside",
        )
    return None


def _user(call: AggregateCall) -> Refusal | None:
    """Refuse a user-defined aggregate of which a part cannot be compiled."""
    assert call.bodies is not None, "it is the user's"
    return None if call.bodies.unfit is None else Refusal(call.bodies.unfit, span=call.span)


def _aggregate(call: AggregateCall) -> Refusal | None:
    if call.user is not None:
        return _user(call)
    row = builtin_aggregate(call.name)
    if row is None:
        return Refusal(
            f"the aggregate '{call.name}' over a window",
            "its result is a sketch in a format of Spark's own",
            "approx_count_distinct, approx_percentile and approx_top_k can be run, with exact results",
            call.span,
        )
    for argument in call.arguments if row.family is not Family.COUNT else ():
        if _is_lost(argument.type):
            return Refusal(
                f"{call.name} of values of type {argument.type} over a window",
                "state cannot hold such values",
                "convert the argument, for example to a STRING",
                argument.span or call.span,
            )
    if call.constants is None:
        written = ", ".join(map(str, constants(call)))
        return Refusal(
            f"{call.name} with '{written}'",
            "this argument must be a constant",
            "write the value itself, or arithmetic with numbers",
            call.span,
        )
    if call.distinct and row.arguments in (Arguments.FIRST_OF_PAIR, Arguments.SECOND_OF_PAIR):
        return Refusal(
            f"{call.name} with DISTINCT",
            "pairs of values cannot be told apart by one of them",
            "leave DISTINCT out, or read from a query with SELECT DISTINCT",
            call.span,
        )
    return None


def _keys(keys: Iterable[Expr], clause: str) -> Refusal | None:
    """Refuse keys by which Spark cannot distribute tuples, or which state cannot hold."""
    for key in keys:
        if _is_lost(key.type):
            return Refusal(
                f"{clause} '{key}'",
                f"it is of type {key.type}, which state cannot hold",
                "convert it, for example to a STRING",
                key.span,
            )
    return None


def _rows(node: nodes.RelationToStream) -> Refusal | None:
    """Refuse rows of a relation that varies if state cannot hold a column of them."""
    for column in node.input.schema:
        if _is_lost(column.type):
            return Refusal(
                f"a result over windows with the column '{column.name}'",
                f"it is of type {column.type}, which state cannot hold",
                "convert it, for example to a STRING",
            )
    return None


def _is_lost(type_: Type) -> bool:
    """Return whether kernels cannot store values of a type, or a part of them."""
    parts = [type_.key, type_.element, *(field.type for field in type_.fields)]
    return type_.kind in _NOT_KEPT or any(part is not None and _is_lost(part) for part in parts)


def _maintained_aggregate(node: nodes.WindowAggregate) -> Refusal | None:
    return _keys((key.expr for key in node.group_by), "GROUP BY") or next(
        filter(None, map(_aggregate, node.aggregates)), None
    )


def _window_aggregate(node: nodes.WindowAggregate) -> Refusal | None:
    if isinstance(node.input, nodes.InOrder):
        # Without user-defined aggregates, Spark computes them.
        own = any(call.user is not None for call in node.aggregates)
        return next(filter(None, map(_aggregate, node.aggregates)), None) if own else None
    if (lost := _keys((key.expr for key in node.group_by), "GROUP BY")) is not None:
        return lost
    windowed = next(nodes.windows_seen(node.input))
    nearest = node.input
    while isinstance(nearest, nodes.Filter):
        nearest = nearest.input
    if is_contextual(windowed.window) and not isinstance(nearest, nodes.Windowed):
        return Refusal(
            f"a join between the window {windowed.window} and its aggregate",
            "the window depends on tuples that the join would leave out",
            "join the result of the aggregate, or put the window behind the join: FROM (SELECT ...) [...]",
        )
    if (reason := _python_beside_arrivals(node, windowed)) is not None:
        return reason
    return next(filter(None, map(_aggregate, node.aggregates)), None)


def _window_rows(node: nodes.WindowRows) -> Refusal | None:
    """Refuse rows that state cannot hold."""
    for column in node.windowed.input.schema:
        if _is_lost(column.type):
            return Refusal(
                f"a row for each window with the column '{column.name}' below it",
                f"it is of type {column.type}, which state cannot hold",
                "convert it in FROM (SELECT ...), for example to a STRING",
            )
    return None


def _asked_of_content(node: nodes.Node) -> Iterator[tuple[str, Expr]]:
    """Yield the conditions between an aggregate and its window, with the names of their clauses."""
    match node:
        case nodes.Filter():
            yield from (("WHERE", condition) for condition in node.conditions)
        case nodes.TableJoin():
            yield from (("ON", condition) for condition in (node.condition,) if condition is not None)
        case _:
            return
    for below in node.inputs:
        yield from _asked_of_content(below)


def _window(node: nodes.Windowed) -> Refusal | None:
    window = node.window
    if _is_long(node.edge.type):
        why = f"its bounds are {node.edge.type}, and the limit is {_DIGITS} digits"
        return Refusal(f"the window {window}", why, f"use an attribute of at most {_DIGITS} digits")
    if (unjudged := _python(node)) is not None:
        return unjudged
    is_double = node.edge.type.kind in (Kind.FLOAT, Kind.DOUBLE)
    if window.emit_every is not None and (reason := _emission(window, is_double)):
        return reason
    if node.reported is not None and getattr(node.reported.window, "emit_empty", False):
        return Refusal(
            f"an aggregate of the rows of the window {node.reported.window}",
            "a window without tuples has no rows",
            "leave EMIT EMPTY out, or compare only bounds",
        )
    if node.reported is not None and isinstance(node.reported.window.emit_every, Rows):
        return Refusal(
            f"an aggregate of the rows of the window {node.reported.window}",
            "reports after so many rows may have the same timestamp, and then are not told apart",
            "leave EMIT EVERY out, or bounds and grouping sets",
        )
    if counts_arrivals(window) and any(isinstance(n, nodes.StreamUnion) for n in node.input.walk()):
        return Refusal(
            "counting the arrivals of a union",
            "arrivals are numbered stream by stream",
            "count in the order of timestamps: [ROWS n SLIDE m]",
        )
    return None


def _python(node: nodes.Windowed) -> Refusal | None:
    """Late tuples are removed before a function in Python sees them, and with them the progress of others."""
    column = attribute_beside_time(node)
    below = list(node.input.walk())
    if column is None or not any(expr.calls_python for n in below for expr in expressions(n)):
        return None
    if all(n.stream.is_bounded for n in below if isinstance(n, nodes.StreamScan)):
        return None
    return Refusal(
        f"the window {node.window} above a function in Python",
        f"late tuples are removed before the function, and then nothing tells of progress on '{column.name}'",
        "call the function above the window",
    )


def _python_beside_arrivals(node: nodes.WindowAggregate, windowed: nodes.Windowed) -> Refusal | None:
    """Late tuples are removed before a function in Python sees them, but they count as arrivals."""
    if not counts_arrivals(windowed.window) or attribute_beside_time(windowed) is None:
        return None
    for clause, condition in _asked_of_content(node.input):
        if condition.calls_python:
            return Refusal(
                f"a function in Python in {clause} above the window {windowed.window}",
                "the window counts arrivals, so late tuples cannot be removed before the function",
                "call the function in the arguments of the aggregate, or in FILTER",
                condition.span,
            )
    return None


def _emission(window: Window, is_double: bool) -> Refusal | None:
    emit = window.emit_every
    by_instants = "between two doubles there are too many instants to report at"
    whole = "order the stream by a timestamp or a whole number"
    match window:
        case PredicateWindow() if isinstance(emit, Rows):
            return Refusal("EMIT EVERY so many rows with START WHEN", None, "write an interval or a distance")
        case SessionWindow() if is_double:
            return Refusal("EMIT EVERY on sessions of doubles", by_instants, whole)
        case PredicateWindow() if is_double:
            return Refusal("EMIT EVERY with START WHEN on doubles", by_instants, whole)
        case RangeWindow(slide=slide) | LandmarkWindow(slide=slide) | RowWindow(slide=slide) if slide:
            step, often = _whole(_amount(slide), _amount(emit))
            what = f"EMIT EVERY {emit} with SLIDE {slide}"
            if is_double and step % often:
                return Refusal(what, "it does not divide SLIDE", "choose one that divides SLIDE")
            visits = math.lcm(step, often) // min(step, often)
            if not is_double and visits > _MANY:
                why = f"it needs {visits:,} instants of emission, and the limit is {_MANY:,}"
                return Refusal(what, why, "choose one that divides SLIDE")
    return None


def _whole(one: Fraction, other: Fraction) -> tuple[int, int]:
    """Return two amounts as integer multiples of a common unit."""
    unit = math.lcm(one.denominator, other.denominator)
    return int(one * unit), int(other * unit)


def _amount(quantity: Quantity | None) -> Fraction:
    match quantity:
        case Rows(count):
            return Fraction(count)
        case Duration(microseconds):
            return Fraction(microseconds)
        case Distance(value):
            return Fraction(value)
        case _:
            raise AssertionError(f"no amount: {quantity}")


def require_executable(plan: nodes.Node, query: Query) -> None:
    """Refuse by name a plan that cannot be run."""
    reason = why_not(plan)
    if reason is not None:
        hint = reason.hint or (_WHOLE_LANGUAGE if reason.why is None else None)
        raise NotExecutableError(reason.message, span=reason.span or query.span, hint=hint)
