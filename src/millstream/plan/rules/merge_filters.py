"""Merge of consecutive filters."""

from __future__ import annotations

from millstream.plan.nodes import Filter, Node


def merge_filters(node: Node) -> Node:
    """``Filter a (Filter b x)`` becomes ``Filter b AND a x``; the order of tests is preserved."""
    if not isinstance(node, Filter) or not isinstance(node.input, Filter):
        return node
    return Filter(node.input.input, (*node.input.conditions, *node.conditions))
