"""Merge of consecutive projections."""

from __future__ import annotations

from collections import Counter

from millstream.analysis.queries.resolved_query import Output
from millstream.plan.nodes import Node, Project, Rename
from millstream.plan.rules.substitution import columns_of, outputs_of, substituted


def merge_projects(node: Node) -> Node:
    """``Project (Rename (Project x))`` becomes one ``Project``, unless it would compute a value twice."""
    if not isinstance(node, Project):
        return node
    inner = node.input.input if isinstance(node.input, Rename) else node.input
    if not isinstance(inner, Project):
        return node
    values = outputs_of(inner)
    if isinstance(node.input, Rename):
        below = columns_of(node.input)
        values = {key: values[column.relation, column.name.lower()] for key, column in below.items()}
    uses = Counter((c.relation, c.name.lower()) for output in node.outputs for c in output.expr.columns())
    if any(uses[key] > 1 and value.column is None for key, value in values.items()):
        return node
    outputs = []
    for output in node.outputs:
        expr = substituted(output.expr, values)
        if expr is None:
            return node
        outputs.append(Output(output.name, expr))
    return Project(inner.input, tuple(outputs))
