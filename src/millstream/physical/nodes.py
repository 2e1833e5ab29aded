"""Nodes of physical plans: immutable, each with the columns of its output and the choices behind it.

Nothing of Spark is in them: expressions are texts with columns in them, kernels are specifications.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Self

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.queries.resolved_query import Arrangement, GroupKey
from millstream.catalog.entries import Stream, Table, View
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.kernel_specs import KernelSpec
from millstream.physical.node import Choice, Column, Guard, Layout, PhysicalNode, Role, schema_of
from millstream.stage.pipeline import KEEP, MARK, NUMBER, ORIGIN, TIME, Input, Pipeline
from millstream.types import BIGINT, INT, STRING, Field, Kind, Type

# ---------------------------------------------------------------- leaves


@dataclass(frozen=True)
class Scan(PhysicalNode):
    """Reads a stream that has a source of its own; ``hidden`` columns tell times and promises of tuples.

    ``late_pending`` says that late tuples are among the others. With ``bad`` it reads the bad records.
    """

    stream: Stream
    alias: str
    hidden: Layout
    late_pending: bool
    untimed: bool = False
    """Whether rows without a time, which are no tuples, are among the others."""
    bad: Stream | None = None
    """The stream of bad records that is read, if it is not the stream itself."""

    @cached_property
    def layout(self) -> Layout:
        shown = (self.bad or self.stream).schema
        return (*(Column(f.name, f.type, relation=self.alias) for f in shown), *self.hidden)

    @property
    def streaming(self) -> bool:
        return True


@dataclass(frozen=True)
class TableScan(PhysicalNode):
    """Reads a table or a view; a derived table has the plan of its ``definition``."""

    table: Table | View
    alias: str
    definition: PhysicalNode | None = None

    @cached_property
    def layout(self) -> Layout:
        return tuple(Column(f.name, f.type, relation=self.alias) for f in self.table.schema or ())

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return ()


@dataclass(frozen=True)
class SparkQuery(PhysicalNode):
    """A query over tables that Spark runs as it is written."""

    text: str
    fields_: tuple[Field, ...] | None
    rows: tuple[tuple[Expr, ...], ...] | None = None
    """The rows of VALUES, if it is nothing else."""

    @cached_property
    def layout(self) -> Layout:
        return tuple(Column(f.name, f.type) for f in self.fields_ or ())


# ---------------------------------------------------------------- without a state


@dataclass(frozen=True)
class Rename(PhysicalNode):
    """Gives all columns of its input another relation."""

    input: PhysicalNode
    alias: str

    @cached_property
    def layout(self) -> Layout:
        return tuple(c if c.role.is_hidden else replace(c, relation=self.alias) for c in self.input.layout)


@dataclass(frozen=True)
class Compute(PhysicalNode):
    """Asks conditions of rows and computes columns where they hold.

    ``columns`` of None are those of the input. Late tuples among the rows (``late_pending``) depend on all
    others, so that conditions mark rows instead of dropping them. ``hidden`` columns are set beside those
    that pass, without those in ``drops``; ALL drops every one.
    """

    input: PhysicalNode
    columns: Layout | None = None
    conditions: tuple[Expr, ...] = ()
    guard: Guard = Guard.NONE
    late_pending: bool = False
    hidden: Layout = ()
    drops: tuple[str, ...] = ()

    @cached_property
    def layout(self) -> Layout:
        shown = self.input.shown if self.columns is None else self.columns
        passed = [c for c in self.input.layout if c.role.is_hidden and not self.is_dropped(c.name)]
        marks = (
            [Column(KEEP, Type(Kind.BOOLEAN), role=Role.MARK)]
            if self.late_pending and self.conditions
            else []
        )
        own = {c.name: c for c in (*passed, *marks, *self.hidden)}
        return (*shown, *own.values())

    @property
    def only_names(self) -> bool:
        """Whether columns of the input get other names, and nothing else happens."""
        plain = self.columns is not None and all(
            c.expr is not None and c.expr.column is not None and not c.role.is_hidden for c in self.columns
        )
        return plain and not (self.conditions or self.hidden or self.drops)

    def is_dropped(self, name: str) -> bool:
        """Tell whether a hidden column does not pass."""
        return ALL in self.drops or any(name.startswith(prefix) for prefix in self.drops)


ALL = "*"


@dataclass(frozen=True)
class Align(PhysicalNode):
    """Columns by position under the names and types of a union; ``hidden`` ones are set, as in Compute."""

    input: PhysicalNode
    fields_: tuple[Field, ...]
    hidden: Layout = ()
    drops: tuple[str, ...] = ()

    @cached_property
    def layout(self) -> Layout:
        given = self.input.shown
        shown = [
            Column(f.name, f.type if f.type.is_known else g.type)
            for f, g in zip(self.fields_, given, strict=True)
        ]
        passed = [
            c for c in self.input.layout if c.role.is_hidden and not c.name.startswith(self.drops or ("-",))
        ]
        own = {c.name: c for c in (*passed, *self.hidden)}
        return (*shown, *own.values())


@dataclass(frozen=True)
class Lookup(PhysicalNode):
    """Joins rows with a table as it is; reports of a stage pass through it where it is ``marked``.

    Retractions pass too if rows are changes that are ``signed``: they retract all that the row has met.
    """

    left: PhysicalNode
    right: PhysicalNode
    kind: str
    condition: Expr | None
    stream_is_left: bool
    marked: bool = False
    signed: bool = False

    @cached_property
    def layout(self) -> Layout:
        left, right = self.left.shown, self.right.shown
        shown = left if self.kind in ("semi", "anti") else (*left, *right)
        rows = self.left if self.stream_is_left else self.right
        return (*shown, *(c for c in rows.layout if c.role.is_hidden))


@dataclass(frozen=True)
class Merge(PhysicalNode):
    """Rows of several inputs with the same columns, one input after the other."""

    branches: tuple[PhysicalNode, ...]

    @cached_property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return self.branches

    def map_inputs(self, change: Callable[[PhysicalNode], PhysicalNode]) -> Self:
        return replace(self, branches=tuple(map(change, self.branches)))

    @cached_property
    def layout(self) -> Layout:
        shown = self.branches[0].shown
        own = {c.name: c for branch in self.branches for c in branch.layout if c.role.is_hidden}
        return (*shown, *own.values())


# ---------------------------------------------------------------- tables only


@dataclass(frozen=True)
class Sequence(PhysicalNode):
    """Rows of a table in the order of keys, where ties stay as they are; their number is their time."""

    input: PhysicalNode
    keys: tuple[Expr, ...]

    @cached_property
    def layout(self) -> Layout:
        return (*self.input.shown, Column(TIME, BIGINT, role=Role.TIME))


@dataclass(frozen=True)
class Arrange(PhysicalNode):
    """ORDER BY, LIMIT and OFFSET of a table."""

    input: PhysicalNode
    arrangement: Arrangement

    @property
    def layout(self) -> Layout:
        return self.input.shown


@dataclass(frozen=True)
class Distinct(PhysicalNode):
    """Different rows of a table."""

    input: PhysicalNode

    @property
    def layout(self) -> Layout:
        return self.input.shown


@dataclass(frozen=True)
class TableSetOperation(PhysicalNode):
    """UNION, INTERSECT or EXCEPT of two tables."""

    left: PhysicalNode
    right: PhysicalNode
    kind: str
    all: bool

    @property
    def layout(self) -> Layout:
        return self.left.layout


@dataclass(frozen=True)
class TableGroups(PhysicalNode):
    """Groups of a table, whose aggregates are Spark's."""

    input: PhysicalNode
    group_by: tuple[GroupKey, ...]
    aggregates: tuple[AggregateCall, ...]

    @cached_property
    def layout(self) -> Layout:
        keys = [Column(f"g{i}", key.expr.type, key.expr, Role.KEY) for i, key in enumerate(self.group_by)]
        return (*keys, *(Column(f"r{i}", c.type, role=Role.RESULT) for i, c in enumerate(self.aggregates)))


# ---------------------------------------------------------------- stages


class Arrival(Enum):
    """The columns that tell the order of rows: those of a source, of another stage, or of a table."""

    SOURCE = "source"
    STAGE = "stage"
    TABLE = "table"


@dataclass(frozen=True)
class StageInput:
    """Rows that are shipped to a stage: columns, what identifies their partition, and their times.

    ``source`` describes times and promises to the shards; its columns are those of ``columns``.
    """

    node: PhysicalNode
    columns: Layout
    time: Layout
    guard: Guard
    arrival: Arrival
    source: Input

    @property
    def described(self) -> Input:
        return replace(self.source, columns=schema_of(self.columns))


class Partition(Enum):
    """Division of a stage's work: by the value of a column, by a hash, in one shard, or at will."""

    COLUMN = "the value itself"
    HASH = "hash"
    SINGLE = "one shard"
    SPREAD = "any shard"


@dataclass(frozen=True)
class SearchedPattern:
    """The pattern of a stage, by which patterns over the same tuples become one stage."""

    values: dict[str, tuple[Expr, Type]]
    """The values that the search looks at, by the names under which they are shipped."""
    keys: tuple[Expr, ...]


@dataclass(frozen=True)
class Stage(PhysicalNode):
    """Kernels with a state over partitioned rows; with ``late`` it gives the late tuples instead.

    It is ``ordered`` if the order of results with the same time travels along, and ``marked`` if reports
    stand among them for a further stage.
    """

    sources: tuple[StageInput, ...]
    partition: Partition
    keys: tuple[Expr, ...]
    kernels: tuple[KernelSpec, ...]
    output: Layout
    time: Type
    late: bool = False
    ordered: bool = True
    marked: bool = False
    pattern: SearchedPattern | None = field(default=None, compare=False, repr=False)
    notes: tuple[Choice, ...] = ()

    @cached_property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return tuple(source.node for source in self.sources)

    def map_inputs(self, change: Callable[[PhysicalNode], PhysicalNode]) -> Self:
        return replace(self, sources=tuple(replace(s, node=change(s.node)) for s in self.sources))

    @property
    def choices(self) -> tuple[Choice, ...]:
        return self.notes

    @property
    def parallel(self) -> bool:
        return self.partition is not Partition.SINGLE

    @cached_property
    def layout(self) -> Layout:
        order = [(ORIGIN, INT), (NUMBER, BIGINT)] if self.ordered else []
        marks = [(MARK, STRING)] if self.marked else []
        hidden = [Column(name, type_, role=Role.MARK) for name, type_ in (*order, *marks)]
        return (*self.output, Column(TIME, self.time, role=Role.TIME), *hidden)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The stage as shards run it."""
        return Pipeline(
            tuple(source.described for source in self.sources),
            self.kernels,
            schema_of(self.output),
            arrow_type(self.time),
            self.late,
            ordered=self.ordered,
            marked=self.marked,
        )

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that are read; nothing for what comes from another stage."""
        return tuple("" if s.source.chained else s.source.name for s in self.sources)


@dataclass(frozen=True)
class Explode(PhysicalNode):
    """A row for each element of a list; reports of a stage pass.

    Where a list is empty there is no row, or with ``outer`` one with NULL. ``position`` is the column of the
    places of elements, from 0.
    """

    input: PhysicalNode
    column: str
    type: Type
    marked: bool
    outer: bool = False
    position: str | None = None

    @cached_property
    def layout(self) -> Layout:
        own = tuple(replace(c, type=self.type) if c.name == self.column else c for c in self.input.layout)
        return own if self.position is None else (*own, Column(self.position, INT))


@dataclass(frozen=True)
class Branch(PhysicalNode):
    """The rows of one query out of stages that several queries share."""

    member: int
    columns: tuple[tuple[str, str], ...]
    """Columns of the shared stages by the names that they have in the query's own stage."""
    tag: tuple[str, int] | None
    branch: tuple[str, int] | None
    stage: Stage = field(compare=False, repr=False)

    @property
    def layout(self) -> Layout:
        return self.stage.layout

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return ()

    @property
    def streaming(self) -> bool:
        return True


@dataclass(frozen=True)
class Output(PhysicalNode):
    """The result of a query; that of ``stored`` streams is put in the order of time when it is complete."""

    input: PhysicalNode
    stored: bool = False

    @property
    def layout(self) -> Layout:
        return self.input.layout


def stages_of(plan: PhysicalNode) -> list[Stage]:
    """Return the stages of a plan, those first that are nearest to the sources."""
    found = {id(node): node for node in reversed(list(plan.walk())) if isinstance(node, Stage)}
    return list(found.values())
