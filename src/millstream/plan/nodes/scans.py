"""Scans: the leaves of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.entries import Stream, Table, View
from millstream.errors import Span
from millstream.plan import node_labels
from millstream.plan.nodes.plan_node import Node, Schema
from millstream.types import Field


@dataclass(frozen=True)
class StreamScan(Node):
    """A scan of a stream with a source of its own, or of tuples that such a stream rejected."""

    stream: Stream
    alias: str

    @cached_property
    def schema(self) -> Schema:
        return tuple(ColumnRef(self.alias, f.name, f.type) for f in self.stream.schema)

    @cached_property
    def streaming(self) -> bool:
        return True

    def label(self) -> str:
        timestamp = self.stream.timestamp
        order = (
            f" ORDER BY {timestamp.column}" if timestamp.column else f" ({timestamp.kind.value} timestamp)"
        )
        name = node_labels.with_alias(self.stream.name, self.alias)
        made = node_labels.computed(self.stream.computed, self.stream.selection)
        return f"StreamScan {name} from {self.stream.origin}{order}{made}"


@dataclass(frozen=True)
class TableScan(Node):
    table: Table | View
    alias: str

    @cached_property
    def schema(self) -> Schema:
        return tuple(ColumnRef(self.alias, f.name, f.type) for f in self.table.schema or ())

    @cached_property
    def has_open_schema(self) -> bool:
        return self.table.schema is None

    def label(self) -> str:
        kind = "ViewScan" if isinstance(self.table, View) else "TableScan"
        origin = f" from {self.table.origin}" if isinstance(self.table, Table) else ""
        made = node_labels.computed(self.table.computed) if isinstance(self.table, Table) else ""
        return f"{kind} {node_labels.with_alias(self.table.name, self.alias)}{origin}{made}"


@dataclass(frozen=True)
class SparkQuery(Node):
    """A query over tables only, in plain SQL, passed to Spark unchanged."""

    text: str
    tables: tuple[str, ...]
    fields: tuple[Field, ...] | None
    span: Span | None = None
    rows: tuple[tuple[Expr, ...], ...] | None = None
    """The rows of VALUES, if it is nothing else."""

    @property
    def schema(self) -> Schema:
        return tuple(ColumnRef("", f.name, f.type) for f in self.fields or ())

    @cached_property
    def has_open_schema(self) -> bool:
        return self.fields is None

    def label(self) -> str:
        return f"SparkQuery {' '.join(self.text.split())}"
