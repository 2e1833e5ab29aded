"""Aggregates over bracket windows, and base aggregates of the user's on bare streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column, part_of
from millstream.catalog.entries import SlackPromise
from millstream.codegen.udas.uda_compiler import CONTENT, WHOLE_TABLE
from millstream.kernels.column_names import BY_PART, INSIDE, PARTITIONS, PLACED, WHOLE
from millstream.kernels.kernel_specs import ReorderSpec, RetimeSpec, StreamUdasSpec
from millstream.kernels.specs import ROWS, AggregateSpec, UdaSpec, WindowSpec
from millstream.physical import expressions as ex
from millstream.physical.flow import Flow, FlowInput, named, passed
from millstream.physical.node import Choice, Column, Role, arrow_of
from millstream.physical.nodes import Compute
from millstream.physical.operators.over import aggregate_choice
from millstream.physical.operators.time_panes import PanePlanner
from millstream.physical.operators.udas import (
    base_spec,
    bracket_spec,
    exploded,
    put_together,
    returned_columns,
    rows_column,
)
from millstream.physical.operators.window_assigners import (
    AssignerPlanner,
    WindowPlacement,
)
from millstream.physical.stage_builder import StageBuilder, StageDraft, sorting_columns
from millstream.plan import nodes, time_panes
from millstream.plan.time_attributes import attribute_beside_time, is_apart
from millstream.types import BOOLEAN, Field, Type, array, struct
from millstream.windows.window_properties import counts_arrivals, is_contextual, partitioning
from millstream.windows.window_spec import LandmarkWindow, RangeWindow, RowWindow, Window

LISTED = "__ms_listed"
"""The list of the tuples of a window."""

ALONG = "__ms_along"
"""The attribute of a window, where tuples come in the order of their timestamps."""

Keys = dict[ColumnRef, Expr]


def plan_window(
    stages: StageBuilder,
    flow: Flow,
    node: nodes.WindowAggregate,
    wanted: Callable[[ColumnRef], bool],
    *,
    marked: bool,
) -> Flow:
    """Plan aggregates over bracket windows."""
    windowed = flow.window
    assert windowed is not None
    window, first = windowed.window, flow.first
    keys, parts = _keys(node, windowed)
    draft = StageDraft({f"g{i}": stages.typed(flow, expr) for i, expr in enumerate(keys.values())})
    mode = WHOLE_TABLE if isinstance(windowed.input, nodes.InOrder) else CONTENT
    per = PARTITIONS[partitioning(window, [ref.name for ref in keys])]
    shown = [bound for bound in windowed.bounds if wanted(bound)]
    beside = attribute_beside_time(windowed)
    retimed = beside if first.axis is None else None
    time_type = first.time_type if retimed is None else first.type_of(retimed)
    draft.apart = beside is None and len(flow.inputs) == 1 and is_apart(first.stream, windowed, keys)
    placement = AssignerPlanner(time_type, stages.zone).of(
        window, per, numbered=any(bound.name == "wid" for bound in shown), apart=draft.apart
    )
    panes = PanePlanner(stages.programs, node, placement.assigner)
    specs, results, listed = plan_calls(stages, flow, node.aggregates, draft, mode, panes)
    if panes.specs:
        specs = panes.beside(specs)
        placement = replace(placement, before=panes.kernels(len(keys), specs), generous=False)
    draft.arguments, before = draft.arguments | placement.shipped, placement.before
    if retimed is not None:
        draft.arguments[ALONG] = Expr((retimed,), time_type)
        before = (ReorderSpec(), RetimeSpec(ALONG), *before)
    if beside is not None and counts_arrivals(window):
        draft.arguments[PLACED] = ex.has_place(Expr((beside,), first.type_of(beside)))
    if per == BY_PART:
        draft.arguments |= dict(zip(BY_PART, ex.hashes(parts), strict=True))
    if flow.inside:
        draft.arguments[INSIDE] = ex.all_hold(flow.inside)
    draft.kernels = (*before, _spec(window, placement, len(keys), specs))
    ranking = _ranking(window, placement)
    draft.added = _added(shown, ranking, placement, results)
    draft.keys = tuple(keys.values())
    draft.key = "g0" if len(keys) == 1 and per != BY_PART else None
    draft.marked, draft.regroups, draft.generous = marked, True, placement.generous
    # Shards agree on the end of a landmark by the newest tuple, which is known of the timestamp only.
    draft.parallel = (per != WHOLE or not is_contextual(window)) and not (
        retimed is not None and isinstance(window, LandmarkWindow)
    )
    draft.time = None if isinstance(window, RowWindow) else placement.edge
    draft.notes = _notes(node, placement, flow)
    stage = stages.build(flow, draft)
    order = [ex.column(c.name, c.type) for c in ranking]
    order += [ex.sort_key(ex.column(c.name, c.type)) for c in stage.output[: len(keys)]]
    sorting = sorting_columns(order)
    result = exploded(Compute(stage, hidden=sorting) if sorting else stage, listed)
    columns = [(ref, f"g{i}") for i, ref in enumerate(keys)]
    columns += [(bound, bound.name) for bound in shown]
    columns += [(call.result, f"r{i}") for i, call in enumerate(node.aggregates)]
    return Flow((FlowInput(named(result, columns), marked=marked, staged=True),))


def plan_window_rows(
    stages: StageBuilder,
    flow: Flow,
    node: nodes.WindowRows,
    wanted: Callable[[ColumnRef], bool],
    *,
    marked: bool,
) -> Flow:
    """Plan the content of each window as a list, of which every element becomes a row."""
    bounds = node.windowed.bounds
    refs = [ref for ref in node.schema if ref not in bounds and wanted(ref)]
    values = [stages.typed(flow, of_column(ref)) for ref in refs] or [ex.TRUE]
    row = struct(*(Field(f"r{i}", value.type) for i, value in enumerate(values)))
    listed = AggregateCall(ROWS, tuple(values), row, ColumnRef("", LISTED, row), text="rows")
    aggregate = nodes.WindowAggregate(node.input, (), (listed,))
    flow = plan_window(stages, flow, aggregate, wanted, marked=marked)
    parts = [part_of(of_column(listed.result), field) for field in row.fields]
    columns = [
        Column(ref.name, part.type, part, Role.DATA, ref.relation)
        for ref, part in zip(refs, parts, strict=False)
    ]
    shown = (bound for bound in bounds if wanted(bound))
    columns += [Column(b.name, b.type, of_column(b), Role.DATA, b.relation) for b in shown]
    return flow.map(lambda one: one.compute(tuple(columns)))


def _keys(node: nodes.WindowAggregate, windowed: nodes.Windowed) -> tuple[Keys, list[Expr]]:
    """Return what results are grouped by, and the columns of PATTR."""
    keys: Keys = {}
    for key in node.group_by:
        keys[key.expr.column or ColumnRef("", key.name, key.expr.type)] = key.expr
    parts = []
    for name in windowed.window.partition_by:
        ref = next(c for c in windowed.input.schema if c.name.lower() == name.lower())
        ref = ColumnRef(windowed.alias, ref.name, ref.type)
        keys.setdefault(ref, of_column(ref))
        parts.append(of_column(ref))
    return keys, parts


def plan_calls(
    stages: StageBuilder,
    flow: Flow,
    calls: Iterable[AggregateCall],
    draft: StageDraft,
    mode: str,
    panes: PanePlanner | None = None,
) -> tuple[list[AggregateSpec], list[Column], list[tuple[AggregateCall, str]]]:
    """Plan aggregates of groups: specifications, columns of results, and calls that return rows."""
    specs, results = [], []
    listed: list[tuple[AggregateCall, str]] = []
    for i, call in enumerate(calls):
        name, result = f"a{i}", f"r{i}"
        if call.name == ROWS:
            argument = {f"{name}_{i}": value for i, value in enumerate(call.arguments)}
            first, *others = argument
            type_ = array(call.type)
            spec = AggregateSpec(ROWS, first, result, arrow_of(type_), others=tuple(others))
            listed.append((call, result))
            results.append(Column(result, type_, role=Role.RESULT))
        elif call.user is not None:
            paned = None if panes is None else panes.plan(call, name, result)
            argument, spec = paned or bracket_spec(call, stages.programs, name, result, mode)
            listed.append((call, result))
            results.append(rows_column(spec.parameters[0], result))
        else:
            argument, spec, type_ = stages.aggregates.plan(flow, call, name, result)
            results.append(Column(result, type_, role=Role.RESULT))
        draft.arguments |= argument
        specs.append(spec)
    return specs, results, listed


def _spec(
    window: Window, placement: WindowPlacement, keys: int, specs: Sequence[AggregateSpec]
) -> WindowSpec:
    return WindowSpec(
        placement.assigner,
        arrow_of(placement.edge),
        tuple(f"g{i}" for i in range(keys)),
        tuple(specs),
        arrow_of(placement.wid),
        placement.stamp,
        window.emit_empty if isinstance(window, RangeWindow) else False,
    )


def _ranking(window: Window, placement: WindowPlacement) -> list[Column]:
    """Return the order of results with the same time: that of their windows, whole ones last."""
    ranking = [] if isinstance(window, RangeWindow) else [_result("wid", placement.wid)]
    return ranking + ([_result("complete", BOOLEAN)] if window.emit_every else [])


def _added(
    shown: Iterable[ColumnRef],
    ranking: Iterable[Column],
    placement: WindowPlacement,
    results: Iterable[Column],
) -> tuple[Column, ...]:
    kinds = {"wid": placement.wid, "complete": BOOLEAN}
    bounds = [_result(bound.name, kinds.get(bound.name, placement.edge)) for bound in shown]
    unseen = [one for one in ranking if one not in bounds]
    return (*bounds, *unseen, *results)


def _result(name: str, type_: Type) -> Column:
    return Column(name, type_, role=Role.RESULT)


def _notes(node: nodes.WindowAggregate, placement: WindowPlacement, flow: Flow) -> tuple[Choice, ...]:
    ordered = ReorderSpec() in placement.before
    order = (
        Choice("input", "put in order") if ordered else Choice("input", "as it comes", "panes take any order")
    )
    promises = [one for source in flow.inputs if source.stream for one in source.stream.promises]
    counted = placement.generous and any(isinstance(p, SlackPromise) and p.generous for p in promises)
    late = "in the windows that are not complete" if counted else "dropped and counted"
    chosen = [
        aggregate_choice(call) if call.user is None else _user_choice(node, call)
        for call in node.aggregates
        if call.name != ROWS
    ]
    return (*chosen, order, Choice("late tuples", late))


def _user_choice(node: nodes.WindowAggregate, call: AggregateCall) -> Choice:
    strategy = time_panes.strategy(node, call)
    return Choice(call.text, strategy.way, cost=strategy.cost)


def plan_stream_udas(
    stages: StageBuilder,
    flow: Flow,
    node: nodes.BaseAggregate,
    needed: Sequence[ColumnRef],
    *,
    marked: bool,
) -> Flow:
    """Plan base aggregates of the user's: a row for each that they return."""
    refs = [ref for ref in node.input.schema if ref in needed]
    computed = [key for key in node.group_by if key.expr.column is None]
    draft = StageDraft(stages.shipped(flow, refs), marked=marked)
    draft.columns |= {f"g{i}": stages.typed(flow, key.expr) for i, key in enumerate(computed)}
    users: list[tuple[AggregateCall, UdaSpec, str]] = []
    for i, call in enumerate(node.aggregates):
        arguments, spec = base_spec(call, stages.programs, f"a{i}", f"r{i}")
        draft.arguments |= arguments
        users.append((call, spec, f"r{i}"))
    draft.keys = tuple(key.expr for key in node.group_by)
    texts = [key.sql for key in draft.keys]
    draft.key = next((f"c{i}" for i, ref in enumerate(refs) if texts == [ref.sql]), None)
    draft.kernels = (ReorderSpec(), StreamUdasSpec(tuple(spec for _, spec, _ in users)))
    draft.added = tuple(c for _, spec, _ in users for c in returned_columns(spec.program, spec.results))
    draft.notes = tuple(
        Choice(call.text, "base version, a row for each that it returns") for call, _, _ in users
    )
    result = put_together(stages.build(flow, draft), users)
    columns = [(ref, f"c{i}") for i, ref in enumerate(refs)]
    columns += [(ColumnRef("", k.name, k.expr.type), f"g{i}") for i, k in enumerate(computed)]
    columns += [(call.result, name) for call, _, name in users]
    return Flow((passed(flow, named(result, columns), marked=marked),))
