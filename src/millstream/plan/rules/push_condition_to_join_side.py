"""What ON says of one window is a condition on that window."""

from __future__ import annotations

from millstream.plan.nodes import Node, WindowJoin
from millstream.plan.rules.sides import divided, with_conditions

# The sides whose rows may be left out where ON does not hold; those of the others are kept in any case.
_LEFT_OUT = {
    "inner": ("left", "right"),
    "left": ("right",),
    "right": ("left",),
    "semi": ("left", "right"),
    "anti": ("right",),
}


def push_condition_to_join_side(node: Node) -> Node:
    """``a JOIN b ON x``: a condition that concerns one side alone is asked there, before the join."""
    if not isinstance(node, WindowJoin):
        return node
    own, others = divided(node.conditions, node, _LEFT_OUT.get(node.kind, ()))
    return with_conditions(node, own, others) if any(own.values()) else node
