"""Conditions on joined windows, moved into the join or to one side."""

from __future__ import annotations

from millstream.plan.join_conditions import divided, with_conditions
from millstream.plan.nodes import Filter, Node, WindowJoin, filtered

# The sides whose columns the join outputs and does not fill with NULL.
_KEPT = {
    "inner": ("left", "right"),
    "cross": ("left", "right"),
    "left": ("left",),
    "right": ("right",),
    "semi": ("left",),
    "anti": ("left",),
}


def push_filter_into_window_join(node: Node) -> Node:
    """``Filter (a JOIN b)``: conditions on a go to a, those on b to b, others into an inner join.

    A side accepts a condition only if its windows commute with it (Patroumpas and Sellis, section 5): behind
    a row window it would save no more than the join does.
    """
    if not isinstance(node, Filter) or not isinstance(node.input, WindowJoin):
        return node
    join = node.input
    own, others = divided(node.conditions, join, _KEPT.get(join.kind, ()))
    if join.kind in ("inner", "cross"):
        taken = [condition for condition in others if condition.movable and condition.relations()]
    else:
        taken = []
    if not taken and not any(own.values()):
        return node
    above = [condition for condition in others if condition not in taken]
    return filtered(with_conditions(join, own, (*join.conditions, *taken)), above)
