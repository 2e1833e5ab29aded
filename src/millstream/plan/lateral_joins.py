"""Items of FROM that are computed for each row, as operators above or below the windows of the others."""

from __future__ import annotations

from dataclasses import replace

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.resolved_query import JoinClause, ReadLateral
from millstream.plan import nodes
from millstream.plan.nodes import Extend, Filter, Generate, InOrder, Node, OverAggregate, filtered


def lateral_join(plan: Node, join: JoinClause, item: ReadLateral) -> Node:
    """Return the rows that an item gives for each row of a plan.

    It is computed below the window of the stream whose columns it takes: what is in a window in time does not
    depend on other tuples. The analysis has refused other windows.
    """
    return filtered(_beside(plan, item, _taken(item)), join.conditions)


def _beside(plan: Node, item: ReadLateral, taken: frozenset[tuple[str, str]]) -> Node:
    if any(isinstance(below, nodes.Windowed) for below in plan.walk()):
        match plan:
            case nodes.Windowed():
                return replace(plan, input=_beside(plan.input, item, taken))
            case Filter():
                return replace(plan, input=_beside(plan.input, item, taken))
            case nodes.TableJoin() | nodes.WindowJoin():
                if taken <= {_key(column) for column in plan.left.schema}:
                    return replace(plan, left=_beside(plan.left, item, taken))
                return replace(plan, right=_beside(plan.right, item, taken))
    return _on_top(plan, item)


def _on_top(plan: Node, item: ReadLateral) -> Node:
    if item.items is not None:
        assert item.element is not None
        plan = Generate(plan, item.items, item.element, item.position, item.outer)
    if item.call is not None:
        plan = OverAggregate(plan if plan.streaming else InOrder(plan), (item.call,))
    return Extend(plan, item.alias, item.outputs)


def _taken(item: ReadLateral) -> frozenset[tuple[str, str]]:
    """Return the columns that an item takes of those before it."""
    exprs = [output.expr for output in item.outputs]
    if item.items is not None:
        exprs.append(item.items)
    if item.call is not None:
        exprs += item.call.call.arguments
    own = (item.element, item.position, None if item.call is None else item.call.call.result)
    made = {_key(column) for column in own if column is not None}
    return frozenset(_key(column) for expr in exprs for column in expr.columns()) - made


def _key(column: ColumnRef) -> tuple[str, str]:
    return column.relation.lower(), column.name.lower()
