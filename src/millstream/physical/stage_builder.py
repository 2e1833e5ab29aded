"""Stages over flows: shipped columns, partitions, the order of ties, kernels and results."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.errors import NotExecutableError
from millstream.kernels.kernel_specs import (
    KernelSpec,
    ReorderSpec,
    StreamLimitSpec,
    StreamUnionSpec,
    TieOrderSpec,
)
from millstream.physical import expressions as ex
from millstream.physical.flow import Flow, FlowInput, named, passed
from millstream.physical.node import Choice, Column, Layout, PhysicalNode, Role
from millstream.physical.nodes import Partition, SearchedPattern, Stage
from millstream.physical.operators.aggregates import AggregatePlanner
from millstream.physical.programs import Programs
from millstream.physical.stage_inputs import stage_input
from millstream.physical.unknown_types import UnknownTypes
from millstream.stage.hidden_columns import SORT
from millstream.stage.pipeline import MOST_ORIGINS
from millstream.types import Type

ONE = "__ms_one"


@dataclass
class StageDraft:
    """A stage before its inputs are known: its ``columns`` come out again, with those ``added``.

    ``key`` names a column that is all there is of the key: if it is an integer, that is enough. A stage that
    ``regroups`` has results of its own instead of tuples that pass, and so has one that makes rows ``anew``,
    but these are in order. One that is not ``parallel`` has to see all tuples in one place; one that is
    ``generous`` can do something with late ones. Results have the ``time`` of the tuples, if not another.
    """

    columns: dict[str, Expr]
    arguments: dict[str, Expr] = field(default_factory=dict)
    keys: Sequence[Expr] = ()
    key: str | None = None
    kernels: Sequence[KernelSpec] = ()
    added: Sequence[Column] = ()
    marked: bool = False
    late: bool = False
    spread: bool = False
    regroups: bool = False
    anew: bool = False
    parallel: bool = True
    generous: bool = False
    apart: bool = False
    time: Type | None = None
    pattern: SearchedPattern | None = None
    notes: tuple[Choice, ...] = ()


@dataclass
class StageBuilder:
    """Makes the stages of a plan; ``unknown`` notes the types that only Spark knows."""

    programs: Programs
    unknown: UnknownTypes
    zone: str = "UTC"
    aggregates: AggregatePlanner = field(init=False)

    def __post_init__(self) -> None:
        self.aggregates = AggregatePlanner(self.typed, self.result_type)

    # ------------------------------------------------------------ types

    def typed(self, flow: Flow, expr: Expr) -> Expr:
        """Return an expression with its type, which only Spark may know."""
        return self.unknown.typed(flow.first.node, expr)

    def result_type(self, flow: Flow, call: AggregateCall) -> Type:
        """Return the type of an aggregate, which only Spark may know."""
        return self.unknown.result_type(flow.first.node, call)

    # ------------------------------------------------------------ simple stages

    def settled(self, flow: Flow, schema: Iterable[ColumnRef], *, marked: bool) -> Flow:
        """Keep the tuples that are in time, of all inputs."""
        refs = tuple(schema)
        draft = StageDraft(self.shipped(flow, refs), marked=marked, spread=True)
        node = named(self.build(flow, draft), [(ref, f"c{i}") for i, ref in enumerate(refs)])
        return Flow((replace(passed(flow, node, marked=marked), axis=flow.first.axis),), flow.window)

    def late(self, one: FlowInput, names: Sequence[str]) -> PhysicalNode:
        """Keep the tuples of a stream that came too late."""
        flow = Flow((one,))
        columns = {name: self.typed(flow, of_column(ColumnRef("", name, _type(one, name)))) for name in names}
        return self.build(flow, StageDraft(columns, late=True))

    def distinct(self, flow: Flow, schema: Iterable[ColumnRef], *, marked: bool, latent: bool) -> Flow:
        """Plan UNION: of tuples equal in every column and in time, the first.

        Another stage has to know which one that is, and waits for the order anyway; the tuples of a latent
        union are in the order of arrival.
        """
        refs = tuple(schema)
        columns = self.shipped(flow, refs)
        order = (ReorderSpec(),) if marked and not latent else ()
        kernels = (*order, StreamUnionSpec())
        draft = StageDraft(columns, keys=tuple(columns.values()), kernels=kernels, marked=marked)
        node = named(self.build(flow, draft), [(ref, f"c{i}") for i, ref in enumerate(refs)])
        return Flow((passed(flow, node, marked=marked),))

    def limited(
        self,
        flow: Flow,
        schema: Iterable[ColumnRef],
        limit: int | None,
        offset: int,
        *,
        marked: bool,
        ends: bool,
    ) -> Flow:
        """Keep the first tuples in the order of the stream; with ``ends`` they end the query."""
        refs = tuple(schema)
        kernels = (ReorderSpec(), StreamLimitSpec(limit, offset, ends))
        draft = StageDraft(self.shipped(flow, refs), kernels=kernels, marked=marked)
        node = named(self.build(flow, draft), [(ref, f"c{i}") for i, ref in enumerate(refs)])
        return Flow((passed(flow, node, marked=draft.marked),))

    def shipped(self, flow: Flow, refs: Iterable[ColumnRef]) -> dict[str, Expr]:
        """Return columns by the names under which they are shipped."""
        return {f"c{i}": self.typed(flow, of_column(ref)) for i, ref in enumerate(refs)}

    # ------------------------------------------------------------ any stage

    def build(self, flow: Flow, draft: StageDraft) -> Stage:
        """Return a stage over a flow."""
        given = {**draft.columns, **draft.arguments}
        passed = list(draft.columns)
        # Arrow forgets how many rows a table has that has no columns.
        given = given or {ONE: ex.TRUE}
        shipped = [self._column(flow, name, expr, name in draft.columns) for name, expr in given.items()]
        # Results of a window: their groups give the order of those with the same time, here and above.
        staged = any(one.staged for one in flow.inputs)
        ties = flow.first.node.sorting if staged else ()
        shipped += [Column(c.name, c.type, ex.column(c.name, c.type), Role.SORT) for c in ties]
        names = tuple(c.name for c in ties)
        passed += [] if draft.regroups or draft.anew else names
        types = {c.name: c.type for c in shipped}
        keys = tuple(self.typed(flow, key) for key in draft.keys)
        key = draft.key if draft.key is not None and types[draft.key].is_integral else None
        sources = tuple(
            stage_input(
                one,
                shipped,
                keys,
                key,
                spread=draft.spread,
                generous=draft.generous,
                apart=draft.apart,
                ties=names,
                first_origin=first,
            )
            for first, one in zip(_first_origins(flow), flow.inputs, strict=True)
        )
        kernels = tuple(draft.kernels)
        if ties and not draft.late:
            kernels = (_settling(names, flow), *kernels)
        output = [Column(name, types[name], role=_role(name)) for name in passed]
        return Stage(
            sources,
            _partition(draft, key),
            keys,
            kernels,
            (*output, *draft.added),
            draft.time or sources[0].time[0].type,
            draft.late,
            ordered=draft.marked or not draft.regroups,
            marked=draft.marked,
            pattern=draft.pattern,
            notes=draft.notes,
        )

    def _column(self, flow: Flow, name: str, expr: Expr, is_data: bool) -> Column:
        known = self.typed(flow, expr)
        return Column(name, known.type, known, Role.DATA if is_data else Role.ARGUMENT)


def _role(name: str) -> Role:
    return Role.SORT if name.startswith(SORT) else Role.DATA


def _partition(draft: StageDraft, key: str | None) -> Partition:
    if draft.spread and not draft.late:
        return Partition.SPREAD
    if not draft.parallel or not draft.keys:
        return Partition.SINGLE
    return Partition.HASH if key is None and len(draft.keys) != 1 else _by_value(draft, key)


def _by_value(draft: StageDraft, key: str | None) -> Partition:
    return Partition.COLUMN if key is not None or draft.keys[0].type.is_integral else Partition.HASH


def _first_origins(flow: Flow) -> list[int]:
    """Return the first origin of each input: origins are numbered through all of them."""
    if flow.origins > MOST_ORIGINS:
        raise NotExecutableError(
            "a query cannot unite so many streams, or nest ACTIVE EXPIRATION so deeply",
            hint="write a part of it to a sink, and read that as a stream",
        )
    return list(itertools.accumulate((one.origins for one in flow.inputs[:-1]), initial=0))


def _settling(ties: tuple[str, ...], flow: Flow) -> TieOrderSpec:
    """Put tuples with the same time in order when all of them are there, which may take micro-batches."""
    inputs = zip(_first_origins(flow), flow.inputs, strict=True)
    return TieOrderSpec(ties, tuple((first, first + one.origins - 1) for first, one in inputs if one.staged))


def _type(one: FlowInput, name: str) -> Type:
    return next(c.type for c in one.node.shown if c.name == name)


def sorting_columns(keys: Iterable[Expr]) -> Layout:
    """Return columns that sort results with the same timestamp."""
    return tuple(Column(f"{SORT}{i:03}", key.type, key, Role.SORT) for i, key in enumerate(keys))
