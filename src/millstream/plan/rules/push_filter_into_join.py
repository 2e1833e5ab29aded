"""Conditions on one side of a join, moved below the join."""

from __future__ import annotations

from millstream.analysis.queries.resolved_expression import Expr
from millstream.plan.nodes import Filter, Node, TableJoin, filtered

# The sides whose columns the join does not fill with NULL.
_KEPT = {"inner": ("left", "right"), "cross": ("left", "right"), "left": ("left",), "right": ("right",)}


def push_filter_into_join(node: Node) -> Node:
    """``Filter (a JOIN b)``: conditions on a alone go below the join, to a; likewise for b."""
    if not isinstance(node, Filter) or not isinstance(node.input, TableJoin):
        return node
    join = node.input
    sides: dict[str, list[Expr]] = {"left": [], "right": []}
    above: list[Expr] = []
    for condition in node.conditions:
        side = next((s for s in _KEPT.get(join.kind, ()) if _concerns(condition, getattr(join, s))), None)
        (sides[side] if side else above).append(condition)
    if not any(sides.values()):
        return node
    left, right = filtered(join.left, sides["left"]), filtered(join.right, sides["right"])
    return filtered(TableJoin(left, right, join.kind, join.condition), above)


def _concerns(condition: Expr, side: Node) -> bool:
    available = {c.relation.lower() for c in side.schema}
    used = {relation.lower() for relation in condition.relations()}
    return condition.movable and bool(used) and used <= available
