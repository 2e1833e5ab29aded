"""What this version can run: a list, so that nothing falls through in silence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from millstream.analysis.queries.call_nodes import AggregateCall, OverCall
from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.queries.resolved_query import Query
from millstream.errors import NotExecutableError
from millstream.plan import nodes
from millstream.plan.aggregate_strategies import AGGREGATES, constants
from millstream.plan.maintained_relations import why_not_maintained
from millstream.plan.relation_variance import varies
from millstream.quantity import Distance, Duration, Quantity, Rows
from millstream.types import Kind, Type
from millstream.windows.window_spec import (
    LandmarkWindow,
    PredicateWindow,
    RangeWindow,
    RowWindow,
    SessionWindow,
    TupleSlideWindow,
    Window,
)

_NOT_KEPT = frozenset({Kind.VARIANT, Kind.YEAR_MONTH_INTERVAL})
"""Kinds of values that kernels cannot remember; they only pass through."""


_THIS_PATTERN = "this pattern: "
_ON_BOUNDS = "a condition on the bounds of a window in"

_MANY = 1_000_000
"""Instants of emission before everything repeats; more would take much memory."""


def why_not(plan: nodes.Node) -> str | None:
    """The first thing in a plan that cannot be run yet, in words, or None."""
    for node in plan.walk():
        match node:
            case nodes.BaseAggregate():
                reason: str | None = next(filter(None, map(_user, node.aggregates)), None) or _input(node)
            case nodes.OverAggregate():
                reason = next(filter(None, map(_over, node.calls)), None) or _input(node)
            case nodes.WindowAggregate():
                reason = (_maintained_aggregate if varies(node) else _window_aggregate)(node) or _input(node)
            case nodes.RelationToStream():
                reason = why_not_maintained(node)
            case nodes.PatternMatch():
                reason = _pattern(node) or _input(node)
            case nodes.Windowed():
                reason = _window(node)
            case _:
                reason = None
        if reason is not None:
            return reason
    return None


def _pattern(node: nodes.PatternMatch) -> str | None:
    unfit = node.pattern.unfit
    return None if unfit is None else f"{_THIS_PATTERN}{unfit}"


def _input(node: nodes.Node) -> str | None:
    latent = any(isinstance(n, nodes.StreamUnion) and n.latent for n in node.walk())
    return "an aggregate over a union with a latent stream" if latent else None


def _over(over: OverCall) -> str | None:
    if over.call.user is None:
        return _aggregate(over.call)
    unbounded = over.frame.preceding is None
    if (over.call.filter is not None or over.call.distinct) and (unbounded or over.active_expiration):
        window = "with ACTIVE EXPIRATION" if over.active_expiration else "over an unbounded window"
        return f"FILTER or DISTINCT of '{over.call.name}' {window}"
    return _user(over.call)


def _user(call: AggregateCall) -> str | None:
    """Why an aggregate of the user's cannot be run."""
    assert call.bodies is not None, "it is the user's"
    if call.bodies.unfit is not None:
        return call.bodies.unfit
    return None


def _aggregate(call: AggregateCall) -> str | None:
    name = call.name.lower()
    if call.user is not None:
        return _user(call)
    if name not in AGGREGATES:
        return f"the aggregate '{call.name}' over a window"
    for argument in call.arguments if name != "count" else ():
        if _is_lost(argument.type):
            return f"{call.name} of values of type {argument.type} over a window"
    for argument in constants(call):
        if next(argument.columns(), None) is not None:
            return f"{call.name} with '{argument}', which is not constant,"
    return None


def _is_lost(type_: Type) -> bool:
    """Whether kernels cannot remember values of a type, or a part of them."""
    parts = [type_.key, type_.element, *(field.type for field in type_.fields)]
    return type_.kind in _NOT_KEPT or any(part is not None and _is_lost(part) for part in parts)


def _maintained_aggregate(node: nodes.WindowAggregate) -> str | None:
    return next(filter(None, map(_aggregate, node.aggregates)), None)


def _window_aggregate(node: nodes.WindowAggregate) -> str | None:
    if isinstance(node.input, nodes.InOrder):
        # Without aggregates of the user's it is Spark that computes them.
        own = any(call.user is not None for call in node.aggregates)
        return next(filter(None, map(_aggregate, node.aggregates)), None) if own else None
    windowed = next(nodes.windows_seen(node.input))
    nearest = node.input
    while isinstance(nearest, nodes.Filter):
        nearest = nearest.input
    contextual = isinstance(windowed.window, RowWindow | TupleSlideWindow | SessionWindow | PredicateWindow)
    if contextual and not isinstance(nearest, nodes.Windowed):
        return f"a join between the window {windowed.window} and its aggregate"
    for clause, condition in _asked_of_content(node.input):
        if not set(windowed.bounds).isdisjoint(condition.columns()):
            return f"{_ON_BOUNDS} {clause}"
    return next(filter(None, map(_aggregate, node.aggregates)), None)


def _asked_of_content(node: nodes.Node) -> Iterator[tuple[str, Expr]]:
    """The conditions between an aggregate and its window, with the names of their clauses."""
    match node:
        case nodes.Filter():
            yield from (("WHERE", condition) for condition in node.conditions)
        case nodes.TableJoin():
            yield from (("ON", condition) for condition in (node.condition,) if condition is not None)
        case _:
            return
    for below in node.inputs:
        yield from _asked_of_content(below)


def _window(node: nodes.Windowed) -> str | None:
    window = node.window
    if isinstance(window, RangeWindow) and window.slide is None and not node.streaming:
        return "a window without SLIDE on a table"
    is_double = node.edge.type.kind in (Kind.FLOAT, Kind.DOUBLE)
    if window.emit_every is not None and (reason := _emission(window, is_double)):
        return reason
    counts_arrivals = isinstance(window, RowWindow) and window.by_arrival
    counts_arrivals |= isinstance(window, TupleSlideWindow) and not window.by_rank
    if counts_arrivals and any(isinstance(n, nodes.StreamUnion) for n in node.input.walk()):
        return "counting the arrivals of a union"
    return None


def _emission(window: Window, is_double: bool) -> str | None:
    emit = window.emit_every
    match window:
        case PredicateWindow() if isinstance(emit, Rows):
            return "EMIT EVERY so many rows with START WHEN"
        case SessionWindow() if is_double:
            return "EMIT EVERY on sessions of doubles"
        case PredicateWindow() if is_double:
            return "EMIT EVERY with START WHEN on doubles"
        case RangeWindow(slide=slide) | LandmarkWindow(slide=slide) | RowWindow(slide=slide) if slide:
            step, often = _whole(_amount(slide), _amount(emit))
            if is_double:
                return f"EMIT EVERY {emit}, which does not go into SLIDE {slide}," if step % often else None
            visits = math.lcm(step, often) // min(step, often)
            return f"EMIT EVERY {emit} on SLIDE {slide}, so many times," if visits > _MANY else None
    return None


def _whole(one: Fraction, other: Fraction) -> tuple[int, int]:
    """Two amounts as multiples of a third one: only their proportion counts."""
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
            raise AssertionError("there is no such amount")


def in_words(reason: str) -> str:
    """A sentence for people; of patterns it is said what in them cannot be run."""
    if reason.startswith(_THIS_PATTERN):
        return f"this pattern cannot be searched for: {reason.removeprefix(_THIS_PATTERN)}"
    if reason.startswith(_ON_BOUNDS):
        return f"{reason} cannot be run: the bounds are known to HAVING, so write it there"
    return f"{reason} cannot be run by this version of Millstream yet"


def require_executable(plan: nodes.Node, query: Query) -> None:
    """Refuse by name what cannot be run yet."""
    reason = why_not(plan)
    if reason is not None:
        raise NotExecutableError(
            in_words(reason),
            span=query.span,
            hint=None
            if reason.startswith(_ON_BOUNDS)
            else "`millstream check` and EXPLAIN LOGICAL work on the whole language",
        )
