"""Update patterns of results that vary with time: the classes of Patroumpas and Sellis (sections 3, 4).

The class determines which changes a kernel must handle, and so the structure of its state. Neutral operators
pass on the class of their windows (Proposition 6). Interfering operators are monotonic over landmarks and
otherwise at least weak (Proposition 7). Differences, outer and anti joins retract rows because of later
tuples (Proposition 8). Of different windows the least monotonic one decides (Proposition 9).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.plan import nodes
from millstream.plan.relation_variance import maintained, varies, windows_in
from millstream.quantity import size
from millstream.windows.window_spec import LandmarkWindow, RangeWindow, RowWindow, Window


class UpdatePattern(IntEnum):
    """Update patterns, ordered from the most predictable to the least."""

    MONOTONIC = 0
    """No row ever leaves. For an aggregate this concerns its groups, whose values are replaced."""
    WEAKEST = 1
    """Rows leave in the order of their entry: a queue. For a union this concerns the rows of each input."""
    WEAK = 2
    """Rows leave in any order, but at a time (or after a number of tuples) that depends on the windows alone.

    Other tuples can only delay it, as another copy does for a distinct value.
    """
    STRICT = 3
    """Rows also leave because of later tuples: they are retracted, by negative tuples."""

    def __str__(self) -> str:
        return _WORDS[self]


_WORDS = {
    UpdatePattern.MONOTONIC: "monotonic",
    UpdatePattern.WEAKEST: "weakest non-monotonic",
    UpdatePattern.WEAK: "weak non-monotonic",
    UpdatePattern.STRICT: "non-monotonic",
}

_INTERFERING_JOINS = ("inner", "cross", "semi")


def update_pattern(node: nodes.Node) -> UpdatePattern:
    """Return the class of a node of a varying result; tables among its inputs are monotonic."""
    match node:
        case nodes.Windowed() if node.streaming:
            return window_pattern(node.window)
        case nodes.Filter() | nodes.WindowJoin() if _judges_results(node):
            return UpdatePattern.STRICT
        case nodes.Rename() | nodes.Filter() | nodes.Project() | nodes.TableJoin():
            return _strongest(node.inputs)
        case nodes.WindowSetOperation(kind="UNION", all=True):
            return _strongest(node.inputs)
        case nodes.WindowAggregate():
            return _interfering(_strongest(node.inputs))
        case nodes.WindowJoin(kind=kind) if kind in _INTERFERING_JOINS:
            return _interfering(_strongest(node.inputs))
        case nodes.Distinct() | nodes.WindowSetOperation(kind="UNION" | "INTERSECT"):
            # Copies of values are compared, and an aggregate replaces its values whenever tuples come.
            revised = any(isinstance(below, nodes.WindowAggregate) for below in maintained(node))
            return UpdatePattern.STRICT if revised else _interfering(_strongest(node.inputs))
        case nodes.WindowJoin() | nodes.WindowSetOperation():
            return UpdatePattern.STRICT
        case _:
            return UpdatePattern.MONOTONIC


def window_pattern(window: Window) -> UpdatePattern:
    """Return the class of a window by itself."""
    match window:
        case LandmarkWindow():
            return UpdatePattern.MONOTONIC
        case RowWindow(partition_by=partition) if partition:
            return UpdatePattern.WEAK  # each partition is a queue, but not all of them together
        case RowWindow(range=reach, slide=step) if step.count > 1 and reach.count <= step.count:
            return UpdatePattern.WEAK
        case RangeWindow(range=reach, slide=step) if step is not None and size(reach) <= size(step):
            return UpdatePattern.WEAK
        case _:
            # NOW is the shortest of the sliding windows (section 3.2).
            return UpdatePattern.WEAKEST


def grows(node: nodes.Node) -> bool:
    """Return whether no row ever leaves. Rows of aggregates do, when their values are replaced."""
    replaces = any(isinstance(below, nodes.WindowAggregate) for below in maintained(node))
    return not replaces and update_pattern(node) is UpdatePattern.MONOTONIC


def shown_patterns(plan: nodes.Node) -> dict[int, UpdatePattern]:
    """Return the class of every operator whose result varies with time, by the identity of its node."""
    return {
        id(node): update_pattern(node)
        for stream in plan.walk()
        if isinstance(stream, nodes.RelationToStream)
        for node in maintained(stream.input)
        if node.streaming and windows_in(node)
    }


def _strongest(inputs: Iterable[nodes.Node]) -> UpdatePattern:
    return max(map(update_pattern, inputs))


def _interfering(inputs: UpdatePattern) -> UpdatePattern:
    return UpdatePattern.WEAK if inputs is UpdatePattern.WEAKEST else inputs


def _judges_results(node: nodes.Filter | nodes.WindowJoin) -> bool:
    """Return whether a condition uses the result of an aggregate (HAVING), which later tuples change."""
    results = _results(node)
    return any(column in results for condition in node.conditions for column in condition.columns())


def _results(node: nodes.Node) -> frozenset[ColumnRef]:
    """Return the columns of a node that derive from values of aggregates, not from grouping keys."""
    below = frozenset[ColumnRef]().union(*map(_results, node.inputs)) if varies(node) else frozenset()
    match node:
        case nodes.WindowAggregate():
            return below | {call.result for call in node.aggregates}
        case nodes.Rename():
            return frozenset(
                own for own, column in zip(node.schema, node.input.schema, strict=True) if column in below
            )
        case nodes.Project():
            made = zip(node.schema, node.outputs, strict=True)
            return frozenset(own for own, output in made if below.intersection(output.expr.columns()))
        case _:
            return below
