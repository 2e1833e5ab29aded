"""Conditions on a join with a table, moved into the join or to one side."""

from __future__ import annotations

from millstream.analysis.queries.resolved_expression import Expr, all_of
from millstream.plan.nodes import Filter, Node, TableJoin, filtered

# The sides whose columns the join does not fill with NULL.
_KEPT = {"inner": ("left", "right"), "cross": ("left", "right"), "left": ("left",), "right": ("right",)}


def push_filter_into_join(node: Node) -> Node:
    """``Filter (a JOIN b)``: conditions on a go to a, those on b to b, others into an inner join.

    So a table after a comma is joined by its keys, also where the join must let changes pass.
    """
    if not isinstance(node, Filter) or not isinstance(node.input, TableJoin):
        return node
    join = node.input
    sides: dict[str, list[Expr]] = {"left": [], "right": []}
    above: list[Expr] = []
    for condition in node.conditions:
        side = next((s for s in _KEPT.get(join.kind, ()) if _concerns(condition, getattr(join, s))), None)
        (sides[side] if side else above).append(condition)
    taken = [c for c in above if c.movable and c.relations()] if _pairs(join) else []
    if not taken and not any(sides.values()):
        return node
    left, right = filtered(join.left, sides["left"]), filtered(join.right, sides["right"])
    asked = all_of([*([join.condition] if join.condition is not None else []), *taken])
    kind = "inner" if taken else join.kind
    return filtered(TableJoin(left, right, kind, asked), [c for c in above if c not in taken])


def _pairs(join: TableJoin) -> bool:
    """Return whether a join makes pairs only, of a stream and a table whose columns are known."""
    return join.kind in ("inner", "cross") and join.streaming and not join.has_open_schema


def _concerns(condition: Expr, side: Node) -> bool:
    available = {c.relation.lower() for c in side.schema}
    used = {relation.lower() for relation in condition.relations()}
    return condition.movable and bool(used) and used <= available
