"""A sequence pattern in executable parts: the search, joins with tables, conditions, outputs."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.analysis.queries.resolved_query import PatternClause
from millstream.plan.nodes import (
    Node,
    PatternMatch,
    Project,
    Rename,
    Schema,
    StreamScan,
    TableJoin,
    TableScan,
    TableStream,
    filtered,
)
from millstream.plan.optimize import optimize


@dataclass(frozen=True)
class PatternSearch(Node):
    """The search itself. Each row of its result is a match with the columns that parent nodes require."""

    input: Node
    pattern: PatternClause

    @property
    def schema(self) -> Schema:
        return self.pattern.returned

    def label(self) -> str:
        return f"PatternSearch AS ({', '.join(element.name for element in self.pattern.elements)})"


def is_searched(node: Node, pattern: PatternMatch) -> bool:
    """Return whether a node is the input of the search, and not a table joined with it."""
    if isinstance(node, TableStream):
        return is_searched(node.input, pattern)
    if not isinstance(node, StreamScan | TableScan | Rename):
        return False
    return node.alias.lower() == pattern.pattern.alias.lower()


def taken_apart(node: PatternMatch) -> Node:
    """Return an equivalent plan in which tables are joined with matches, not with tuples."""
    matches = _searching(node.input, node)
    return optimize(Project(filtered(matches, node.pattern.after_match), node.outputs))


def _searching(below: Node, node: PatternMatch) -> Node:
    if is_searched(below, node):
        return PatternSearch(below, node.pattern)
    if isinstance(below, TableJoin):
        return below.map_inputs(lambda side: _searching(side, node))
    return below
