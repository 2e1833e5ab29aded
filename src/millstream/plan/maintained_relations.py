"""Maintained relations in executable form, or the reason why they cannot be maintained.

Conditions on rows commute with windows of time, so they can be tested on tuples before the window; on windows
of rows they are tested on the content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.plan import nodes
from millstream.plan.join_conditions import bounds
from millstream.plan.relation_variance import maintained, varies
from millstream.plan.time_attributes import attribute_beside_time
from millstream.types import Kind
from millstream.windows.window_properties import (
    counts_arrivals,
    has_bounds,
    is_contextual,
    is_of_time,
    slides,
)
from millstream.windows.window_spec import RangeWindow, RowWindow


def merged(node: nodes.Node) -> nodes.Node:
    """Move a filter over an inner join into the conditions of the join."""
    if isinstance(node, nodes.Filter) and isinstance(node.input, nodes.WindowJoin):
        join = node.input
        if join.kind in ("inner", "cross"):
            return replace(join, kind="inner", conditions=(*join.conditions, *node.conditions))
    return node


def of_tuples(node: nodes.Node) -> nodes.Windowed | None:
    """Return the window of time below a node whose operators all commute with the window, else None."""
    match node:
        case nodes.Windowed(window=window) if is_of_time(window):
            return node
        case nodes.Rename() | nodes.Filter() | nodes.Project():
            return of_tuples(node.input)
        case nodes.TableJoin():
            return of_tuples(node.left if node.left.streaming else node.right)
        case _:
            return None


def tuples_of(node: nodes.Node) -> nodes.Node:
    """Return the same operators on tuples, without the window of time below them."""
    if isinstance(node, nodes.Windowed) and node.streaming:
        return node.input
    return node.map_inputs(tuples_of) if varies(node) else node


def is_in_order(node: nodes.Node) -> bool:
    """Return whether rows have the order of a stream, as tuples of one window, not pairs or groups."""
    match node:
        case nodes.Windowed():
            return True
        case nodes.Rename() | nodes.Filter() | nodes.Project():
            return is_in_order(node.input)
        case nodes.TableJoin():
            return is_in_order(node.left if node.left.streaming else node.right)
        case _:
            return False


def bounded(node: nodes.Node) -> nodes.Node:
    """Replace the bounds of landmark windows by conditions on their tuples."""
    if isinstance(node, nodes.Windowed):
        conditions = tuple(bounds(node))
        return replace(node, input=nodes.filtered(node.input, conditions)) if conditions else node
    return node.map_inputs(bounded) if varies(node) else node


def mentioned(node: nodes.Node) -> frozenset[ColumnRef]:
    """Return all columns that a result uses."""
    return frozenset(column for below in maintained(node) for column in _mentioned(below))


def _mentioned(node: nodes.Node) -> Iterator[ColumnRef]:
    for expr in expressions(node):
        yield from expr.columns()


def expressions(node: nodes.Node) -> Iterator[Expr]:
    """The expressions of one node."""
    match node:
        case nodes.Filter() | nodes.WindowJoin():
            yield from node.conditions
        case nodes.Project():
            yield from (output.expr for output in node.outputs)
        case nodes.TableJoin(condition=Expr() as condition):
            yield condition
        case nodes.WindowAggregate():
            yield from (key.expr for key in node.group_by)
            for call in node.aggregates:
                yield from call.arguments
                if call.filter is not None:
                    yield call.filter


# ---------------------------------------------------------------- refusals


def why_not_maintained(node: nodes.RelationToStream) -> str | None:
    """Describe the first part that cannot be maintained, or return None."""
    windowed = [n for n in maintained(node.input) if isinstance(n, nodes.Windowed)]
    reasons = [*map(_window, windowed), *map(_operator, maintained(node.input))]
    reasons.append(_bounds(node.input, windowed))
    return next(filter(None, reasons), None)


def _window(side: nodes.Windowed) -> str | None:
    window = side.window
    name = f"a maintained relation over the window {window}"
    if window.emit_every is not None or not window.has_state:
        return name
    if isinstance(window, RangeWindow) and (window.lag is not None or window.emit_empty or window.stamp_last):
        return f"{name} with LAG, STAMP LAST or EMIT EMPTY"
    if isinstance(window, RowWindow):
        return f"{name}, which counts arrivals," if counts_arrivals(window) else None
    if attribute_beside_time(side) is not None:
        return f"{name}, which is not measured by the timestamp,"
    if is_contextual(window):
        return f"{name}, whose bound is a time of day,"
    if has_bounds(window) and window.attribute is None:
        return f"{name} on a timestamp that is no column"
    if slides(window) and side.edge.type.kind in (Kind.FLOAT, Kind.DOUBLE):
        return f"{name}, which slides along doubles,"
    return None


def _operator(node: nodes.Node) -> str | None:
    match node:
        case nodes.Windowed():
            if any(not column.type.is_known for column in node.schema):
                return f"a maintained relation over '{node.alias}', whose columns only Spark knows,"
    return None


def _bounds(node: nodes.Node, windowed: Sequence[nodes.Windowed]) -> str | None:
    """Refuse bounds of a window that is observed at every instant: it has none."""
    columns = mentioned(node)
    for side in windowed:
        for bound in side.bounds:
            if bound in columns:
                return f"'{bound.name}' of the window {side.window} in a query without a row for each window"
    return None
