"""From stateful plan nodes to stages: what they need of their input, and which kernels run."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from millstream.analysis.queries.call_nodes import COMPLETE, AggregateCall, OverCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.codegen.udas.uda_compiler import CONTENT, WHOLE_TABLE
from millstream.errors import NotExecutableError
from millstream.kernels.core.kernel import Kernel
from millstream.kernels.core.partition_state import BY_PART, WHOLE
from millstream.kernels.specs import OverSpec, OverUdaSpec, SlideSpec, WindowSpec
from millstream.kernels.udas.compiled_machine import returned_fields
from millstream.plan import nodes
from millstream.plan.join_conditions import WindowJoinParts
from millstream.plan.pattern_parts import PatternSearch
from millstream.plan.time_attributes import attribute_beside_time
from millstream.quantity import Rows
from millstream.spark.host.shard_reports import ShardReports
from millstream.spark.host.stage_host import Stage, shard_ids, stage_stream, stage_table
from millstream.spark.lowering.frames import InputFrame, StreamFrames, named
from millstream.spark.lowering.input_frames import (
    has_value,
    hashes,
    is_integer,
    packed,
    time_type_of,
    type_of,
)
from millstream.spark.planning.aggregate_columns import aggregate
from millstream.spark.planning.append_only_join_stage import JoinInput
from millstream.spark.planning.over_stage import MakeKernel, over_kernels, over_spec, user_over_spec
from millstream.spark.planning.pattern_stage import PatternInput, as_columns, pattern_stage
from millstream.spark.planning.stream_disorder import units
from millstream.spark.planning.uda_columns import (
    base_spec,
    bracket_spec,
    opened,
    put_together,
    read_given,
    shipped_arguments,
)
from millstream.spark.planning.window_stage import (
    WindowPlanner,
    bound_type_of,
    counts_arrivals,
    is_apart,
    is_contextual,
    partitioning,
)
from millstream.spark.sources.hidden_columns import SORT
from millstream.stage.pipeline import ORIGINS_PER_INPUT, Input, Pipeline
from millstream.stage.program_discovery import every_program
from millstream.stage.shard import result_schema
from millstream.windows.window_spec import LandmarkWindow, RangeWindow, RowWindow

ONE = "__ms_one"
ALONG = "__ms_along"
"""The attribute of a window, where tuples come in the order of their timestamps."""


@dataclass(frozen=True)
class StageRequest:
    """A stage that is wanted: a pipeline, and what is to be packed for each of its inputs."""

    pipeline: Pipeline
    legs: tuple[InputFrame, ...]
    shipped: dict[str, Column]
    keys: Sequence[Column] | None
    key: str | None
    parallel: bool
    frames: list[DataFrame]
    searched: PatternInput | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that are read; nothing for what comes from another stage."""
        return tuple("" if source.chained else source.name for source in self.pipeline.inputs)


@dataclass
class StageBuilder:
    """Makes the stages of a query.

    ``control`` is the stream of heartbeats and ends, if there is one: then somebody also wants to know what
    the stages ``report``, each about the streams that it reads. A ``stand_in`` gives the results of stages
    over streams that somebody else runs.
    """

    spark: SparkSession
    control: DataFrame | None = None
    reports: list[tuple[ShardReports, tuple[str, ...]]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)
    stand_in: Callable[[StageRequest], DataFrame] | None = None
    given: dict[str, pa.Table] = field(default_factory=dict)
    """What has been read of the tables that aggregates look at."""

    # ------------------------------------------------------------ what becomes a stage

    def settled(self, flow: StreamFrames, schema: Iterable[ColumnRef], *, marked: bool) -> StreamFrames:
        """The tuples that are in time, of all legs."""
        if flow.legs[0].axis is not None and flow.window is not None and counts_arrivals(flow.window.window):
            raise NotExecutableError(f"tuples of the window {flow.window.window} cannot be judged before it")
        refs = tuple(schema)
        shipped = {f"c{i}": F.expr(ref.sql) for i, ref in enumerate(refs)}
        frame = self.run(flow, shipped, None, [], marked=marked, spread=True)
        columns = [(ref, f"c{i}") for i, ref in enumerate(refs)]
        leg = InputFrame(named(frame, columns), marked=marked, staged=True, axis=flow.legs[0].axis)
        return StreamFrames((leg,), flow.window)

    def late(self, leg: InputFrame, names: Sequence[str]) -> DataFrame:
        """The tuples of a stream that came too late."""
        shipped = {name: F.expr(ColumnRef("", name).sql) for name in names}
        return self.run(StreamFrames((leg,)), shipped, None, [], marked=False, late=True)

    def distinct(self, flow: StreamFrames, schema: Iterable[ColumnRef], *, marked: bool) -> StreamFrames:
        """UNION: of tuples equal in every column and in time, the first."""
        from millstream.kernels.relational.union_distinct import UnionDistinct

        refs = tuple(schema)
        shipped = {f"c{i}": F.expr(ref.sql) for i, ref in enumerate(refs)}
        keys = [F.col(ref.name) for ref in refs]
        frame = self.run(flow, shipped, keys, [partial(UnionDistinct)], marked=marked)
        columns = [(ref, f"c{i}") for i, ref in enumerate(refs)]
        return StreamFrames((InputFrame(named(frame, columns), marked=marked, staged=True),))

    def over(
        self,
        flow: StreamFrames,
        node: nodes.OverAggregate,
        needed: Iterable[ColumnRef],
        *,
        marked: bool,
        complete: bool = False,
    ) -> StreamFrames:
        """Aggregates over windows of their own; calls with the same partitions share a stage.

        ``complete`` says whether it is wanted to know which results are partial ones.
        """
        groups: dict[tuple[str, ...], list[OverCall]] = {}
        for call in node.calls:
            groups.setdefault(tuple(expr.sql for expr in call.partition_by), []).append(call)
        passed = list(needed)
        remaining = list(groups.values())
        while remaining:
            calls = remaining.pop(0)
            later = [c for group in remaining for c in group]
            refs = list(dict.fromkeys([*passed, *_columns(later)]))
            marks = (marked or bool(remaining)) and flow.legs[0].frame.isStreaming
            flow = self._over(flow, calls, refs, marked=marks, complete=complete)
            passed += [call.call.result for call in calls]
        return flow

    def _over(
        self,
        flow: StreamFrames,
        calls: Sequence[OverCall],
        refs: Sequence[ColumnRef],
        *,
        marked: bool,
        complete: bool,
    ) -> StreamFrames:
        frame = flow.legs[0].frame
        shipped = {f"c{i}": F.expr(ref.sql) for i, ref in enumerate(refs)}
        time_type = time_type_of(flow.legs[0])
        measured = partial(units, kind=time_type)
        specs: list[OverSpec | OverUdaSpec] = []
        for i, call in enumerate(calls):
            if call.call.user is not None:
                body, spec = user_over_spec(call, measured, f"a{i}", f"r{i}")
                argument = shipped_arguments(call.call, body, f"a{i}")
            else:
                argument, own = aggregate(frame, call.call, f"a{i}", f"r{i}")
                spec = over_spec(call, own, measured)
            shipped |= argument
            specs.append(spec)
        keys = [F.expr(expr.sql) for expr in calls[0].partition_by]
        slide = _slide(calls[0], time_type, "complete" if complete else None)
        made = over_kernels(calls, specs, slide)
        results = list(made.added)
        if complete:
            results.append(pa.field("complete", pa.bool_()))
        texts = [expr.sql for expr in calls[0].partition_by]
        key = next((f"c{i}" for i, ref in enumerate(refs) if texts == [ref.sql]), None)
        result = self.run(
            flow,
            shipped,
            keys,
            made.kernels,
            marked=marked,
            key=key,
            keep=len(refs),
            add=results,
            # What leaves is stamped with the instant at which it does.
            time_type=bound_type_of(time_type) if any(c.active_expiration for c in calls) else None,
        )
        result = opened(put_together(result, made.apart), made.listed)
        columns = [(ref, f"c{i}") for i, ref in enumerate(refs)]
        columns += [(call.call.result, f"r{i}") for i, call in enumerate(calls)]
        columns += [(COMPLETE, "complete")] if complete else []
        return StreamFrames((InputFrame(named(result, columns), marked=marked, staged=True),))

    def base(
        self, flow: StreamFrames, node: nodes.BaseAggregate, needed: Sequence[ColumnRef], *, marked: bool
    ) -> StreamFrames:
        """Base aggregates of the user's: a row for whatever they return."""
        from millstream.kernels.core.reorder import Reorder
        from millstream.kernels.udas.stream_uda import BaseAggregate

        marked = marked and flow.legs[0].frame.isStreaming
        refs = [ref for ref in node.input.schema if ref in needed]
        shipped = {f"c{i}": F.expr(ref.sql) for i, ref in enumerate(refs)}
        computed = [key for key in node.group_by if key.expr.column is None]
        shipped |= {f"g{i}": F.expr(key.expr.sql) for i, key in enumerate(computed)}
        kept = len(shipped)
        users = []
        for i, call in enumerate(node.aggregates):
            arguments, spec = base_spec(call, f"a{i}", f"r{i}")
            shipped |= arguments
            users.append((call, spec, f"r{i}"))
        keys = [F.expr(key.expr.sql) for key in node.group_by]
        texts = [key.expr.sql for key in node.group_by]
        key = next((f"c{i}" for i, ref in enumerate(refs) if texts == [ref.sql]), None)
        kernels: list[MakeKernel] = [
            partial(Reorder),
            partial(BaseAggregate, tuple(spec for _, spec, _ in users)),
        ]
        results = [one for _, spec, _ in users for one in returned_fields(spec.program, spec.results)]
        frame = self.run(flow, shipped, keys, kernels, marked=marked, key=key, keep=kept, add=results)
        frame = put_together(frame, users)
        columns = [(ref, f"c{i}") for i, ref in enumerate(refs)]
        columns += [(ColumnRef("", k.name, k.expr.type), f"g{i}") for i, k in enumerate(computed)]
        columns += [(call.result, name) for call, _, name in users]
        return StreamFrames((InputFrame(named(frame, columns), marked=marked, staged=True),))

    def pattern(self, flow: StreamFrames, node: PatternSearch, *, marked: bool) -> StreamFrames:
        """The matches of a sequence pattern."""
        from millstream.kernels.core.reorder import Reorder
        from millstream.kernels.patterns.pattern_match import PatternMatch

        search = pattern_stage(node)
        searched = PatternInput(node.input, search, (partial(Reorder),))
        frame = self.run(
            flow,
            as_columns(search.values),
            [F.expr(key.sql) for key in search.keys],
            [*searched.before, partial(PatternMatch, search.spec)],
            marked=marked and flow.legs[0].frame.isStreaming,
            keep=0,
            add=search.results,
            anew=True,
            searched=searched,
        )
        columns = zip(node.schema, search.spec.results, strict=True)
        return StreamFrames((InputFrame(named(frame, columns), marked=marked, staged=True),))

    def window_join(
        self, flow: StreamFrames, parts: WindowJoinParts, join_input: JoinInput, *, marked: bool
    ) -> StreamFrames:
        """Pairs of tuples of two streams, which are one flow that tells their tuples apart."""
        from millstream.kernels.core.reorder import Reorder
        from millstream.kernels.relational.append_only_join import AppendOnlyJoin

        spec = join_input.spec(parts, time_type_of(flow.legs[0]))
        marked = marked and flow.legs[0].frame.isStreaming
        frame = self.run(
            flow,
            join_input.shipped(),
            [F.col(name) for name in join_input.keys],
            [partial(Reorder), partial(AppendOnlyJoin, spec)],
            marked=marked,
            keep=0,
            add=join_input.results(),
        )
        return StreamFrames((InputFrame(named(frame, join_input.columns()), marked=marked, staged=True),))

    def window(
        self,
        flow: StreamFrames,
        node: nodes.WindowAggregate,
        wanted: Callable[[ColumnRef], bool],
        *,
        marked: bool,
    ) -> StreamFrames:
        """Aggregates over bracket windows."""
        from millstream.kernels.core.reorder import Reorder
        from millstream.kernels.windows.arrival_numbers import PLACED
        from millstream.kernels.windows.panes import INSIDE
        from millstream.kernels.windows.window_aggregate import WindowAggregate
        from millstream.stage.retime import Retimed

        windowed = flow.window
        assert windowed is not None
        window = windowed.window
        marked = marked and flow.legs[0].frame.isStreaming
        keys: dict[ColumnRef, Expr] = {}
        for key in node.group_by:
            keys[key.expr.column or ColumnRef("", key.name, key.expr.type)] = key.expr
        parts = []
        for name in window.partition_by:
            ref = next(c for c in windowed.input.schema if c.name.lower() == name.lower())
            ref = ColumnRef(windowed.alias, ref.name, ref.type)
            keys.setdefault(ref, of_column(ref))
            parts.append(F.expr(ref.sql))
        leg = flow.legs[0]
        shipped = {f"g{i}": F.expr(expr.sql) for i, expr in enumerate(keys.values())}
        specs = []
        listed: list[tuple[AggregateCall, str]] = []
        for i, call in enumerate(node.aggregates):
            if call.user is not None:
                on_table = isinstance(windowed.input, nodes.InOrder)
                argument, spec = bracket_spec(call, f"a{i}", f"r{i}", WHOLE_TABLE if on_table else CONTENT)
                listed.append((call, f"r{i}"))
            else:
                argument, spec = aggregate(leg.frame, call, f"a{i}", f"r{i}")
            shipped |= argument
            specs.append(spec)
        per = partitioning(window, [ref.name for ref in keys])
        shown = [bound for bound in windowed.bounds if wanted(bound)]
        numbered = any(bound.name == "wid" for bound in shown)
        beside = attribute_beside_time(windowed)
        retimed = beside is not None and leg.axis is None
        time_type = type_of(leg, beside) if retimed and beside is not None else time_type_of(leg)
        apart = beside is None and len(flow.legs) == 1 and is_apart(leg.stream, windowed, keys)
        placement = WindowPlanner(self.spark, time_type).of(window, per, numbered=numbered, apart=apart)
        shipped |= placement.shipped
        before: list[MakeKernel] = list(placement.before)
        if retimed and beside is not None:
            shipped[ALONG] = F.expr(beside.sql)
            before = [partial(Reorder), partial(Retimed, ALONG), *before]
        if beside is not None and counts_arrivals(window):
            shipped[PLACED] = has_value(leg, beside)
        if per == BY_PART:
            shipped |= dict(zip(BY_PART, hashes(leg.frame, parts), strict=True))
        if flow.inside:
            conditions = (F.expr(condition.sql) for condition in flow.inside)
            shipped[INSIDE] = functools.reduce(lambda one, other: one & other, conditions)
        spec_ = WindowSpec(
            placement.placing,
            placement.edge_type,
            tuple(f"g{i}" for i in range(len(keys))),
            tuple(specs),
            placement.wid_type,
        )
        kinds = {"wid": spec_.wid_type, "complete": pa.bool_()}
        bounds = [pa.field(bound.name, kinds.get(bound.name, spec_.edge_type)) for bound in shown]
        # Results with the same time are in the order of their windows, whole ones last, and of their groups.
        ranking = [] if isinstance(window, RangeWindow) else [pa.field("wid", spec_.wid_type)]
        ranking += [pa.field("complete", pa.bool_())] if window.emit_every else []
        unseen = [one for one in ranking if one not in bounds]
        added = [*bounds, *unseen, *(pa.field(s.result, s.type) for s in specs)]
        frame = self.run(
            flow,
            shipped,
            [F.expr(expr.sql) for expr in keys.values()],
            [*before, partial(WindowAggregate, spec_)],
            marked=marked,
            key="g0" if len(keys) == 1 and per != BY_PART else None,
            keep=len(keys),
            add=added,
            regroups=True,
            # Shards agree on the end of a landmark by the newest tuple, which is known of the timestamp only.
            parallel=(per != WHOLE or not is_contextual(window))
            and not (retimed and isinstance(window, LandmarkWindow)),
            generous=placement.generous,
            apart=apart,
            time_type=None if isinstance(window, RowWindow) else placement.edge_type,
        )
        groups = [f.name for f in frame.schema.fields[: len(keys)] if isinstance(f.dataType, T.AtomicType)]
        order = [*(one.name for one in ranking), *groups]
        sorting = [F.col(name).alias(f"{SORT}{i:03}") for i, name in enumerate(order)]
        frame = opened(frame.select("*", *sorting), listed)
        columns = [(ref, f"g{i}") for i, ref in enumerate(keys)]
        columns += [(bound, bound.name) for bound in shown]
        columns += [(call.result, f"r{i}") for i, call in enumerate(node.aggregates)]
        return StreamFrames((InputFrame(named(frame, columns), marked=marked, staged=True),))

    # ------------------------------------------------------------ running one

    def run(
        self,
        flow: StreamFrames,
        shipped: dict[str, Column],
        keys: Sequence[Column] | None,
        kernels: Sequence[MakeKernel],
        *,
        marked: bool,
        key: str | None = None,
        keep: int | None = None,
        add: Sequence[pa.Field] = (),
        late: bool = False,
        spread: bool = False,
        regroups: bool = False,
        anew: bool = False,
        parallel: bool = True,
        generous: bool = False,
        apart: bool = False,
        time_type: pa.DataType | None = None,
        searched: PatternInput | None = None,
    ) -> DataFrame:
        """A stage over a flow: its first ``keep`` columns (or all) come out again, and those that it adds.

        ``key`` names a column that is all there is of the key: if it is an integer, that is enough. A stage
        that ``regroups`` has results of its own instead of tuples that pass, and so has one that makes rows
        ``anew``, but these are in order. One that is not ``parallel`` has
        to see all tuples in one place; one that is ``generous`` can do something with late ones. Results have
        the ``time_type`` of the tuples, if not another.
        """
        for program in every_program(kernels):
            read_given(program, self.spark, self.given)
        passed = list(shipped)[:keep]
        if not shipped:
            # Arrow forgets how many rows a table has that has no columns.
            shipped = {ONE: F.lit(True)}
        # Results of a window: their groups give the order of those with the same time, here and above.
        staged = any(leg.staged for leg in flow.legs)
        ties = [name for name in flow.legs[0].frame.columns if staged and name.startswith(SORT)]
        shipped = {**shipped, **{name: F.col(name) for name in ties}}
        passed += [] if regroups or anew else ties
        frames, inputs = [], []
        if key is not None and not is_integer(flow.legs[0].frame, shipped[key]):
            key = None
        for leg in flow.legs:
            frame, source = packed(leg, shipped, keys, key, spread=spread)
            # Only windows count late tuples; for everybody else they are just late.
            source = source if generous else source.without_generosity()
            frames.append(frame)
            inputs.append(replace(source, ties=tuple(ties) if leg.staged else (), apart=apart))
        if ties and not late:
            kernels = [_settling(ties, inputs), *kernels]
        output = pa.schema([*(inputs[0].columns.field(name) for name in passed), *add])
        pipeline = Pipeline(
            tuple(inputs),
            partial(made, tuple(kernels)),
            output,
            time_type or inputs[0].time_type,
            late,
            ordered=marked or not regroups,
            marked=marked and frames[0].isStreaming,
        )
        self.pipelines.append(pipeline)
        parallel = (parallel and bool(keys)) or (spread and not late)
        wanted = StageRequest(pipeline, flow.legs, shipped, keys, key, parallel, frames, searched)
        if self.stand_in is not None and frames[0].isStreaming:
            return self.stand_in(wanted)
        return self._stage(wanted)

    def _stage(self, request: StageRequest) -> DataFrame:
        partitions = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        shards = shard_ids(partitions if request.parallel else 1, partitions)
        stage = Stage(request.pipeline, shards, uuid.uuid4().hex)
        self.tokens.append(stage.token)
        if not request.frames[0].isStreaming:
            return stage_table(stage, request.frames)
        if self.control is not None:
            reports = ShardReports(self.spark.sparkContext)
            self.reports.append((reports, request.streams))
            stage = replace(stage, reports=(reports,))
        return stage_stream(stage, request.frames, self.control)


def _settling(ties: Sequence[str], inputs: Sequence[Input]) -> MakeKernel:
    """Those with the same time are put in order when all of them are there, which may take micro-batches."""
    from millstream.kernels.core.tie_order import TieOrder

    firsts = [i * ORIGINS_PER_INPUT for i, source in enumerate(inputs) if source.ties]
    return partial(TieOrder, tuple(ties), tuple((first, first + ORIGINS_PER_INPUT - 1) for first in firsts))


def empty_result(request: StageRequest) -> DataFrame:
    """The results of a stage that has not seen anything."""
    schema = from_arrow_schema(result_schema(request.pipeline))
    spark = request.frames[0].sparkSession
    return spark.createDataFrame([], schema)


def made(kernels: tuple[MakeKernel, ...]) -> list[Kernel]:
    return [make() for make in kernels]


def _slide(call: OverCall, time_type: T.DataType, complete: str | None) -> SlideSpec | None:
    emit = None if call.emit_every is None else int(units(call.emit_every, time_type))
    match call.slide:
        case None:
            return None
        case Rows(count):
            return SlideSpec(rows=count, emit=emit, complete=complete)
        case amount:
            return SlideSpec(time=int(units(amount, time_type)), emit=emit, complete=complete)


def _columns(calls: Iterable[OverCall]) -> Iterable[ColumnRef]:
    for call in calls:
        for expr in (
            *call.partition_by,
            *call.call.arguments,
            *((call.call.filter,) if call.call.filter else ()),
        ):
            yield from expr.columns()
