"""Queries whose results are relations that vary with time, and not streams (semantics, section 9)."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.analysis.queries.call_nodes import is_running
from millstream.analysis.queries.from_clause import facts_of
from millstream.analysis.queries.resolved_query import (
    FromItem,
    Query,
    ReadLateral,
    ReadQuery,
    Select,
    SetOperation,
)
from millstream.windows.window_properties import has_ends
from millstream.windows.window_spec import LandmarkWindow, Window


def is_relation(query: Query) -> bool:
    """Tell whether a query gives a relation over the current contents of windows."""
    match query:
        case Select():
            return (
                query.facts is not None
                and query.to_stream is None
                and not query.is_ranked
                and not query.implied
                and takes_relations(query)
                and any(reads_relation(item, query.items()) for item in query.items())
                and not _is_reported(query)
            )
        case SetOperation():
            return query.to_stream is None and is_on_windows(query)
        case _:
            return False


def is_on_windows(query: SetOperation) -> bool:
    """Tell whether a set operation combines contents of windows, and not streams or tables.

    A derived stream is a stream, also if it was made of windows, and so are reports of windows that end:
    UNION merges them by timestamp. EXCEPT and INTERSECT are about contents, and so is every set operation
    with one of the words ISTREAM, DSTREAM, RSTREAM and CHANGES.
    """
    if query.facts is None:
        return False
    asked = query.kind != "UNION" or query.to_stream is not None
    return asked or is_relation(query.left) or is_relation(query.right)


def takes_relations(query: Select) -> bool:
    """Tell whether a SELECT works on relations: OVER, patterns and running aggregates are about streams."""
    return query.pattern is None and not query.overs and not any(map(is_running, query.aggregates))


def has_content(item: FromItem) -> bool:
    """Tell whether an item of FROM has a content at every instant: a window, or a query over windows."""
    if window_of(item) is not None:
        return facts_of(item) is not None
    return isinstance(item, ReadQuery) and is_relation(item.query)


def reads_relation(item: FromItem, items: Iterable[FromItem]) -> bool:
    """Tell whether an item has a content at every instant beside the other ``items`` of FROM.

    In a join, an aggregate over a window that only grows is its current result. By itself it is reported when
    the input ends.
    """
    is_joined = sum(facts_of(one) is not None for one in items) > 1
    return has_content(item) or (is_joined and isinstance(item, ReadQuery) and _only_grows(item.query))


def window_of(item: FromItem) -> Window | None:
    return None if isinstance(item, ReadLateral) else item.window


def _only_grows(query: Query) -> bool:
    """Tell whether a query aggregates one window that no tuple leaves, and that only the input ends."""
    if not isinstance(query, Select) or query.to_stream is not None or query.is_ranked:
        return False
    if not takes_relations(query):
        return False
    windows = [window for item in query.items() if (window := window_of(item)) is not None]
    match windows:
        case [LandmarkWindow(end=None, slide=None, emit_every=None)]:
            return _is_reported(query)
        case _:
            return False


def _is_reported(query: Select) -> bool:
    """Tell whether windows are reported when they end: an aggregate over one window that has ends."""
    if query.current:
        return False
    if not query.aggregates and not query.group_by:
        return query.by_window
    streams = [item for item in query.items() if facts_of(item) is not None]
    window = window_of(streams[0])
    if len(streams) > 1 or window is None:
        return False
    return has_ends(window)
