"""Resolved queries: the meaning of a query, before a plan decides how to run it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from millstream.analysis.queries.call_nodes import AggregateCall, OrderKey, OverCall, RankCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, all_of
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.catalog.entries import Stream, Table, Timestamp, View
from millstream.errors import Span
from millstream.ir.pattern import Pattern
from millstream.types import STRING, Field, Type
from millstream.windows.window_spec import Window


@dataclass(frozen=True)
class Output:
    """A column of a result."""

    name: str
    expr: Expr

    @property
    def field(self) -> Field:
        return Field(self.name, self.expr.type)


# ---------------------------------------------------------------- FROM


@dataclass(frozen=True)
class ReadStream:
    alias: str
    stream: Stream
    window: Window | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ReadTable:
    """A table; with a window its rows are a stream in the ``order`` of a column."""

    alias: str
    table: Table | View
    window: Window | None = None
    order: Timestamp | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ReadQuery:
    """A query in FROM, or one named by WITH."""

    alias: str
    query: Query
    window: Window | None = None
    order: Timestamp | None = None
    """The order of a query over tables with a window."""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ReadLateral:
    """Rows that are computed for each row of the items before: of a list, of an aggregate, or one."""

    alias: str
    outputs: tuple[Output, ...]
    """The columns, from those before, from the element and its place, or from the result of the call."""
    items: Expr | None = None
    element: ColumnRef | None = None
    position: ColumnRef | None = None
    outer: bool = False
    """True if a row stays, with NULLs, where the list is empty."""
    call: OverCall | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


FromItem = ReadStream | ReadTable | ReadQuery | ReadLateral


@dataclass(frozen=True)
class JoinClause:
    """Join of an item of FROM to those before it."""

    kind: str
    item: FromItem
    conditions: tuple[Expr, ...] = ()
    """All must hold."""
    asof: bool = False
    """True if tuples meet the latest of each key, at their own instants."""

    @property
    def condition(self) -> Expr | None:
        """All of them as one."""
        return all_of(self.conditions)


@dataclass(frozen=True)
class Unmatched:
    """The tuples of a stream that meet none of another one: windows and conditions when their time is up."""

    stream: str
    other: str
    kept: Window
    met: Window
    conditions: tuple[Expr, ...]


# ---------------------------------------------------------------- patterns


@dataclass(frozen=True)
class PatternElement:
    """A variable of a sequence pattern with the conditions that belong to it."""

    name: str
    star: bool
    per_tuple: tuple[Expr, ...] = ()
    final: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class PatternClause:
    """``PARTITION BY ... SEQUENCE BY ... AS (X, *Y, Z)`` with its conditions (semantics, section 8)."""

    alias: str
    partition_by: tuple[str, ...]
    sequence_by: tuple[str, ...]
    elements: tuple[PatternElement, ...]
    after_match: tuple[Expr, ...] = ()
    """Conditions on tables, tested on the matched rows."""
    form: Pattern | None = field(default=None, compare=False, repr=False)
    """Typed form of the pattern; its outputs are the columns ``returned``."""
    returned: tuple[ColumnRef, ...] = field(default=(), compare=False, repr=False)
    """Columns of the pattern that outputs and conditions after the match use."""
    computed: tuple[Output, ...] = field(default=(), compare=False, repr=False)
    """Columns that are added to the tuples before the search, after those of the relation."""
    each: bool = False
    """True if there is a row for each tuple that the last star takes."""
    unfit: str | None = field(default=None, compare=False)
    """Why there is no form: something in it cannot be compiled yet."""


# ---------------------------------------------------------------- queries


def with_op(fields: tuple[Field, ...], to_stream: str | None) -> tuple[Field, ...]:
    """Return the columns of a result; CHANGES say first what has happened to a row."""
    return (Field("op", STRING), *fields) if to_stream == "CHANGES" else fields


@dataclass(frozen=True)
class GroupKey:
    """An expression of GROUP BY and the name under which it goes on."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class SortedBy:
    """A key of ORDER BY: a column of the result, by its place."""

    column: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Arrangement:
    """Return ORDER BY, LIMIT and OFFSET of a result that is a table."""

    keys: tuple[SortedBy, ...]
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class TopRows:
    """ORDER BY, LIMIT and OFFSET of each report."""

    order_by: tuple[OrderKey, ...]
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class InstantColumn:
    """The column ``instant`` of ISTREAM, DSTREAM, RSTREAM or CHANGES, behind so many others of SELECT."""

    position: int
    name: str
    type: Type


@dataclass(frozen=True)
class Select:
    """One SELECT over at least one stream, or over tables with constructs that only ESL has."""

    source: FromItem
    joins: tuple[JoinClause, ...]
    outputs: tuple[Output, ...]
    where: tuple[Expr, ...] = ()
    group_by: tuple[GroupKey, ...] = ()
    grouping_sets: tuple[tuple[int, ...], ...] = ()
    """The keys of each grouping set, by their places; none in a plain GROUP BY."""
    having: tuple[Expr, ...] = ()
    aggregates: tuple[AggregateCall, ...] = ()
    overs: tuple[OverCall, ...] = ()
    ranks: tuple[RankCall, ...] = ()
    qualify: tuple[Expr, ...] = ()
    top: TopRows | None = None
    limit: TopRows | None = None
    """LIMIT and OFFSET of a stream, which end it."""
    pattern: PatternClause | None = None
    distinct: bool = False
    by_window: bool = False
    """True if the rows of each window are reported with its bounds, without an aggregate."""
    to_stream: str | None = None
    instant: InstantColumn | None = None
    arrangement: Arrangement | None = None
    current: bool = False
    """True if an aggregate over a window is that of its content at every instant, as in a view."""
    implied: bool = False
    """True if conditions imply the windows: then the result is a stream."""
    unmatched: tuple[Unmatched, ...] = ()
    """Rows of an outer join by timestamps, besides the pairs."""
    facts: StreamFacts | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def fields(self) -> tuple[Field, ...]:
        fields = [output.field for output in self.outputs]
        if self.instant is not None:
            fields.insert(self.instant.position, Field(self.instant.name, self.instant.type))
        return with_op(tuple(fields), self.to_stream)

    @property
    def is_ranked(self) -> bool:
        """True if the rows of each report are ranked or put in order."""
        return bool(self.ranks) or self.top is not None

    def items(self) -> Iterator[FromItem]:
        yield self.source
        for join in self.joins:
            yield join.item


@dataclass(frozen=True)
class SetOperation:
    """UNION, INTERSECT or EXCEPT."""

    kind: str
    all: bool
    left: Query
    right: Query
    columns: tuple[Field, ...]
    to_stream: str | None = None
    facts: StreamFacts | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def fields(self) -> tuple[Field, ...]:
        return with_op(self.columns, self.to_stream)


@dataclass(frozen=True)
class Values:
    """Rows of constants."""

    rows: tuple[tuple[Expr, ...], ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class TableQuery:
    """A query over tables in plain SQL, run by Spark; ``fields`` is None where only Spark knows them.

    ``simple`` is the same query where the local engine can run it.
    """

    text: str
    tables: tuple[str, ...]
    fields: tuple[Field, ...] | None
    simple: Select | Values | None = field(default=None, compare=False, repr=False)
    facts: StreamFacts | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    rows: tuple[tuple[Expr, ...], ...] | None = None
    """The rows of VALUES, if it is nothing else."""


Query = Select | SetOperation | TableQuery
