"""Stateless operators: renaming, filters, projections, joins with tables, order of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import Arrangement, Output
from millstream.plan import node_labels
from millstream.plan.nodes.plan_node import Node, PlanError, Schema


@dataclass(frozen=True)
class Rename(Node):
    """A new name for an input: the alias of a subquery or of a derived stream."""

    input: Node
    alias: str

    @cached_property
    def schema(self) -> Schema:
        return tuple(ColumnRef(self.alias, c.name, c.type) for c in self.input.schema)

    def label(self) -> str:
        return f"Rename AS {self.alias}"


@dataclass(frozen=True)
class Filter(Node):
    """The rows for which all conditions hold."""

    input: Node
    conditions: tuple[Expr, ...]

    def validate(self) -> None:
        if not self.conditions:
            raise PlanError("a filter without a condition")
        if not self.input.has_open_schema:
            self.require(*self.conditions)

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def label(self) -> str:
        return f"Filter {' AND '.join(map(str, self.conditions))}"


@dataclass(frozen=True)
class Project(Node):
    """SELECT without aggregates; its columns have no relation, only names."""

    input: Node
    outputs: tuple[Output, ...]

    def validate(self) -> None:
        if not self.input.has_open_schema:
            self.require(*(output.expr for output in self.outputs))

    @cached_property
    def schema(self) -> Schema:
        return tuple(ColumnRef("", o.name, o.expr.type) for o in self.outputs)

    def label(self) -> str:
        return f"Project {node_labels.listed(self.outputs)}"


@dataclass(frozen=True)
class TableJoin(Node):
    """A join of a stream (or table) with a table: each tuple meets the table's present version."""

    left: Node
    right: Node
    kind: str
    condition: Expr | None

    def validate(self) -> None:
        if self.left.streaming and self.right.streaming:
            raise PlanError("two streams are joined over windows, by WindowJoin")
        if self.condition is not None and not self.has_open_schema:
            self.require(self.condition)

    @property
    def schema(self) -> Schema:
        return self.left.schema if self.kind in ("semi", "anti") else (*self.left.schema, *self.right.schema)

    def label(self) -> str:
        return f"TableJoin {self.kind}{f' ON {self.condition}' if self.condition else ''}"


@dataclass(frozen=True)
class InOrder(Node):
    """A table whose rows come one after the other, ordered by a column or (None) as stored."""

    input: Node
    column: ColumnRef | None = None

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def label(self) -> str:
        return f"InOrder of {self.column.name if self.column else 'the table'}"


@dataclass(frozen=True)
class TableStream(Node):
    """The rows of a table as a stream, in the order of a column."""

    input: Node
    column: ColumnRef

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def streaming(self) -> bool:
        return True

    def label(self) -> str:
        return f"TableStream ORDER BY {self.column.name}"


@dataclass(frozen=True)
class Arranged(Node):
    """ORDER BY, LIMIT and OFFSET of a table."""

    input: Node
    arrangement: Arrangement

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def label(self) -> str:
        return f"Arranged {node_labels.arranged(self.arrangement, self.schema)}"


def filtered(node: Node, conditions: Iterable[Expr]) -> Node:
    """Return a filter, or the node itself without conditions."""
    conditions = tuple(conditions)
    return Filter(node, conditions) if conditions else node
