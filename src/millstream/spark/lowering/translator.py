"""From a logical plan to a DataFrame: what is stateless is Catalyst's work, what is stateful a stage's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.queries.call_nodes import COMPLETE, OverCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.catalog.entries import Derived, Registered, Rejected, Stream, Table, View
from millstream.errors import ExecutionError, NotExecutableError
from millstream.plan import nodes
from millstream.plan.builder import build
from millstream.plan.join_conditions import WindowJoinParts
from millstream.plan.join_conditions import joined as joined_windows
from millstream.plan.pattern_parts import PatternSearch, taken_apart
from millstream.plan.time_attributes import arrives, attribute_beside_time, sources_of
from millstream.plan.unique_names import uniquely_named
from millstream.spark.errors.error_chain import FAILURES, translate
from millstream.spark.lowering import batch_operators
from millstream.spark.lowering.frames import InputFrame, StreamFrames, WindowAttribute, concatenated, united
from millstream.spark.planning.append_only_join_stage import join_input as shipment_of
from millstream.spark.planning.append_only_join_stage import needed_of
from millstream.spark.planning.pattern_stage import needed_by
from millstream.spark.planning.relation_stages import RelationStages
from millstream.spark.planning.stage_builder import StageBuilder, StageRequest
from millstream.spark.planning.window_stage import ends_with_the_input, is_contextual
from millstream.spark.sources.hidden_columns import MARK, column, hidden, shown
from millstream.spark.sources.stream_sources import ReadPort, SourceFrames, classify, read_stream, read_table

_HOW = {
    "inner": "inner",
    "cross": "cross",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "semi": "left_semi",
    "anti": "left_anti",
}
_MATCHED = "__ms_matched"
_WORDS = re.compile(r"\w+")

Needed = frozenset[tuple[str, str]]
"""Columns that somebody above wants, as (relation, name) in lower case."""


@dataclass(frozen=True)
class RequiredOutput:
    """What stands above a node: the columns wanted there, and whether there is another stage."""

    needed: Needed | None = None
    staged: bool = False

    def wanting(self, *exprs: Expr) -> RequiredOutput:
        """With the columns of these expressions wanted too."""
        if self.needed is None:
            return self
        return replace(self, needed=self.needed | _wanted(exprs))


@dataclass
class Lowerer:
    """Lowers the plan of one query.

    ``frames`` are the DataFrames that the caller registered; ``streams`` finds the stream that rejected some
    records. What the query reads is counted under the names in ``metrics``.
    """

    spark: SparkSession
    read_port: ReadPort
    frames: Mapping[str, DataFrame]
    streams: Callable[[str], Stream | None]
    control: DataFrame | None = None
    python_functions: frozenset[str] = frozenset()
    live: Mapping[str, DataFrame] = field(default_factory=dict)
    """Tables and views that every micro-batch reads anew, by name in lower case."""

    metrics: dict[str, Stream] = field(default_factory=dict)
    stages: StageBuilder = field(init=False)
    _read: dict[str, SourceFrames] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stages = StageBuilder(self.spark, self.control)

    def standing_in(self, stand_in: Callable[[StageRequest], DataFrame]) -> Lowerer:
        """One that reads the same, but whose stages somebody else runs."""
        other = replace(self)
        other.stages = replace(self.stages, stand_in=stand_in, pipelines=[])
        return other

    def lower(self, plan: nodes.Node) -> DataFrame:
        """The result with its hidden columns."""
        flow = self._lower(plan, RequiredOutput())
        if not flow.judged or any(leg.marked for leg in flow.legs):
            flow = self.stages.settled(flow, plan.schema, marked=False)
        return concatenated(flow)

    def _lower(self, node: nodes.Node, required: RequiredOutput) -> StreamFrames:
        match node:
            case nodes.StreamScan():
                return self._scan(node.stream, required).alias(node.alias)
            case nodes.TableScan(table=View() as view):
                # Whoever lowers a query has entered the views that it reads, as they are now.
                frame = self.live.get(view.name.lower()) or self.spark.table(view.name)
                return StreamFrames((InputFrame(frame),)).alias(node.alias)
            case nodes.TableScan():
                assert isinstance(node.table, Table)
                return StreamFrames((InputFrame(self.table(node.table)),)).alias(node.alias)
            case nodes.SparkQuery():
                return StreamFrames((InputFrame(self.spark.sql(node.text)),))
            case nodes.Rename():
                return self._lower(node.input, replace(required, needed=None)).alias(node.alias)
            case nodes.Filter():
                below = required.wanting(*node.conditions)
                flow = self._ready(self._lower(node.input, below), node, node.conditions, below)
                if _counts_all(flow):
                    return replace(flow, inside=(*flow.inside, *node.conditions))
                return flow.map(lambda leg: leg.where(node.conditions))
            case nodes.Project():
                exprs = [output.expr for output in node.outputs]
                below = replace(required, needed=_wanted(exprs))
                flow = self._ready(self._lower(node.input, below), node, exprs, below)
                return flow.map(lambda leg: leg.project(node.outputs))
            case nodes.TableJoin():
                return self._join(node, required)
            case nodes.StreamUnion():
                return self._union(node, required)
            case nodes.Windowed():
                return self._windowed(node, required)
            case nodes.InOrder() | nodes.Arranged() | nodes.Distinct() | nodes.WindowSetOperation():
                return self._of_tables(node, required)
            case nodes.WindowAggregate(input=nodes.InOrder() as source) if all(
                call.user is None for call in node.aggregates
            ):
                frame = concatenated(self._lower(source.input, RequiredOutput()))
                return StreamFrames((InputFrame(batch_operators.aggregated(frame, node)),))
            case nodes.WindowAggregate():
                flow = self._lower(node.input, RequiredOutput(staged=True))
                return self.stages.window(
                    flow, node, lambda column: _is_needed(column, required.needed), marked=required.staged
                )
            case nodes.OverAggregate():
                below = required.wanting(*(e for call in node.calls for e in _expressions(call)))
                flow = self._lower(node.input, replace(below, staged=True))
                results = {call.call.result for call in node.calls}
                passed = [c for c in node.input.schema if _is_needed(c, required.needed) and c not in results]
                complete = COMPLETE in node.schema and _is_needed(COMPLETE, required.needed)
                return self.stages.over(flow, node, passed, marked=required.staged, complete=complete)
            case nodes.BaseAggregate():
                exprs = [key.expr for key in node.group_by]
                exprs += [argument for call in node.aggregates for argument in call.arguments]
                exprs += [call.filter for call in node.aggregates if call.filter is not None]
                below = required.wanting(*exprs)
                flow = self._lower(node.input, replace(below, staged=True))
                passed = [c for c in node.input.schema if _is_needed(c, required.needed)]
                return self.stages.base(flow, node, passed, marked=required.staged)
            case nodes.RelationToStream():
                return self._maintained(node, required)
            case nodes.PatternMatch():
                return self._lower(taken_apart(node), required)
            case PatternSearch():
                return self._search(node, required)
            case _:
                raise AssertionError(f"{type(node).__name__} has passed the list of what can be run")

    # ------------------------------------------------------------ leaves

    def table(self, table: Table) -> DataFrame:
        """A table of the catalog."""
        if table.name.lower() in self.live:
            return self.live[table.name.lower()]
        with _at(table):
            return self._table(table)

    def _table(self, table: Table) -> DataFrame:
        match table.origin:
            case Derived(definition):
                return shown(concatenated(self._lower(build(definition), RequiredOutput())))  # type: ignore[arg-type]
            case Registered():
                if table.name.lower() in self.frames:
                    return self.frames[table.name.lower()]
                raise ExecutionError(
                    f"table '{table.name}' was declared without a source",
                    hint="add USING format OPTIONS (...) to its CREATE TABLE",
                )
            case _:
                return read_table(table, self.spark)

    def _scan(self, stream: Stream, required: RequiredOutput) -> StreamFrames:
        if isinstance(stream.origin, Rejected):
            return StreamFrames((self._rejected(stream, stream.origin, required),))
        unjudged = stream.can_be_late or required.staged
        return StreamFrames((self._unjudged(stream) if unjudged else InputFrame(self._frames(stream).good),))

    def _unjudged(self, stream: Stream) -> InputFrame:
        frames = self._frames(stream)
        return InputFrame(frames.good, stream, read=frames.good, untimed=frames.untimed)

    def _rejected(self, stream: Stream, origin: Rejected, required: RequiredOutput) -> InputFrame:
        """What another stream did not take; as a stream it is latent."""
        rejecting = self.streams(origin.stream)
        if rejecting is None:
            raise ExecutionError(f"stream '{origin.stream}' is gone")
        if origin.reason == "late":
            frame = self.stages.late(self._unjudged(rejecting), [f.name for f in stream.schema])
        else:
            frame = self._frames(rejecting).bad
        return InputFrame(frame, stream, read=frame) if required.staged else InputFrame(frame)

    def _frames(self, stream: Stream) -> SourceFrames:
        key = stream.name.lower()
        if key not in self._read:
            # Reading it twice in one query (a self join with a table between) must not count twice.
            name = f"millstream.{stream.name}"
            self.metrics[name] = stream
            with _at(stream):
                if isinstance(stream.origin, Registered) and key in self.frames:
                    self._read[key] = classify(self.frames[key], stream, name)
                else:
                    self._read[key] = read_stream(stream, self.spark, self.read_port, name)
        return self._read[key]

    # ------------------------------------------------------------ operators

    def _of_tables(self, node: nodes.Node, required: RequiredOutput) -> StreamFrames:
        """What is there for tables only."""
        match node:
            case nodes.InOrder():
                flow = self._lower(node.input, replace(required, staged=False))
                flow = flow.map(lambda leg: batch_operators.in_order(leg, node.column))
                return replace(flow, window=batch_operators.all_of(node))
            case nodes.Arranged():
                frame = concatenated(self._lower(node.input, replace(required, needed=None)))
                return StreamFrames((InputFrame(batch_operators.arranged(frame, node.arrangement)),))
            case nodes.Distinct():
                frame = concatenated(self._lower(node.input, replace(required, needed=None)))
                return StreamFrames((InputFrame(shown(frame).distinct()),))
            case nodes.WindowSetOperation():
                sides = [concatenated(self._lower(side, RequiredOutput())) for side in node.inputs]
                return StreamFrames((InputFrame(batch_operators.combined(sides[0], sides[1], node)),))
        raise AssertionError(f"{type(node).__name__} is not only for tables")

    def _maintained(self, node: nodes.RelationToStream, required: RequiredOutput) -> StreamFrames:
        form = joined_windows(node)
        if form is not None:
            return self._window_join(node, form, required)

        def lower(below: nodes.Node) -> StreamFrames:
            return self._lower(below, RequiredOutput(staged=True))

        distinct = replace(node, input=uniquely_named(node.input))
        flow = RelationStages(self.stages, lower, distinct, required.staged).stream()
        if distinct == node:
            return flow
        outputs = [
            Output(name.name, of_column(column))
            for name, column in zip(node.schema, distinct.schema, strict=True)
        ]
        return flow.map(lambda leg: leg.project(outputs))

    def _window_join(
        self, node: nodes.RelationToStream, form: WindowJoinParts, required: RequiredOutput
    ) -> StreamFrames:
        """Pairs of windows of time that do not slide come as soon as both their tuples are there."""
        shipment = shipment_of(form)
        flows = []
        for side, outputs in ((form.left, shipment.left), (form.right, shipment.right)):
            looked_at = needed_of(side, form)
            below = RequiredOutput(_wanted(looked_at), staged=True)
            flow = self._lower(side.windowed.input, below)
            flow = self._ready(flow, side.windowed, looked_at, below)
            flows.append(flow.map(partial(_selected, conditions=side.conditions, outputs=outputs)))
        union = nodes.StreamUnion(form.left.windowed, form.right.windowed, shipment.fields, all=True)
        flow = united(flows[0], flows[1], union)
        flow = self.stages.window_join(flow, form, shipment, marked=required.staged)
        flow = self._ready(flow, node, [*form.rest, *(o.expr for o in form.outputs)], required)
        return flow.map(partial(_selected, conditions=form.rest, outputs=form.outputs))

    def _search(self, node: PatternSearch, required: RequiredOutput) -> StreamFrames:
        looked_at = list(needed_by(node))
        below = RequiredOutput(_wanted(looked_at), staged=node.streaming)
        flow = self._ready(self._lower(node.input, below), node, looked_at, below)
        if not node.streaming:
            flow = flow.map(lambda leg: batch_operators.in_sequence(leg, node.pattern))
        return self.stages.pattern(flow, node, marked=required.staged)

    def _windowed(self, node: nodes.Windowed, required: RequiredOutput) -> StreamFrames:
        flow = self._lower(node.input, required)
        if not node.streaming:
            # A table has no timestamp of its own: the window's attribute is it.
            time = next(c for c in node.input.schema if c.name == node.window.attribute)
            flow = flow.map(lambda leg: batch_operators.timed(leg, F.expr(time.sql)))
        if ends_with_the_input(node.window):
            flow = flow.map(InputFrame.counted)
        beside = attribute_beside_time(node)
        return replace(flow if beside is None else _along(flow, node, beside), window=node)

    def _union(self, node: nodes.StreamUnion, required: RequiredOutput) -> StreamFrames:
        """Both inputs with the same columns; the timestamps that travel along make one order of them.

        Nobody waits for a silent input: results are final when they come, in whatever order, and a stage
        above knows the progress of each input.
        """
        together = not node.all or (_reads_directly(node) and not node.latent)
        below = RequiredOutput(staged=required.staged or together)
        sides = [self._lower(side, below) for side in (node.left, node.right)]
        if node.latent and not required.staged:
            # Tuples pass as they come, once each stream has sorted out what is late.
            sides = [
                flow if flow.judged else self.stages.settled(flow, side.schema, marked=False)
                for flow, side in zip(sides, node.inputs, strict=True)
            ]
        flow = united(sides[0], sides[1], node, ties=True)
        return flow if node.all else self.stages.distinct(flow, node.schema, marked=required.staged)

    def _ready(
        self, flow: StreamFrames, node: nodes.Node, exprs: Iterable[Expr], required: RequiredOutput
    ) -> StreamFrames:
        """Ready for these expressions: Spark runs Python functions on all rows, unwanted ones included."""
        if flow.judged or not any(self._calls_python(expr) for expr in exprs):
            return flow
        columns = [c for child in node.inputs for c in child.schema if _is_needed(c, required.needed)]
        schema = _present(flow, columns)
        return self.stages.settled(flow, schema, marked=required.staged)

    def _calls_python(self, expr: Expr) -> bool:
        words = {
            word.lower() for part in expr.parts if isinstance(part, str) for word in _WORDS.findall(part)
        }
        return not self.python_functions.isdisjoint(words)

    def _join(self, node: nodes.TableJoin, required: RequiredOutput) -> StreamFrames:
        below = required if node.condition is None else required.wanting(node.condition)
        flows = []
        for side in (node.left, node.right):
            flow = self._lower(side, below)
            if not flow.judged:
                # A join loses and repeats tuples, so they have to be judged before.
                needed = [c for c in _present(flow, side.schema) if _is_needed(c, below.needed)]
                flow = self.stages.settled(flow, needed, marked=required.staged)
            flows.append(flow)
        left, right = flows
        streams = left if node.left.streaming else right
        if any(leg.marked for leg in streams.legs):
            return self._marked_join(node, left, right)
        table = concatenated(right if streams is left else left)

        def joined(leg: InputFrame) -> InputFrame:
            pair = (leg.frame, table) if streams is left else (table, leg.frame)
            return replace(leg, frame=_hidden_last(_joined(*pair, node)))

        return streams.map(joined)

    def _marked_join(self, node: nodes.TableJoin, left: StreamFrames, right: StreamFrames) -> StreamFrames:
        """A join whose result goes to another stage: reports must come through it."""
        streams = left if node.left.streaming else right
        kinds = ("inner", "cross", "left", "anti") if streams is left else ("inner", "cross", "right")
        if node.kind not in kinds:
            raise NotExecutableError(f"a stateful operation above a {node.kind} join cannot be run yet")
        table = concatenated(right if streams is left else left).withColumn(_MATCHED, F.lit(True))
        condition = F.lit(True) if node.condition is None else F.expr(node.condition.sql)
        outer = node.kind in ("left", "right")

        def joined(leg: InputFrame) -> InputFrame:
            met = F.col(MARK).isNull() & condition
            if node.kind == "anti":
                return replace(leg, frame=_hidden_last(leg.frame.join(table, met, "left_anti")))
            frame = leg.frame.join(table, met, "left_outer")
            frame = frame if outer else frame.where(F.col(MARK).isNotNull() | F.col(_MATCHED))
            return replace(leg, frame=_hidden_last(frame.drop(_MATCHED)))

        return streams.map(joined)


def _counts_all(flow: StreamFrames) -> bool:
    """Whether tuples that a condition leaves out still count for the window that it is asked of.

    Of what is read, all times are known to a stage anyway; of what comes from another stage, only those of
    the tuples that are shipped.
    """
    if flow.window is None:
        return False
    window = flow.window.window
    return is_contextual(window) or (
        ends_with_the_input(window) and any(leg.stream is None for leg in flow.legs)
    )


def _selected(leg: InputFrame, conditions: tuple[Expr, ...], outputs: tuple[Output, ...]) -> InputFrame:
    return leg.where(conditions).project(outputs)


def _present(flow: StreamFrames, columns: Iterable[ColumnRef]) -> list[ColumnRef]:
    """Those that tuples have; the bounds of windows are known only when these are aggregated."""
    bounds = () if flow.window is None else flow.window.bounds
    return [c for c in columns if c not in bounds]


def _along(flow: StreamFrames, node: nodes.Windowed, column: ColumnRef) -> StreamFrames:
    """A flow whose tuples have the attribute of a window as their time, where they come as they were read."""
    if flow.judged or not arrives(node.input):
        # What a stage passes on is about the timestamp, so that only the end closes windows.
        if not all(n.stream.is_bounded for n in node.walk() if isinstance(n, nodes.StreamScan)):
            raise NotExecutableError(
                f"a window on '{column.name}' cannot be run here, as nothing tells it of progress",
                hint=f"put the window next to the stream that promises something about {column.name}",
            )
        return flow
    names = sources_of(node.input, column)
    legs = []
    for leg, name in zip(flow.legs, names, strict=True):
        assert leg.stream is not None, "it comes as it was read"
        promised = name if name in leg.stream.promises_on_others else None
        is_time = name is not None and name == (leg.stream.timestamp.column or "").lower()
        legs.append(leg.apply(partial(_measured, axis=WindowAttribute(column, promised, is_time))))
    return replace(flow, legs=tuple(legs))


def _measured(leg: InputFrame, axis: WindowAttribute) -> InputFrame:
    return replace(leg, axis=axis)


def _joined(left: DataFrame, right: DataFrame, node: nodes.TableJoin) -> DataFrame:
    if node.condition is None:
        return (
            left.crossJoin(right)
            if node.kind in ("inner", "cross")
            else left.join(right, how=_HOW[node.kind])
        )
    how = "inner" if node.kind == "cross" else _HOW[node.kind]
    return left.join(right, F.expr(node.condition.sql), how)


def _hidden_last(frame: DataFrame) -> DataFrame:
    """What travels along stands at the end, also behind the columns of a table that was joined."""
    unseen = hidden(frame.columns)
    return (
        frame.select(F.col("*"), *(column(name).alias(f"{name}_") for name in unseen))
        .drop(*unseen)
        .withColumnsRenamed({f"{name}_": name for name in unseen})
    )


def _reads_directly(node: nodes.Node) -> bool:
    """Whether tuples that are still to be judged come out of a node."""
    match node:
        case nodes.StreamScan():
            return node.stream.can_be_late
        case nodes.Filter() | nodes.Project() | nodes.Rename() | nodes.StreamUnion(all=True):
            return any(map(_reads_directly, node.inputs))
        case _:
            return False


def _wanted(exprs: Iterable[Expr]) -> Needed:
    return frozenset((c.relation.lower(), c.name.lower()) for expr in exprs for c in expr.columns())


def _is_needed(ref: ColumnRef, needed: Needed | None) -> bool:
    return needed is None or (ref.relation.lower(), ref.name.lower()) in needed


def _expressions(call: OverCall) -> Iterator[Expr]:
    yield from call.partition_by
    yield from call.call.arguments
    if call.call.filter is not None:
        yield call.call.filter


@contextmanager
def _at(entry: Stream | Table) -> Iterator[None]:
    """What goes wrong with a source is shown where the source was defined."""
    try:
        yield
    except FAILURES as error:
        translated = translate(error)
        translated.place = translated.place or entry.place
        raise translated from None
