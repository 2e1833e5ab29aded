"""Results that are maintained at every instant, in the form in which they are run, or why they are not.

Conditions on rows commute with windows of time, so that these can be asked of tuples before their window; of
windows of rows they are asked of what is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.plan import nodes
from millstream.plan.join_conditions import EqualColumns, bounds, equality
from millstream.plan.relation_variance import RSTREAM, is_logical, maintained, runs_dry, varies
from millstream.plan.time_attributes import attribute_beside_time
from millstream.types import Kind
from millstream.windows.window_spec import LandmarkWindow, NowWindow, RangeWindow, RowWindow, Window, slides


@dataclass(frozen=True)
class Conditions:
    """What a join asks: that columns are equal, and the rest."""

    equal: tuple[EqualColumns, ...]
    rest: tuple[Expr, ...]


def conditions_of(conditions: Iterable[Expr], left: nodes.Node, right: nodes.Node) -> Conditions:
    equal, rest = [], []
    for condition in conditions:
        same = equality(condition, left, right)
        if same is None:
            rest.append(condition)
        else:
            equal.append(same)
    return Conditions(tuple(equal), tuple(rest))


def merged(node: nodes.Node) -> nodes.Node:
    """What is asked of the pairs of an inner join is asked by the join."""
    if isinstance(node, nodes.Filter) and isinstance(node.input, nodes.WindowJoin):
        join = node.input
        if join.kind in ("inner", "cross"):
            return replace(join, kind="inner", conditions=(*join.conditions, *node.conditions))
    return node


def of_tuples(node: nodes.Node) -> nodes.Windowed | None:
    """The window of time whose tuples a node gives, if it does nothing that could not be done before it."""
    match node:
        case nodes.Windowed(window=RangeWindow() | LandmarkWindow() | NowWindow()):
            return node
        case nodes.Rename() | nodes.Filter() | nodes.Project():
            return of_tuples(node.input)
        case nodes.TableJoin(kind=kind):
            stream, fits = (
                (node.left, kind in ("inner", "cross", "left", "anti"))
                if node.left.streaming
                else (node.right, kind in ("inner", "cross", "right"))
            )
            return of_tuples(stream) if fits else None
        case _:
            return None


def bounded(node: nodes.Node) -> nodes.Node:
    """The same, with landmark windows as conditions on their tuples."""
    if isinstance(node, nodes.Windowed):
        asked = tuple(bounds(node))
        return replace(node, input=nodes.filtered(node.input, asked)) if asked else node
    return node.map_inputs(bounded) if varies(node) else node


def mentioned(node: nodes.Node) -> frozenset[ColumnRef]:
    """All columns that anybody in a result mentions."""
    return frozenset(column for below in maintained(node) for column in _mentioned(below))


def _mentioned(node: nodes.Node) -> Iterator[ColumnRef]:
    for expr in _expressions(node):
        yield from expr.columns()


def _expressions(node: nodes.Node) -> Iterator[Expr]:
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


# ---------------------------------------------------------------- what is not run


def why_not_maintained(node: nodes.RelationToStream) -> str | None:
    """The first thing that cannot be maintained, in words, or None."""
    windowed = [n for n in maintained(node.input) if isinstance(n, nodes.Windowed)]
    reasons = [*map(_window, windowed), *map(_operator, maintained(node.input))]
    reasons += [_beside(windowed), _bounds(node.input, windowed)]
    sliding = [side.window for side in windowed if slides(side.window)]
    if node.kind == RSTREAM and sliding and (not runs_dry(node.input) or all(map(_ends, sliding))):
        reasons.append("RSTREAM of rows that never leave")
    if node.kind == RSTREAM and any(isinstance(w.window, RowWindow) and slides(w.window) for w in windowed):
        reasons.append("RSTREAM of a window of rows that slides")
    return next(filter(None, reasons), None)


def _ends(window: Window) -> bool:
    """Whether a window slides for the last time: afterwards nobody looks, and nothing is seen to leave."""
    return isinstance(window, LandmarkWindow) and window.end is not None


def _window(side: nodes.Windowed) -> str | None:
    window = side.window
    name = f"what is maintained of the window {window}"
    if window.emit_every is not None or not isinstance(
        window, RangeWindow | LandmarkWindow | NowWindow | RowWindow
    ):
        return name
    if isinstance(window, RowWindow):
        return f"{name}, which counts arrivals," if window.by_arrival else None
    if attribute_beside_time(side) is not None:
        return f"{name}, which is not measured by the timestamp,"
    if not is_logical(window):
        return f"{name}, whose bound is a time of day,"
    limits = (window.start, window.end) if isinstance(window, LandmarkWindow) else ()
    if any(limit is not None for limit in limits) and window.attribute is None:
        return f"{name} on a timestamp that is no column"
    if slides(window) and side.edge.type.kind in (Kind.FLOAT, Kind.DOUBLE):
        return f"{name}, which slides along doubles,"
    return None


def _operator(node: nodes.Node) -> str | None:
    match node:
        case nodes.Windowed():
            if any(not column.type.is_known for column in node.schema):
                return f"what is maintained of '{node.alias}', whose columns only Spark knows,"
        case nodes.TableJoin() if varies(node) and of_tuples(node) is None:
            return f"a {node.kind.upper()} join of a table with what is maintained"
        case nodes.WindowAggregate() if any(call.user is not None for call in node.aggregates):
            below = [n for n in maintained(node.input) if not isinstance(n, nodes.Filter | nodes.Project)]
            if any(isinstance(n, nodes.WindowAggregate) for n in below):
                return "aggregates of your own over aggregates that are maintained"
    return None


def _beside(windowed: Sequence[nodes.Windowed]) -> str | None:
    """Windows of rows that slide do so at instants that only they know."""
    for side in windowed:
        if isinstance(side.window, RowWindow) and slides(side.window) and len(windowed) > 1:
            return f"the window {side.window}, which slides, beside another one"
    return None


def _bounds(node: nodes.Node, windowed: Sequence[nodes.Windowed]) -> str | None:
    """A window whose content is asked for at every instant has no bounds that could be named."""
    asked = mentioned(node)
    for side in windowed:
        for bound in side.bounds:
            if bound in asked:
                return f"'{bound.name}' of the window {side.window} in a query without a row for each window"
    return None
