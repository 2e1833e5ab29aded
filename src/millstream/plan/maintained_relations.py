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
from millstream.plan.relation_variance import VIEW, maintained, varies
from millstream.plan.time_attributes import attribute_beside_time
from millstream.types import Kind
from millstream.windows.window_properties import (
    counts_arrivals,
    has_bounds,
    is_contextual,
    is_of_months,
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


def takes_tuples_as_they_come(windowed: nodes.Windowed) -> bool:
    """Return whether the timestamp of a tuple, and no other tuple, tells its lifetime in a window."""
    return not is_contextual(windowed.window) and attribute_beside_time(windowed) is None


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
            return of_tuples(node) is not None  # changes of a window of rows lose their order
        case _:
            return False


def bounded(node: nodes.Node) -> nodes.Node:
    """Replace the bounds of landmark windows by conditions on their tuples."""
    if isinstance(node, nodes.Windowed):
        conditions = () if is_contextual(node.window) else tuple(bounds(node))
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


Reason = tuple[str, str | None, str | None]
"""A part that cannot be maintained, the reason if there is one, and a remedy."""


def why_not_maintained(node: nodes.RelationToStream) -> Reason | None:
    """Describe the first part that cannot be maintained, or return None."""
    windowed = [n for n in maintained(node.input) if isinstance(n, nodes.Windowed)]
    reasons = [*map(_window, windowed), *map(_operator, maintained(node.input))]
    reasons.append(_bounds(node.input, windowed))
    if node.kind == VIEW:
        reasons += map(_in_view, windowed)
    return next(filter(None, reasons), None)


def _window(side: nodes.Windowed) -> Reason | None:
    window = side.window
    name = f"a maintained relation over the window {window}"
    if window.emit_every is not None:
        return name, "it has no reports that could be emitted early", "leave EMIT EVERY out, or write SLIDE"
    if not window.has_state:
        return name, None, None
    if isinstance(window, RangeWindow) and window.cases:
        why = "the extent is known of its ends only"
        return name, why, "leave ISTREAM, DSTREAM, RSTREAM, CHANGES and the join out"
    if is_of_months(window):
        why = "slides are counted in steps of one length, and months differ"
        return name, why, "aggregate it, or select window_end beside the rows"
    if isinstance(window, RangeWindow) and (window.lag is not None or window.emit_empty or window.stamp_last):
        why = "LAG, STAMP LAST and EMIT EMPTY are about reports"
        return name, why, "aggregate it, or select window_end beside the rows"
    if isinstance(window, RowWindow):
        why = "arrivals are not in the order of time, so it has no content at an instant"
        return (name, why, "count in the order of time: [ROWS n]") if counts_arrivals(window) else None
    if is_contextual(window) and slides(window):
        why = "when it begins to slide depends on the first tuple"
        return name, why, "leave SLIDE out, or write dates with the times"
    if has_bounds(window) and window.attribute is None:
        return f"{name} on a timestamp that is no column", None, None
    if slides(window) and side.edge.type.kind in (Kind.FLOAT, Kind.DOUBLE):
        why = "instants of slides are whole numbers of steps, and doubles are not"
        return name, why, "order the stream by a decimal or by a whole number"
    return None


def _in_view(side: nodes.Windowed) -> Reason | None:
    """Refuse a view along an attribute: it is at the instant of the newest timestamp."""
    if not is_of_time(side.window) or attribute_beside_time(side) is None:
        return None
    why = "a view is at an instant of the timestamp, and the window has instants of another attribute"
    return f"a view of the window {side.window}", why, "make a stream of it: SELECT CHANGES ..."


def _operator(node: nodes.Node) -> Reason | None:
    if isinstance(node, nodes.Windowed) and any(not column.type.is_known for column in node.schema):
        return f"a maintained relation over '{node.alias}', whose columns only Spark knows,", None, None
    return None


def _bounds(node: nodes.Node, windowed: Sequence[nodes.Windowed]) -> Reason | None:
    """Refuse bounds of a window that is observed at every instant: it has none."""
    columns = mentioned(node)
    for side in windowed:
        for bound in side.bounds:
            if bound in columns:
                what = f"'{bound.name}' of the window {side.window} in a query without a row for each window"
                return what, None, None
    return None
