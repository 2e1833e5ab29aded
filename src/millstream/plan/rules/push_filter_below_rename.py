"""Filters on a renamed input, moved below the renaming."""

from __future__ import annotations

from millstream.plan.nodes import Filter, Node, Rename, filtered
from millstream.plan.rules.substitution import columns_of, pushed_below


def push_filter_below_rename(node: Node) -> Node:
    """``Filter (Rename x)`` becomes ``Rename (Filter x)``, on its way towards the source."""
    if not isinstance(node, Filter) or not isinstance(node.input, Rename):
        return node
    rename = node.input
    below, above = pushed_below(node.conditions, columns_of(rename))
    if not below:
        return node
    return filtered(Rename(Filter(rename.input, below), rename.alias), above)
