"""A filter on computed columns is a filter on what they are computed from."""

from __future__ import annotations

from millstream.plan.nodes import Filter, Node, Project, filtered
from millstream.plan.rules.substitution import outputs_of, pushed_below


def push_filter_below_project(node: Node) -> Node:
    """``Filter (Project x)`` becomes ``Project (Filter x)``, so that rows go before work is done on them.

    A condition stays above if it uses what cannot be computed twice alike (rand(), a subquery).
    """
    if not isinstance(node, Filter) or not isinstance(node.input, Project):
        return node
    project = node.input
    below, above = pushed_below(node.conditions, outputs_of(project))
    if not below:
        return node
    return filtered(Project(Filter(project.input, below), project.outputs), above)
