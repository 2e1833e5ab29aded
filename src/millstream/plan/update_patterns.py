"""How a result that varies with time changes: the classes of Patroumpas and Sellis (sections 3 and 4).

A class says what a kernel has to be prepared for, and so which structure its state needs. Neutral operators
pass on the class of their windows (Proposition 6). Operators that interfere are monotonic over landmarks and
else at least weak (Proposition 7). Differences, outer and anti joins take rows back because of tuples that
come later (Proposition 8). Of different windows the one that is least monotonic decides (Proposition 9).
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
    """The more, the less is known beforehand."""

    MONOTONIC = 0
    """Nothing ever leaves. Of an aggregate this is said of its groups, whose values are replaced."""
    WEAKEST = 1
    """What enters first leaves first: a queue. Of a union this is said of what comes from each input."""
    WEAK = 2
    """In any order, but when something leaves (after so much time, or so many tuples) depends on the windows
    alone. Other tuples can only make it stay, as another copy does for a distinct value."""
    STRICT = 3
    """Also because of tuples that come later: they have to be taken back, by negative tuples."""

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
    """The class of a node of a varying result; a table among its inputs is one that nothing leaves."""
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
    """The class of a window by itself."""
    match window:
        case LandmarkWindow():
            return UpdatePattern.MONOTONIC
        case RowWindow(partition_by=partition) if partition:
            return UpdatePattern.WEAK  # each partition is a queue, all of them together are none
        case RowWindow(range=reach, slide=step) if step.count > 1 and reach.count <= step.count:
            return UpdatePattern.WEAK
        case RangeWindow(range=reach, slide=step) if step is not None and size(reach) <= size(step):
            return UpdatePattern.WEAK
        case _:
            # NOW is the shortest of the sliding windows (section 3.2).
            return UpdatePattern.WEAKEST


def grows(node: nodes.Node) -> bool:
    """Whether no row ever leaves. Those of aggregates do, when their values are replaced."""
    replaces = any(isinstance(below, nodes.WindowAggregate) for below in maintained(node))
    return not replaces and update_pattern(node) is UpdatePattern.MONOTONIC


def shown_patterns(plan: nodes.Node) -> dict[int, UpdatePattern]:
    """The class of every operator whose result varies with time, by the identity of its node."""
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
    """HAVING, or a join on the value of an aggregate: rows come and go with what later tuples change."""
    results = _results(node)
    return any(column in results for condition in node.conditions for column in condition.columns())


def _results(node: nodes.Node) -> frozenset[ColumnRef]:
    """The columns of a node that are made of aggregates' values, not of what they are grouped by."""
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
