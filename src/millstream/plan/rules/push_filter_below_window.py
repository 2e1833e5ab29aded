"""Filters on the content of a window of time, moved to its stream."""

from __future__ import annotations

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.plan.nodes import Filter, Node, RelationToStream, Windowed, filtered
from millstream.plan.relation_variance import changed_below
from millstream.windows.window_properties import is_contextual


def push_filter_below_window(node: Node) -> Node:
    """``Filter (Windowed x)`` becomes ``Windowed (Filter x)``, so that filtered tuples are not stored.

    Selection commutes with logical windows only (Patroumpas and Sellis, section 5): dropping tuples changes
    which are the latest n. Windows that are reported when they end are not rewritten: there the condition is
    tested before a window is filled anyway.
    """
    if not isinstance(node, RelationToStream):
        return node
    return changed_below(node, _sunk)


def _sunk(node: Node) -> Node:
    if not isinstance(node, Filter) or not isinstance(node.input, Windowed):
        return node
    windowed = node.input
    below = tuple(c for c in node.conditions if is_askable_below(c, windowed))
    if not below:
        return node
    above = [c for c in node.conditions if c not in below]
    window = Windowed(Filter(windowed.input, below), windowed.alias, windowed.window, windowed.edge)
    return filtered(window, above)


def is_askable_below(condition: Expr, windowed: Windowed) -> bool:
    """Return whether a condition concerns tuples only and can be tested before a window."""
    bounds = {_key(column) for column in windowed.bounds}
    columns = [_key(column) for column in condition.columns()]
    return (
        windowed.streaming
        and not is_contextual(windowed.window)
        and condition.movable
        and bool(columns)
        and bounds.isdisjoint(columns)
    )


def _key(column: ColumnRef) -> tuple[str, str]:
    return column.relation.lower(), column.name.lower()
