"""Operators that compute rows and columns for each row of their input."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import Output
from millstream.plan import node_labels
from millstream.plan.nodes.plan_node import Node, Schema


@dataclass(frozen=True)
class Generate(Node):
    """A row for each element of a list; with ``outer`` also one for an empty list, with NULL."""

    input: Node
    items: Expr
    element: ColumnRef
    position: ColumnRef | None = None
    outer: bool = False

    def validate(self) -> None:
        if not self.input.has_open_schema:
            self.require(self.items)

    @cached_property
    def schema(self) -> Schema:
        added = (self.element,) if self.position is None else (self.element, self.position)
        return (*self.input.schema, *added)

    def label(self) -> str:
        return f"Generate{' OUTER' if self.outer else ''} {self.items}"


@dataclass(frozen=True)
class Extend(Node):
    """All columns of the input, and others that are computed from them under a name of FROM."""

    input: Node
    alias: str
    outputs: tuple[Output, ...]

    def validate(self) -> None:
        if not self.input.has_open_schema:
            self.require(*(output.expr for output in self.outputs))

    @cached_property
    def schema(self) -> Schema:
        return (*self.input.schema, *(ColumnRef(self.alias, o.name, o.expr.type) for o in self.outputs))

    def label(self) -> str:
        return f"Extend {self.alias}: {node_labels.listed(self.outputs)}"
