"""Filters on computed columns, moved below the projection."""

from __future__ import annotations

from millstream.plan.nodes import Filter, Node, Project, filtered
from millstream.plan.rules.substitution import outputs_of, pushed_below


def push_filter_below_project(node: Node) -> Node:
    """``Filter (Project x)`` becomes ``Project (Filter x)``, so that fewer columns are computed.

    A condition stays above if it uses a value that differs between evaluations (rand(), a subquery).
    """
    if not isinstance(node, Filter) or not isinstance(node.input, Project):
        return node
    project = node.input
    below, above = pushed_below(node.conditions, outputs_of(project))
    if not below:
        return node
    return filtered(Project(Filter(project.input, below), project.outputs), above)
