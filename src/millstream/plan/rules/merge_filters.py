"""Two filters in a row are one."""

from __future__ import annotations

from millstream.plan.nodes import Filter, Node


def merge_filters(node: Node) -> Node:
    """``Filter a (Filter b x)`` is ``Filter b AND a x``: what was tested first stays first."""
    if not isinstance(node, Filter) or not isinstance(node.input, Filter):
        return node
    return Filter(node.input.input, (*node.input.conditions, *node.conditions))
