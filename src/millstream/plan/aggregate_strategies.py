"""Strategies for calls of aggregates over windows, in words and with the cost of a result."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import Expr
from millstream.catalog.builtin_aggregates import (
    DIFFERENCE,
    EXACT,
    ORDER,
    RECOMPUTED,
    RUNNING,
    STACKS,
    Arguments,
    Family,
    Strategy,
    Within,
    builtin_aggregate,
    function_of,
)
from millstream.types import Kind


def constants(call: AggregateCall) -> tuple[Expr, ...]:
    """The arguments of a call that must be constants."""
    row = builtin_aggregate(call.name)
    if row is None:
        return ()
    behind = len(call.within) if row.within is Within.LAST else 0
    return call.arguments[: len(call.arguments) - behind][row.first_constant : row.last_constant]


def strategy(call: AggregateCall, *, unbounded: bool = False) -> Strategy | None:
    """Say how a call is computed, None if that is unknown; ``unbounded`` if nothing ever leaves the window.

    User-defined aggregates are recomputed over windows of a stream; over windows of their own, their versions
    say how they are computed.
    """
    if call.user is not None:
        return RECOMPUTED
    row = builtin_aggregate(call.name)
    if row is None:
        return None
    function = function_of(row, len(call.arguments))
    chosen = EXACT if row.is_approximate and row.family is Family.ORDER else row.family.strategy
    if call.distinct and not row.same_if_distinct:
        chosen = ORDER if function == "count" and len(call.arguments) == 1 else RECOMPUTED
    elif row.content_form is not None and len(call.arguments) == row.content_form[0]:
        chosen = RECOMPUTED
    elif row.arguments is Arguments.SUMMAND and _is_added_as_double(call):
        # What was added to a double cannot be taken away again without a trace.
        chosen = STACKS
    return RUNNING if unbounded and chosen in (DIFFERENCE, STACKS) else chosen


def _is_added_as_double(call: AggregateCall) -> bool:
    return call.arguments[0].type.kind in (Kind.FLOAT, Kind.DOUBLE, Kind.STRING)


def notes(calls: Iterable[tuple[AggregateCall, bool]]) -> list[str]:
    """Return a line for each call, which comes with a flag for an unbounded window."""
    lines = []
    for call, unbounded in calls:
        chosen = strategy(call, unbounded=unbounded)
        if chosen is not None:
            lines.append(f"{call.result}: {chosen}")
    return lines
