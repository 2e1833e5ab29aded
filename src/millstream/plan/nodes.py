"""Logical plan nodes: immutable, typed, each with its schema derived from its inputs.

A node's output columns are addressed by (relation, name), as the expressions above it do; the timestamp and
the order of arrival travel along unseen and are nobody's columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

from millstream.analysis.queries.call_nodes import COMPLETE, AggregateCall, OverCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, all_of
from millstream.analysis.queries.resolved_query import Arrangement, GroupKey, Output, PatternClause
from millstream.catalog.entries import Stream, Table, View
from millstream.errors import Span
from millstream.plan import node_labels
from millstream.quantity import Rows
from millstream.types import BOOLEAN, STRING, TIMESTAMP, Field, Type
from millstream.windows.slot_panes import strategy
from millstream.windows.window_spec import Window

Schema = tuple[ColumnRef, ...]


class PlanError(Exception):
    """A node was made that makes no sense: a mistake in the planner, never the user's."""


@dataclass(frozen=True)
class Node(ABC):
    """An operator. Inputs are those fields that are nodes themselves."""

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:  # noqa: B027 (most nodes have nothing to check)
        """Refuse a node that makes no sense."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The columns of the output."""

    @abstractmethod
    def label(self) -> str:
        """The node in a line of EXPLAIN."""

    @cached_property
    def streaming(self) -> bool:
        """Whether the output is a stream."""
        return any(node.streaming for node in self.inputs)

    @cached_property
    def has_open_schema(self) -> bool:
        """Whether some columns are only known to Spark."""
        return any(node.has_open_schema for node in self.inputs)

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(value for f in fields(self) if isinstance(value := getattr(self, f.name), Node))

    def map_inputs(self, change: Callable[[Node], Node]) -> Self:
        """The same node over changed inputs; itself if nothing changed."""
        changed = {
            f.name: new
            for f in fields(self)
            if isinstance(old := getattr(self, f.name), Node) and (new := change(old)) is not old
        }
        return replace(self, **changed) if changed else self

    def walk(self) -> Iterator[Node]:
        """This node and all below it, each before its inputs; a plan may be deeper than Python's stack."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.inputs)

    def require(self, *expressions: Expr) -> None:
        """Every column of these expressions must come from below."""
        available = {(c.relation.lower(), c.name.lower()) for node in self.inputs for c in node.schema}
        for expr in expressions:
            for column in expr.columns():
                if (column.relation.lower(), column.name.lower()) not in available:
                    raise PlanError(f"{type(self).__name__} has no column {column} for '{expr}'")


# ---------------------------------------------------------------- leaves


@dataclass(frozen=True)
class StreamScan(Node):
    """Reads a stream that has a source of its own, or what such a stream rejected."""

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
        return f"StreamScan {name} from {self.stream.origin}{order}"


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
        return f"{kind} {node_labels.with_alias(self.table.name, self.alias)}{origin}"


@dataclass(frozen=True)
class SparkQuery(Node):
    """A query over tables only, in plain SQL: handed to Spark as it was written."""

    text: str
    tables: tuple[str, ...]
    fields: tuple[Field, ...] | None
    span: Span | None = None

    @property
    def schema(self) -> Schema:
        return tuple(ColumnRef("", f.name, f.type) for f in self.fields or ())

    @cached_property
    def has_open_schema(self) -> bool:
        return self.fields is None

    def label(self) -> str:
        return f"SparkQuery {' '.join(self.text.split())}"


# ---------------------------------------------------------------- stateless operators


@dataclass(frozen=True)
class Rename(Node):
    """Gives a whole input another name: a subquery's alias, a derived stream's."""

    input: Node
    alias: str

    @cached_property
    def schema(self) -> Schema:
        return tuple(ColumnRef(self.alias, c.name, c.type) for c in self.input.schema)

    def label(self) -> str:
        return f"Rename AS {self.alias}"


@dataclass(frozen=True)
class Filter(Node):
    """Keeps the rows for which all conditions hold."""

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
    """A stream (or table) with a table: each tuple meets the table as it is."""

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
    """A table whose rows come one after the other, along a column or (None) as the table has them."""

    input: Node
    column: ColumnRef | None = None

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def label(self) -> str:
        return f"InOrder of {self.column.name if self.column else 'the table'}"


@dataclass(frozen=True)
class Arranged(Node):
    """ORDER BY, LIMIT and OFFSET, of a table."""

    input: Node
    arrangement: Arrangement

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def label(self) -> str:
        return f"Arranged {node_labels.arranged(self.arrangement, self.schema)}"


# ---------------------------------------------------------------- stateful operators


@dataclass(frozen=True)
class StreamUnion(Node):
    """UNION [ALL] of bare streams, merged by timestamp; with a latent input tuples pass as they come."""

    left: Node
    right: Node
    fields: tuple[Field, ...]
    all: bool
    latent: bool = False

    @property
    def schema(self) -> Schema:
        return tuple(ColumnRef("", f.name, f.type) for f in self.fields)

    def label(self) -> str:
        order = "as tuples come" if self.latent else "merged by timestamp"
        return f"StreamUnion{' ALL' if self.all else ''}, {order}"


@dataclass(frozen=True)
class Windowed(Node):
    """A stream seen through a bracket window."""

    input: Node
    alias: str
    window: Window
    edge: Field

    @cached_property
    def schema(self) -> Schema:
        return (*self.input.schema, *self.bounds)

    @cached_property
    def bounds(self) -> Schema:
        """window_start, window_end and wid, and complete where it emits early.

        A bound has no relation where a column of the stream has its name.
        """
        edge = self.edge.type
        types = {"window_start": edge, "window_end": edge, "wid": self.window.wid_type(edge)}
        types |= {"complete": BOOLEAN} if self.window.emit_every else {}
        columns = {column.name.lower() for column in self.input.schema}
        return tuple(ColumnRef("" if n in columns else self.alias, n, t) for n, t in types.items())

    @property
    def partition(self) -> Schema:
        """The columns of PATTR."""
        return tuple(c for c in self.input.schema if c.name in self.window.partition_by)

    def label(self) -> str:
        return f"Windowed {self.window}"


@dataclass(frozen=True)
class WindowAggregate(Node):
    """GROUP BY and aggregates over the content of windows (or, on tables, of everything)."""

    input: Node
    group_by: tuple[GroupKey, ...]
    aggregates: tuple[AggregateCall, ...]
    current: bool = False
    """Whether the aggregates of the current content are wanted at every instant, and no report of windows."""

    def validate(self) -> None:
        self.require(*(key.expr for key in self.group_by))

    @cached_property
    def schema(self) -> Schema:
        passed = [bound for windowed in windows_seen(self.input) for bound in windowed.bounds]
        partition = self.windowed.partition if self.windowed is not None else ()
        keys = [key.expr.column or ColumnRef("", key.name, key.expr.type) for key in self.group_by]
        return (*dict.fromkeys((*keys, *partition, *passed)), *(call.result for call in self.aggregates))

    @property
    def windowed(self) -> Windowed | None:
        """The window whose content is aggregated, if it is one that is joined with tables at most."""
        return _window_below(self.input)

    def label(self) -> str:
        keys = f" GROUP BY {', '.join(str(key.expr) for key in self.group_by)}" if self.group_by else ""
        return f"WindowAggregate {', '.join(map(str, self.aggregates))}{keys}"


@dataclass(frozen=True)
class OverAggregate(Node):
    """Aggregates over windows of their own: a result for every tuple, or for every slide."""

    input: Node
    calls: tuple[OverCall, ...]

    @cached_property
    def schema(self) -> Schema:
        complete = (COMPLETE,) if self.calls[0].emit_every else ()
        return (*self.input.schema, *(over.call.result for over in self.calls), *complete)

    def label(self) -> str:
        how = self._strategy()
        return f"OverAggregate {'; '.join(map(str, self.calls))}{f' [{how}]' if how else ''}"

    def _strategy(self) -> str | None:
        slide, emit = self.calls[0].slide, self.calls[0].emit_every
        if not isinstance(slide, Rows):
            return None
        reaches = [over.frame.preceding for over in self.calls if over.call.user is None]
        sizes = [reach.count + 1 for reach in reaches if isinstance(reach, Rows)]
        return strategy(slide.count, emit.count if isinstance(emit, Rows) else None, sizes)


@dataclass(frozen=True)
class BaseAggregate(Node):
    """Non-blocking user-defined aggregates on a bare stream: what they return goes out at once."""

    input: Node
    group_by: tuple[GroupKey, ...]
    aggregates: tuple[AggregateCall, ...]

    @cached_property
    def schema(self) -> Schema:
        keys = [ColumnRef("", k.name, k.expr.type) for k in self.group_by if k.expr.column is None]
        return (*self.input.schema, *keys, *(call.result for call in self.aggregates))

    def label(self) -> str:
        keys = f" GROUP BY {', '.join(str(key.expr) for key in self.group_by)}" if self.group_by else ""
        return f"BaseAggregate {', '.join(map(str, self.aggregates))}{keys}"


@dataclass(frozen=True)
class PatternMatch(Node):
    """A sequence pattern; its outputs are computed from the matched tuples."""

    input: Node
    pattern: PatternClause
    outputs: tuple[Output, ...]

    @property
    def schema(self) -> Schema:
        return tuple(ColumnRef("", o.name, o.expr.type) for o in self.outputs)

    def label(self) -> str:
        return f"PatternMatch{node_labels.pattern(self.pattern)} RETURNING {node_labels.listed(self.outputs)}"


@dataclass(frozen=True)
class WindowJoin(Node):
    """A join of the current contents of windows."""

    left: Node
    right: Node
    kind: str
    conditions: tuple[Expr, ...] = ()

    def validate(self) -> None:
        if not (self.left.streaming and self.right.streaming):
            raise PlanError("a stream is joined with a table by TableJoin")

    @property
    def condition(self) -> Expr | None:
        return all_of(self.conditions)

    @property
    def schema(self) -> Schema:
        return self.left.schema if self.kind in ("semi", "anti") else (*self.left.schema, *self.right.schema)

    def label(self) -> str:
        return f"WindowJoin {self.kind}{f' ON {self.condition}' if self.condition else ''}"


@dataclass(frozen=True)
class Distinct(Node):
    input: Node

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def label(self) -> str:
        return "Distinct"


@dataclass(frozen=True)
class WindowSetOperation(Node):
    """UNION, INTERSECT or EXCEPT of the current contents of windows."""

    left: Node
    right: Node
    kind: str
    all: bool
    fields: tuple[Field, ...]

    @property
    def schema(self) -> Schema:
        return tuple(ColumnRef("", f.name, f.type) for f in self.fields)

    def label(self) -> str:
        return f"WindowSetOperation {self.kind}{' ALL' if self.all else ''}"


@dataclass(frozen=True)
class RelationToStream(Node):
    """ISTREAM, DSTREAM, RSTREAM or CHANGES of a result that varies with time, or (VIEW) the result itself."""

    input: Node
    kind: str

    @property
    def schema(self) -> Schema:
        return (
            (ColumnRef("", "op", STRING), *self.input.schema) if self.kind == "CHANGES" else self.input.schema
        )

    def label(self) -> str:
        return f"RelationToStream {self.kind}"


def windows_seen(node: Node) -> Iterator[Windowed]:
    """The windows whose content a node has, behind conditions and joins; none inside derived streams."""
    if isinstance(node, Windowed):
        yield node
    elif isinstance(node, Filter | TableJoin | WindowJoin):
        for below in node.inputs:
            yield from windows_seen(below)


def filtered(node: Node, conditions: Iterable[Expr]) -> Node:
    """A filter, or the node itself where there is no condition."""
    conditions = tuple(conditions)
    return Filter(node, conditions) if conditions else node


def edge_field(window: Window, schema: Schema, timestamp: Type | None) -> Field:
    """The type of a window's bounds, on its attribute (or else the timestamp), or as a count of rows."""
    name = (window.attribute or "").lower()
    attribute = next((c.type for c in schema if c.name.lower() == name), timestamp or TIMESTAMP)
    return Field("edge", window.edge_type(attribute))


def _window_below(node: Node) -> Windowed | None:
    match node:
        case Windowed():
            return node
        case Filter() | TableJoin():
            return next(filter(None, map(_window_below, node.inputs)), None)
        case _:
            return None
