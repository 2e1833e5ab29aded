"""A condition on the content of a window of time is one on the stream."""

from __future__ import annotations

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.plan.nodes import Filter, Node, RelationToStream, Windowed, filtered
from millstream.plan.relation_variance import RSTREAM, changed_below, is_logical, runs_dry, windows_in
from millstream.windows.window_spec import slides


def push_filter_below_window(node: Node) -> Node:
    """``Filter (Windowed x)`` becomes ``Windowed (Filter x)``, so that no tuple is kept for nothing.

    Selection commutes with logical windows only (Patroumpas and Sellis, section 5): the latest n tuples are
    others once some have been left out. Windows that are reported when they end are left alone: there the
    condition is asked before a window is filled in any case.
    """
    if not isinstance(node, RelationToStream) or _shows_every_slide(node):
        return node
    return changed_below(node, _sunk)


def _shows_every_slide(node: RelationToStream) -> bool:
    """Whether a result that stays is given again at slides up to the last tuple, whatever that is."""
    return node.kind == RSTREAM and any(map(slides, windows_in(node.input))) and not runs_dry(node.input)


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
    """Whether a condition speaks of tuples only, and a window holds the same ones if it is asked before."""
    bounds = {_key(column) for column in windowed.bounds}
    columns = [_key(column) for column in condition.columns()]
    return (
        windowed.streaming
        and is_logical(windowed.window)
        and condition.movable
        and bool(columns)
        and bounds.isdisjoint(columns)
    )


def _key(column: ColumnRef) -> tuple[str, str]:
    return column.relation.lower(), column.name.lower()
