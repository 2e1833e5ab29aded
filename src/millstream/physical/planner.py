"""From a logical plan to a physical one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from millstream.analysis.queries.call_nodes import COMPLETE
from millstream.analysis.queries.grouping.group_clause import SET
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.catalog.entries import Rejected, Stream, Table, View
from millstream.errors import ExecutionError
from millstream.physical import nodes as physical
from millstream.physical.flow import Flow, FlowInput, WindowAttribute, merged, of_node, united
from millstream.physical.node import PhysicalNode
from millstream.physical.operators.append_only_join import join_input, needed_of, plan_append_only_join
from millstream.physical.operators.lateral import extended, generated
from millstream.physical.operators.over import expressions_of, plan_over
from millstream.physical.operators.pattern import plan_pattern, values_of
from millstream.physical.operators.rank import plan_rank
from millstream.physical.operators.relations import RelationStages
from millstream.physical.operators.tables import TABLE_OPERATORS, plan_table_operator, whole_table
from millstream.physical.operators.window import plan_stream_udas, plan_window, plan_window_rows
from millstream.physical.programs import Programs
from millstream.physical.sources import bad_records_of, scan_of
from millstream.physical.stage_builder import StageBuilder
from millstream.physical.unknown_types import UnknownTypes
from millstream.plan import nodes
from millstream.plan.builder import build, definition_of
from millstream.plan.join_conditions import WindowJoinParts
from millstream.plan.join_conditions import joined as joined_windows
from millstream.plan.pattern_parts import PatternSearch, taken_apart
from millstream.plan.time_attributes import arrives, attribute_beside_time, sources_of
from millstream.plan.unique_names import uniquely_named
from millstream.windows.window_properties import ends_with_the_input, is_contextual

_WORDS = re.compile(r"\w+")

Needed = frozenset[tuple[str, str]]
"""Columns that an operator above needs, as (relation, name) in lower case."""


@dataclass(frozen=True)
class RequiredOutput:
    """The requirements of the operators above a node: columns, and whether there is another stage."""

    needed: Needed | None = None
    staged: bool = False

    def wanting(self, *exprs: Expr) -> RequiredOutput:
        """Return the requirements with the columns of these expressions."""
        if self.needed is None:
            return self
        return replace(self, needed=self.needed | _wanted(exprs))


@dataclass
class Planner:
    """Plans one query.

    ``streams`` finds the stream that rejected some records; ``python_functions`` are called by Spark on all
    rows, unwanted ones included.
    """

    streams: Callable[[str], Stream | None]
    programs: Programs = field(default_factory=Programs)
    python_functions: frozenset[str] = frozenset()
    zone: str = "UTC"
    unknown: UnknownTypes = field(default_factory=UnknownTypes)
    stages: StageBuilder = field(init=False)
    _root: nodes.Node | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.stages = StageBuilder(self.programs, self.unknown, self.zone)

    def plan(self, node: nodes.Node) -> physical.Output:
        """Return the physical plan of a query: late tuples and reports of stages are not in its result."""
        self._root = node
        flow = self.flow(node, RequiredOutput())
        if flow.late_pending or any(one.marked for one in flow.inputs):
            flow = self.stages.settled(flow, node.schema, marked=False)
        return physical.Output(merged(flow), stored=node.streaming and not flow.streaming)

    def table(self, table: Table | View) -> physical.TableScan:
        """Return the scan of a table or view; a derived one has the plan of its definition."""
        return self._table(nodes.TableScan(table, table.name))

    # ------------------------------------------------------------ operators

    def flow(self, node: nodes.Node, required: RequiredOutput) -> Flow:
        """Plan a node and all below it."""
        match node:
            case nodes.StreamScan():
                return self._scan(node, required)
            case nodes.TableScan() | nodes.SparkQuery():
                return of_node(self._stored(node))
            case nodes.Rename():
                return self.flow(node.input, replace(required, needed=None)).alias(node.alias)
            case nodes.Filter():
                return self._filter(node, required)
            case nodes.Project():
                exprs = [output.expr for output in node.outputs]
                below = replace(required, needed=_wanted(exprs))
                flow = self._ready(self.flow(node.input, below), node, exprs, below)
                return flow.map(lambda one: one.project(node.outputs))
            case nodes.Generate() | nodes.Extend() | nodes.GroupingSets():
                return self._of_each_row(node, required)
            case nodes.TableJoin():
                return self._lookup(node, required)
            case nodes.StreamUnion():
                return self._union(node, required)
            case nodes.Windowed():
                return self._windowed(node, required)
            case _ if isinstance(node, TABLE_OPERATORS):
                return plan_table_operator(node, self.flow, required)
            case nodes.WindowAggregate(input=nodes.InOrder() as source) if all(
                call.user is None for call in node.aggregates
            ):
                return whole_table(merged(self.flow(source.input, RequiredOutput())), node)
            case nodes.WindowAggregate() | nodes.WindowRows():
                plan = plan_window if isinstance(node, nodes.WindowAggregate) else plan_window_rows
                flow = self.flow(node.input, RequiredOutput(staged=True))
                wanted = partial(_is_needed, needed=required.needed)
                return plan(self.stages, flow, node, wanted, marked=required.staged)  # type: ignore[arg-type]
            case nodes.OverAggregate():
                return self._over(node, required)
            case nodes.StreamLimit():
                return self._limit(node, required)
            case nodes.WindowRank():
                return self._rank(node, required)
            case nodes.BaseAggregate():
                return self._base(node, required)
            case nodes.RelationToStream():
                return self._maintained(node, required)
            case nodes.PatternMatch():
                return self.flow(taken_apart(node), required)
            case PatternSearch():
                return self._search(node, required)
            case _:
                raise AssertionError(f"{type(node).__name__} has passed the list of what can be run")

    def _scan(self, node: nodes.StreamScan, required: RequiredOutput) -> Flow:
        stream = node.stream
        if isinstance(stream.origin, Rejected):
            return Flow((self._rejected(stream, stream.origin, required),)).alias(node.alias)
        pending = stream.can_be_late or required.staged
        scan = scan_of(stream, node.alias, late_pending=pending)
        return Flow((_pending(scan) if pending else FlowInput(scan),))

    def _rejected(self, stream: Stream, origin: Rejected, required: RequiredOutput) -> FlowInput:
        """Plan the tuples that another stream did not take, which are a latent stream."""
        rejecting = self.streams(origin.stream)
        if rejecting is None:
            raise ExecutionError(f"stream '{origin.stream}' is gone")
        if origin.reason == "late":
            scan = scan_of(rejecting, "", late_pending=True)
            found = self.stages.late(_pending(scan), [f.name for f in stream.schema])
        else:
            found = bad_records_of(rejecting, stream)
        return FlowInput(found, stream) if required.staged else FlowInput(found)

    def _stored(self, node: nodes.TableScan | nodes.SparkQuery) -> PhysicalNode:
        if isinstance(node, nodes.SparkQuery):
            return physical.SparkQuery(node.text, node.fields, node.rows)
        return self._table(node)

    def _table(self, node: nodes.TableScan) -> physical.TableScan:
        table = node.table
        definition = None
        query = definition_of(table)
        if query is not None:
            definition = merged(self.flow(build(query), RequiredOutput()))
        return physical.TableScan(table, node.alias, definition)

    def _filter(self, node: nodes.Filter, required: RequiredOutput) -> Flow:
        below = required.wanting(*node.conditions)
        flow = self._ready(self.flow(node.input, below), node, node.conditions, below)
        if _counts_all(flow):
            return replace(flow, inside=(*flow.inside, *node.conditions))
        return flow.map(lambda one: one.where(node.conditions))

    def _over(self, node: nodes.OverAggregate, required: RequiredOutput) -> Flow:
        below = required.wanting(*(e for call in node.calls for e in expressions_of(call)))
        flow = self.flow(node.input, replace(below, staged=True))
        results = {call.call.result for call in node.calls}
        passed = [c for c in node.input.schema if _is_needed(c, required.needed) and c not in results]
        complete = COMPLETE in node.schema and _is_needed(COMPLETE, required.needed)
        return plan_over(self.stages, flow, node, passed, marked=required.staged, complete=complete)

    def _limit(self, node: nodes.StreamLimit, required: RequiredOutput) -> Flow:
        flow = self.flow(node.input, RequiredOutput(staged=True))
        return self.stages.limited(
            flow, node.schema, node.limit, node.offset, marked=required.staged, ends=node is self._root
        )

    def _rank(self, node: nodes.WindowRank, required: RequiredOutput) -> Flow:
        below = required.wanting(*node.expressions(), *map(of_column, node.report))
        flow = self.flow(node.input, replace(below, staged=True))
        passed = [c for c in node.input.schema if _is_needed(c, required.needed)]
        return plan_rank(self.stages, flow, node, passed, marked=required.staged)

    def _base(self, node: nodes.BaseAggregate, required: RequiredOutput) -> Flow:
        exprs = [key.expr for key in node.group_by]
        exprs += [argument for call in node.aggregates for argument in call.arguments]
        exprs += [call.filter for call in node.aggregates if call.filter is not None]
        below = required.wanting(*exprs)
        flow = self.flow(node.input, replace(below, staged=True))
        passed = [c for c in node.input.schema if _is_needed(c, required.needed)]
        return plan_stream_udas(self.stages, flow, node, passed, marked=required.staged)

    def _maintained(self, node: nodes.RelationToStream, required: RequiredOutput) -> Flow:
        parts = joined_windows(node) if node.instant is None else None
        if parts is not None:
            return self._window_join(node, parts, required)

        def lower(below: nodes.Node) -> Flow:
            return self.flow(below, RequiredOutput(staged=True))

        distinct = replace(node, input=uniquely_named(node.input))
        flow = RelationStages(self.stages, lower, distinct, required.staged).stream()
        if distinct == node:
            return flow
        outputs = [
            Output(name.name, of_column(column))
            for name, column in zip(node.schema, distinct.schema, strict=True)
        ]
        return flow.map(lambda one: one.project(outputs))

    def _window_join(
        self, node: nodes.RelationToStream, parts: WindowJoinParts, required: RequiredOutput
    ) -> Flow:
        """Plan a join of windows that do not slide: pairs come as soon as both their tuples are there."""
        given = join_input(parts)
        flows = []
        for side, outputs in ((parts.left, given.left), (parts.right, given.right)):
            looked_at = needed_of(side, parts)
            below = RequiredOutput(_wanted(looked_at), staged=True)
            flow = self.flow(side.windowed.input, below)
            flow = self._ready(flow, side.windowed, looked_at, below)
            flows.append(flow.map(partial(_selected, conditions=side.conditions, outputs=outputs)))
        flow = united(flows[0], flows[1], given.fields)
        flow = plan_append_only_join(self.stages, flow, parts, given, marked=required.staged)
        flow = self._ready(flow, node, [*parts.rest, *(o.expr for o in parts.outputs)], required)
        return flow.map(partial(_selected, conditions=parts.rest, outputs=parts.outputs))

    def _search(self, node: PatternSearch, required: RequiredOutput) -> Flow:
        looked_at = values_of(node)
        below = RequiredOutput(_wanted(looked_at), staged=node.streaming)
        flow = self._ready(self.flow(node.input, below), node, looked_at, below)
        if not node.streaming:
            keys = [of_column(ColumnRef(node.pattern.alias, name)) for name in node.pattern.sequence_by]
            flow = of_node(physical.Sequence(merged(flow), tuple(keys)))
        return plan_pattern(self.stages, flow, node, marked=required.staged)

    def _windowed(self, node: nodes.Windowed, required: RequiredOutput) -> Flow:
        flow = self.flow(node.input, required)
        if ends_with_the_input(node.window):
            flow = flow.map(FlowInput.counted)
        beside = attribute_beside_time(node)
        return replace(flow if beside is None else _along(flow, node, beside), window=node)

    def _union(self, node: nodes.StreamUnion, required: RequiredOutput) -> Flow:
        """Plan a union: both inputs with the same columns, in one order by the timestamps that travel along.

        A silent input is not waited for: results are final when they come, in whatever order, and a stage
        above knows the progress of each input.
        """
        together = not node.all or (_reads_directly(node) and not node.latent)
        below = RequiredOutput(staged=required.staged or together)
        sides = [self.flow(side, below) for side in (node.left, node.right)]
        if node.latent and not required.staged:
            # Tuples pass as they come, once each stream has sorted out what is late.
            sides = [
                self.stages.settled(flow, side.schema, marked=False) if flow.late_pending else flow
                for flow, side in zip(sides, node.inputs, strict=True)
            ]
        flow = united(sides[0], sides[1], node.fields, latent=node.latent, ties=True)
        if node.all:
            return flow
        return self.stages.distinct(flow, node.schema, marked=required.staged, latent=node.latent)

    def _ready(self, flow: Flow, node: nodes.Node, exprs: Iterable[Expr], required: RequiredOutput) -> Flow:
        """Make a flow ready for expressions: Spark runs Python functions on all rows, unwanted ones too."""
        if not flow.late_pending or not any(self._calls_python(expr) for expr in exprs):
            return flow
        columns = [c for child in node.inputs for c in child.schema if _is_needed(c, required.needed)]
        schema = _present(flow, columns)
        return self.stages.settled(flow, schema, marked=required.staged)

    def _calls_python(self, expr: Expr) -> bool:
        words = {
            word.lower() for part in expr.parts if isinstance(part, str) for word in _WORDS.findall(part)
        }
        return not self.python_functions.isdisjoint(words)

    def _of_each_row(
        self, node: nodes.Generate | nodes.Extend | nodes.GroupingSets, required: RequiredOutput
    ) -> Flow:
        if isinstance(node, nodes.GroupingSets):
            return self._sets(node, required)
        return self._lateral(node, required)

    def _sets(self, node: nodes.GroupingSets, required: RequiredOutput) -> Flow:
        """Copy tuples; they are judged before, because promises may count them."""
        flow = self.flow(node.input, required)
        if flow.late_pending:
            needed = [c for c in node.input.schema if _is_needed(c, required.needed)]
            flow = self.stages.settled(flow, needed, marked=required.staged)
        return flow.map(lambda one: one.copied(SET, node.count))

    def _lateral(self, node: nodes.Generate | nodes.Extend, required: RequiredOutput) -> Flow:
        """Plan what is computed for each row; what repeats and loses tuples comes behind their judgement."""
        exprs = [node.items] if isinstance(node, nodes.Generate) else [o.expr for o in node.outputs]
        below = required.wanting(*exprs)
        flow = self.flow(node.input, below)
        kept = [c for c in _present(flow, node.input.schema) if _is_needed(c, below.needed)]
        if flow.late_pending and isinstance(node, nodes.Generate):
            flow = self.stages.settled(flow, kept, marked=required.staged)
        flow = self._ready(flow, node, exprs, below)
        if isinstance(node, nodes.Generate):
            return flow.map(partial(generated, node, kept))
        return flow.map(partial(extended, node, kept))

    def _lookup(self, node: nodes.TableJoin, required: RequiredOutput) -> Flow:
        below = required if node.condition is None else required.wanting(node.condition)
        flows = []
        for side in (node.left, node.right):
            flow = self.flow(side, below)
            if flow.late_pending:
                # A join loses and repeats tuples, so they have to be judged before.
                needed = [c for c in _present(flow, side.schema) if _is_needed(c, below.needed)]
                flow = self.stages.settled(flow, needed, marked=required.staged)
            flows.append(flow)
        left, right = flows
        streams = left if node.left.streaming else right
        marked = any(one.marked for one in streams.inputs)
        table = merged(right if streams is left else left)

        def looked_up(one: FlowInput) -> FlowInput:
            sides = (one.node, table) if streams is left else (table, one.node)
            return replace(
                one, node=physical.Lookup(*sides, node.kind, node.condition, streams is left, marked)
            )

        return streams.map(looked_up)


def _pending(scan: physical.Scan) -> FlowInput:
    return FlowInput(scan, scan.stream, untimed=scan.untimed)


def _counts_all(flow: Flow) -> bool:
    """Tell whether tuples that a condition leaves out still count for the window that it is asked of.

    Of what is read, all times are known to a stage anyway; of what comes from another stage, only those of
    the tuples that are shipped.
    """
    if flow.window is None:
        return False
    window = flow.window.window
    return is_contextual(window) or (
        ends_with_the_input(window) and any(one.stream is None for one in flow.inputs)
    )


def _selected(one: FlowInput, conditions: tuple[Expr, ...], outputs: tuple[Output, ...]) -> FlowInput:
    return one.where(conditions).project(outputs)


def _present(flow: Flow, columns: Iterable[ColumnRef]) -> list[ColumnRef]:
    """Return the columns that tuples have; bounds of windows are known only when these are aggregated."""
    bounds = () if flow.window is None else flow.window.bounds
    return [c for c in columns if c not in bounds]


def _along(flow: Flow, node: nodes.Windowed, column: ColumnRef) -> Flow:
    """Make the attribute of a window the time of tuples, where they come as they were read."""
    if not flow.late_pending or not arrives(node.input):
        # What a stage passes on is about the timestamp, so that only the end closes windows.
        return flow
    inputs = []
    for one, name in zip(flow.inputs, sources_of(node.input, column), strict=True):
        assert one.stream is not None, "it comes as it was read"
        promised = name if name in one.stream.promises_on_others else None
        is_time = name is not None and name == (one.stream.timestamp.column or "").lower()
        inputs.append(replace(one, axis=WindowAttribute(column, promised, is_time)))
    return replace(flow, inputs=tuple(inputs))


def _reads_directly(node: nodes.Node) -> bool:
    """Tell whether tuples that are still to be judged come out of a node."""
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
