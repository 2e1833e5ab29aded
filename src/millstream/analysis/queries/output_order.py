"""The order of what a SELECT gives: the timestamp travels with every tuple, selected or not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.resolved_query import Output
from millstream.analysis.queries.scope import Scope
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.analysis.types.coercion import common_type
from millstream.catalog.entries import Timestamp, TimestampKind
from millstream.errors import AnalysisError, Span
from millstream.types import INTEGRAL_KINDS, TIME_KINDS, TIMESTAMP, UNKNOWN, Kind, Type
from millstream.windows.window_properties import is_stamped_apart
from millstream.windows.window_spec import RowWindow, Window


def order_of_windows(
    outputs: Sequence[Output], facts: StreamFacts, window: Window, scope: Scope
) -> StreamFacts:
    """Return the order of results of windows."""
    if isinstance(window, RowWindow):
        # Its bounds are numbers of rows: the result has the time of the tuple that completes it.
        return replace(facts, timestamp=replace(facts.timestamp, column=None), promised=frozenset())
    if is_stamped_apart(window):
        # What is reported early or late has the instant at which it is, not the end of its window.
        timestamp = Timestamp(TimestampKind.EXTERNAL, None, _edge_type(scope, facts))
        return replace(facts, timestamp=timestamp, promised=frozenset())
    ends = {
        r.bound(field.name) for r in scope.relations for field in r.implicit if field.name == "window_end"
    }
    end = next((o for o in outputs if o.expr.column in ends), None)
    type_ = _edge_type(scope, facts) if end is None else end.expr.type
    timestamp = Timestamp(TimestampKind.EXTERNAL, end.name if end else None, type_)
    return replace(facts, timestamp=timestamp, promised=_names(timestamp))


def order_of_tuples(
    outputs: Sequence[Output], facts: StreamFacts, *, unchanged: bool, stamped: bool
) -> StreamFacts:
    """Return the order of tuples, ``unchanged`` or not, with their own time or ``stamped``."""
    selected = {o.expr.column.name.lower(): o.name for o in outputs if o.expr.column is not None}
    if stamped:
        selected = {}  # no column has the instant
    column = selected.get((facts.timestamp.column or "").lower())
    timestamp = Timestamp(facts.timestamp.kind, column, facts.timestamp.type)
    # What is promised about other attributes holds while tuples pass as they were read.
    promised = {selected[name].lower() for name in facts.promised if name in selected} if unchanged else set()
    return replace(facts, timestamp=timestamp, promised=frozenset(promised) | _names(timestamp))


def order_of_instants(
    outputs: Sequence[Output], facts: StreamFacts, instants: Collection[ColumnRef]
) -> StreamFacts:
    """Return the order of rows that are made of tuples of one instant, which some columns hold."""
    held = (
        output
        for output in outputs
        if (column := output.expr.column) is not None
        and ColumnRef(column.relation.lower(), column.name.lower()) in instants
    )
    name = next((output.name for output in held), None)
    timestamp = Timestamp(TimestampKind.EXTERNAL, name, facts.timestamp.type)
    return replace(facts, timestamp=timestamp, promised=_names(timestamp))


def common_order(facts: Iterable[StreamFacts], span: Span | None, *, maintained: bool) -> Type:
    """Return the common type of the timestamps of several streams; latent ones have arrival times.

    Where contents of windows are ``maintained``, all windows are measured in the same units: seconds and
    days are, integers are, but not integers and fractions.
    """
    first, *others = (_order_type(one.timestamp) for one in facts)
    for other in others:
        common = common_type(first, other)
        if common is None or (maintained and not _same_units(first, other)):
            raise AnalysisError(
                f"streams ordered by {first} and by {other} cannot be merged",
                span=span,
                hint="order both by a time, or both by numbers of the same type",
            )
        first = common
    return first


def _same_units(one: Type, other: Type) -> bool:
    families = (TIME_KINDS, INTEGRAL_KINDS, {Kind.FLOAT, Kind.DOUBLE})
    is_known = one.is_known and other.is_known
    if one.kind is other.kind is Kind.DECIMAL:
        return one.scale == other.scale  # ends of windows have more digits before the point
    return not is_known or one == other or any({one.kind, other.kind} <= set(kinds) for kinds in families)


def _order_type(timestamp: Timestamp) -> Type:
    return TIMESTAMP if timestamp.kind is TimestampKind.LATENT else timestamp.type or UNKNOWN


def _edge_type(scope: Scope, facts: StreamFacts) -> Type | None:
    for relation in scope.relations:
        for field in relation.implicit:
            if field.name == "window_end":
                return field.type
    return facts.timestamp.type


def _names(timestamp: Timestamp) -> frozenset[str]:
    return frozenset({timestamp.column.lower()} if timestamp.column else ())
