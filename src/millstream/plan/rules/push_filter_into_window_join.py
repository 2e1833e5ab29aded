"""A condition on joined windows is one of the join, or one of a side."""

from __future__ import annotations

from millstream.plan.nodes import Filter, Node, WindowJoin, filtered
from millstream.plan.rules.sides import divided, with_conditions

# The sides for whose rows a join invents no NULLs and whose columns it has.
_KEPT = {
    "inner": ("left", "right"),
    "cross": ("left", "right"),
    "left": ("left",),
    "right": ("right",),
    "semi": ("left",),
    "anti": ("left",),
}


def push_filter_into_window_join(node: Node) -> Node:
    """``Filter (a JOIN b)``: conditions about a go to a, those about b to b, others into an inner join.

    A side takes in a condition only over windows that let it through to their streams (Patroumpas and Sellis,
    section 5): behind a row window it would save nothing that the join does not save.
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
