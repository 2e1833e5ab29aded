"""Columns of a stream that follow from its timestamp: the timestamp itself, and where a window begins."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from millstream.analysis.queries.from_clause import columns_of, facts_of
from millstream.analysis.queries.relation_kind import window_of
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.resolved_query import FromItem, ReadQuery, ReadStream, Select
from millstream.catalog.entries import Derived
from millstream.quantity import Distance, Duration
from millstream.types import Kind, Type
from millstream.windows.window_properties import is_of_months
from millstream.windows.window_spec import NowWindow, RangeWindow

Distances = Mapping[str, Fraction]
"""Columns by name in lower case, with what must be added to the timestamp."""


def instant_columns(item: FromItem) -> Distances:
    """Return the columns of a stream whose distance from its timestamp is always the same.

    Of the reports of windows of fixed length, the begin of the window is one of them.
    """
    facts = facts_of(item)
    if facts is None:
        return {}
    itself = {facts.timestamp.column.lower(): Fraction(0)} if facts.timestamp.column else {}
    match item:
        case ReadQuery(query=Select() as query):
            return {**_selected(query), **itself}
        case ReadStream(stream=stream) if isinstance(stream.origin, Derived):
            definition = stream.origin.definition
            return {**(_selected(definition) if isinstance(definition, Select) else {}), **itself}
        case _:
            return itself


def amount(quantity: Duration | Distance) -> Fraction:
    """Return an amount as a number: of microseconds, or along a numeric attribute."""
    return Fraction(quantity.microseconds if isinstance(quantity, Duration) else quantity.value)


def _selected(query: Select) -> Distances:
    streams = [item for item in query.items() if facts_of(item) is not None]
    if len(streams) != 1 or query.to_stream is not None or query.overs or query.pattern is not None:
        return {}
    item, window = streams[0], window_of(streams[0])
    reports = bool(query.aggregates or query.group_by or query.by_window)
    known: dict[ColumnRef, Fraction] = {}
    if isinstance(window, NowWindow) or (window is None and not reports):
        known = {ColumnRef(item.alias, name): distance for name, distance in instant_columns(item).items()}
    elif isinstance(window, RangeWindow) and reports:
        known = _bounds(item, window)
    found = {}
    for output in query.outputs:
        column = output.expr.column
        own = None if column is None else ColumnRef(column.relation, column.name.lower())
        if own in known:
            found[output.name.lower()] = known[own]
    return found


def _bounds(item: FromItem, window: RangeWindow) -> dict[ColumnRef, Fraction]:
    """Return the bounds of windows of fixed length on the timestamp that are reported when they end."""
    facts = facts_of(item)
    timestamp = facts.timestamp if facts is not None else None
    if timestamp is None or window.slide is None or window.emit_every is not None:
        return {}
    by_time = (window.attribute or "").lower() == (timestamp.column or "").lower()
    if not by_time or timestamp.type is None or timestamp.type.kind in (Kind.FLOAT, Kind.DOUBLE):
        return {}
    columns = {field.name.lower() for field in columns_of(item) or ()}
    end = Fraction(0) if window.lag is None else -amount(window.lag)
    end += _instant(timestamp.type) if window.stamp_last else 0
    distances = {"window_end": end}
    if not window.cases:  # the length of the window is fixed
        distances["window_start"] = end - amount(window.range)
    if is_of_months(window):
        del distances["window_start"]
    # A bound has no relation where a column of the stream has its name.
    return {ColumnRef("" if n in columns else item.alias, n): d for n, d in distances.items()}


def _instant(type_: Type) -> Fraction:
    """Return the distance between two instants."""
    if type_.kind is Kind.DATE:
        return Fraction(86_400_000_000)
    return Fraction(1, 10 ** (type_.scale if type_.kind is Kind.DECIMAL else 0))
