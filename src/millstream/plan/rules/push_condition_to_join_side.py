"""Conditions of ON on one window, moved to that window."""

from __future__ import annotations

from millstream.plan.join_conditions import divided, with_conditions
from millstream.plan.nodes import Node, WindowJoin

# The sides whose rows are dropped if ON does not hold; rows of the other sides are preserved.
_LEFT_OUT = {
    "inner": ("left", "right"),
    "left": ("right",),
    "right": ("left",),
    "semi": ("left", "right"),
    "anti": ("right",),
}


def push_condition_to_join_side(node: Node) -> Node:
    """``a JOIN b ON x``: a condition on one side alone is tested there, before the join."""
    if not isinstance(node, WindowJoin):
        return node
    own, others = divided(node.conditions, node, _LEFT_OUT.get(node.kind, ()))
    return with_conditions(node, own, others) if any(own.values()) else node
