"""Stateful operators: unions, windows, aggregates, patterns, joins and set operations of windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from millstream.analysis.queries.call_nodes import COMPLETE, AggregateCall, OrderKey, OverCall, RankCall
from millstream.analysis.queries.grouping.group_clause import SET
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, all_of, of_column
from millstream.analysis.queries.resolved_query import GroupKey, Output, PatternClause
from millstream.plan import node_labels
from millstream.plan.nodes.plan_node import Node, PlanError, Schema
from millstream.plan.nodes.stateless import Filter, TableJoin
from millstream.quantity import Rows
from millstream.types import BOOLEAN, STRING, TIMESTAMP, Field, Type
from millstream.windows.slot_panes import strategy
from millstream.windows.window_spec import Window

_OUTER = "__ms_outer"
"""Relation of the bounds of a window over rows of another window."""


@dataclass(frozen=True)
class StreamUnion(Node):
    """UNION [ALL] of bare streams, merged by timestamp; with a latent input, in order of arrival."""

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
    """A stream with a bracket window."""

    input: Node
    alias: str
    window: Window
    edge: Field

    @cached_property
    def schema(self) -> Schema:
        return (*self.input.schema, *self.bounds)

    @cached_property
    def bounds(self) -> Schema:
        """The columns window_start, window_end and wid, and complete if the window emits early.

        A bound has no relation if a column of the stream has its name, and one of its own if bounds of
        another window have it, too.
        """
        edge = self.edge.type
        types = {"window_start": edge, "window_end": edge, "wid": self.window.wid_type(edge)}
        types |= {"complete": BOOLEAN} if self.window.emit_every else {}
        columns = {column.name.lower() for column in self.input.schema}
        taken = {column.name.lower() for column in self.input.schema if not column.relation}
        own = {n: self.alias if n not in columns else "" if n not in taken else _OUTER for n in types}
        return tuple(ColumnRef(own[n], n, t) for n, t in types.items())

    @property
    def partition(self) -> Schema:
        """The columns of PATTR."""
        return tuple(c for c in self.input.schema if c.name in self.window.partition_by)

    @property
    def reported(self) -> Windowed | None:
        """The window whose rows this one contains, if it is NOW over rows of a window."""
        below = self.input.input if isinstance(self.input, GroupingSets) else self.input
        return below.windowed if isinstance(below, WindowRows) else None

    def label(self) -> str:
        return f"Windowed {self.window}"


@dataclass(frozen=True)
class WindowAggregate(Node):
    """GROUP BY and aggregates over the content of windows (or, on tables, of everything)."""

    input: Node
    group_by: tuple[GroupKey, ...]
    aggregates: tuple[AggregateCall, ...]
    current: bool = False
    """Whether the current content is aggregated at every instant, instead of a report for each window."""

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
        """The aggregated window, if it is a single one that is joined with tables at most."""
        return _window_below(self.input)

    def label(self) -> str:
        keys = f" GROUP BY {', '.join(str(key.expr) for key in self.group_by)}" if self.group_by else ""
        return f"WindowAggregate {', '.join(map(str, self.aggregates))}{keys}"


@dataclass(frozen=True)
class GroupingSets(Node):
    """Each tuple once for every grouping set, with the number of the set."""

    input: Node
    count: int

    @cached_property
    def schema(self) -> Schema:
        return (*self.input.schema, SET)

    def label(self) -> str:
        return f"GroupingSets {self.count}"


@dataclass(frozen=True)
class WindowRows(Node):
    """The content of each window as a report: a row for each tuple, with the bounds of the window."""

    input: Node

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def windowed(self) -> Windowed:
        """The window whose content is reported."""
        return next(windows_seen(self.input))

    def label(self) -> str:
        return "WindowRows"


@dataclass(frozen=True)
class OverAggregate(Node):
    """Aggregates over OVER windows: a result for every tuple, or for every slide.

    With ``first``, rows with a larger number in a column of ranks are not needed.
    """

    input: Node
    calls: tuple[OverCall, ...]
    first: tuple[ColumnRef, int] | None = None

    @cached_property
    def schema(self) -> Schema:
        complete = (COMPLETE,) if self.calls[0].emit_every else ()
        return (*self.input.schema, *(over.call.result for over in self.calls), *complete)

    def label(self) -> str:
        how = self._strategy()
        return f"OverAggregate {'; '.join(map(str, self.calls))}{f' [{how}]' if how else ''}"

    def _strategy(self) -> str | None:
        if self.first is not None:
            return f"top-N: the first {self.first[1]} by {self.first[0]}"
        slide, emit = self.calls[0].slide, self.calls[0].emit_every
        if not isinstance(slide, Rows):
            return None
        plain = (over for over in self.calls if over.call.user is None and over.frame.until is None)
        reaches = [over.frame.preceding for over in plain]
        sizes = [reach.count + 1 for reach in reaches if isinstance(reach, Rows)]
        return strategy(slide.count, emit.count if isinstance(emit, Rows) else None, sizes)


@dataclass(frozen=True)
class WindowRank(Node):
    """Ranking functions over the rows of each report, and the first rows of each in an order.

    A report has the rows of one instant with equal values of ``report``.
    """

    input: Node
    report: tuple[ColumnRef, ...]
    calls: tuple[RankCall, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0

    def validate(self) -> None:
        self.require(*(of_column(column) for column in self.report), *self.expressions())

    def expressions(self) -> tuple[Expr, ...]:
        return (
            *(expr for call in self.calls for expr in call.expressions()),
            *(key.expr for key in self.order_by),
        )

    @cached_property
    def schema(self) -> Schema:
        return (*self.input.schema, *(call.result for call in self.calls))

    def label(self) -> str:
        parts = [", ".join(map(str, self.calls))] if self.calls else []
        parts += [f"ORDER BY {', '.join(map(str, self.order_by))}"] if self.order_by else []
        parts += [f"LIMIT {self.limit}"] if self.limit is not None else []
        parts += [f"OFFSET {self.offset}"] if self.offset else []
        per = ", ".join(map(str, self.report))
        return f"WindowRank {' '.join(parts)} of each instant{f' and {per}' if per else ''}"


@dataclass(frozen=True)
class StreamLimit(Node):
    """LIMIT and OFFSET of a stream: its first rows, after which it ends."""

    input: Node
    limit: int | None
    offset: int = 0

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def label(self) -> str:
        limit = "ALL" if self.limit is None else self.limit
        return f"StreamLimit {limit}{f' OFFSET {self.offset}' if self.offset else ''}"


@dataclass(frozen=True)
class BaseAggregate(Node):
    """Non-blocking user-defined aggregates on a bare stream: their results are emitted at once."""

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
        searched = f"{' EACH' if self.pattern.each else ''}{node_labels.pattern(self.pattern)}"
        return f"PatternMatch{searched} RETURNING {node_labels.listed(self.outputs)}"


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
    instant: Type | None = None
    """The type of the column ``instant``, which tells when a row comes or goes, if it is asked for."""

    @property
    def schema(self) -> Schema:
        op = (ColumnRef("", "op", STRING),) if self.kind == "CHANGES" else ()
        instant = (ColumnRef("", "instant", self.instant),) if self.instant is not None else ()
        return (*op, *self.input.schema, *instant)

    def label(self) -> str:
        return f"RelationToStream {self.kind}"


def windows_seen(node: Node) -> Iterator[Windowed]:
    """Yield the windows below a node, behind conditions and joins; none inside derived streams."""
    if isinstance(node, Windowed):
        yield node
    elif isinstance(node, Filter | TableJoin | WindowJoin):
        for below in node.inputs:
            yield from windows_seen(below)


def edge_field(window: Window, schema: Schema, timestamp: Type | None) -> Field:
    """Return the type of a window's bounds: that of its attribute or the timestamp, or a count of rows."""
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
