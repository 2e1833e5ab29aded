"""Aggregates over windows of their own: the version of each call, and the kernels that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from millstream.analysis.queries.call_nodes import COMPLETE, AggregateCall, OverCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.codegen.udas import uda_compiler
from millstream.ir.typed_nodes import Body
from millstream.kernels.kernel_specs import (
    ActiveAggregateSpec,
    ActiveUdaSpec,
    KernelSpec,
    OverAggregatesSpec,
    OverUdasSpec,
    ReorderSpec,
)
from millstream.kernels.specs import AggregateSpec, OverSpec, OverUdaSpec, PaneSpec, SlideSpec, UdaSpec
from millstream.physical.flow import Flow, named, passed
from millstream.physical.node import Choice, Column, Role
from millstream.physical.operators.over_lowering import LoweredCalls
from millstream.physical.operators.udas import (
    content_spec,
    exploded,
    names_of,
    put_together,
    returned_columns,
    rows_column,
    shipped_arguments,
)
from millstream.physical.programs import AnyBody, Programs, over_mode
from millstream.physical.promise_units import units
from millstream.physical.stage_builder import StageBuilder, StageDraft
from millstream.plan import aggregate_strategies, nodes, uda_versions
from millstream.plan.uda_versions import UdaStrategy, UdaVersion
from millstream.quantity import Quantity, Rows
from millstream.stage.pipeline import ORIGINS_PER_INPUT
from millstream.types import BOOLEAN, Type, bound_type

Units = Callable[[Quantity], int | float]
"""An amount as a number on the timestamp."""

_FOR_EVER = 2**62


@dataclass(frozen=True)
class OverKernels:
    """Kernels for all calls of a stage, and the columns that they add to tuples.

    Of ``apart`` calls the columns of a result stand side by side; ``listed`` ones have a list of rows.
    """

    kernels: tuple[KernelSpec, ...]
    added: tuple[Column, ...]
    apart: tuple[tuple[AggregateCall, UdaSpec, str], ...]
    listed: tuple[tuple[AggregateCall, str], ...]
    origins: int
    """The number of origins of results."""


def plan_over(
    stages: StageBuilder,
    flow: Flow,
    node: nodes.OverAggregate,
    needed: Iterable[ColumnRef],
    *,
    marked: bool,
    complete: bool = False,
) -> Flow:
    """Plan aggregates over windows of their own; calls with the same partitions share a stage.

    ``complete`` says whether it is wanted to know which results are partial ones.
    """
    lowered = LoweredCalls.of(node.calls)
    computed = [column for value in lowered.values.values() for column in value.columns()]
    passed = list(needed)
    remaining = _stages(lowered)
    first = _first(node, lowered) if len(remaining) == 1 else None
    while remaining:
        calls = remaining.pop(0)
        later = [c for group in remaining for c in group]
        made = {c.call.result for c in (*calls, *later)}
        refs = dict.fromkeys([*passed, *_columns(later), *computed])
        own = [ref for ref in refs if ref not in made]
        marks = marked or bool(remaining)
        flow = _stage(stages, flow, calls, own, marked=marks, complete=complete, first=first)
        passed += [call.call.result for call in calls]
    if not lowered.values:
        return flow
    columns = [Column(ref.name, ref.type, of_column(ref), relation=ref.relation) for ref in needed]
    for call in node.calls:
        result = call.call.result
        value = lowered.values.get(result) or of_column(result)
        columns.append(Column(result.name, result.type, value))
    columns += [Column(COMPLETE.name, BOOLEAN, of_column(COMPLETE))] if complete else []
    return flow.map(lambda one: one.compute(tuple(columns)))


def _first(node: nodes.OverAggregate, lowered: LoweredCalls) -> tuple[ColumnRef, int] | None:
    """Return the column of row numbers whose larger ones are not needed, if kernels know it."""
    ranks = {call.call.result for call in node.calls if call.call.name == "row_number"}
    if node.first is None or node.first[0] not in ranks or any(c.call.user is not None for c in node.calls):
        return None
    (counted,) = lowered.values[node.first[0]].columns()
    return counted, node.first[1]


def _stages(lowered: LoweredCalls) -> list[list[OverCall]]:
    """Return the calls of each stage, which have the same partitions.

    Nothing is computed from the results of those that wait for following tuples, so that they come late. If
    there are several stages, those of user-defined aggregates are the last: they may return no row for a
    tuple, or several, but all other calls see it once.
    """
    groups: dict[tuple[bool, int, tuple[str, ...]], list[OverCall]] = {}
    several = len(lowered.levels) > 1 or len({_place(call) for call in lowered.levels[0]}) > 1
    for number, level in enumerate(lowered.levels):
        for call in level:
            last, partition = _place(call)
            user = several and call.call.user is not None
            groups.setdefault((user, len(lowered.levels) if last else number, partition), []).append(call)
    return [calls for _, calls in sorted(groups.items(), key=lambda group: group[0][:2])]


def _place(call: OverCall) -> tuple[bool, tuple[str, ...]]:
    """Tell whether a call waits for following tuples, and return its partitions."""
    return call.frame.follows, tuple(expr.sql for expr in call.partition_by)


def _stage(
    stages: StageBuilder,
    flow: Flow,
    calls: Sequence[OverCall],
    refs: Sequence[ColumnRef],
    *,
    marked: bool,
    complete: bool,
    first: tuple[ColumnRef, int] | None = None,
) -> Flow:
    time_type = flow.first.time_type
    planner = OverPlanner(stages.programs, time_type)
    draft = StageDraft({f"c{i}": stages.typed(flow, of_column(ref)) for i, ref in enumerate(refs)})
    specs: list[OverSpec | OverUdaSpec] = []
    types: dict[str, Type] = {}
    for i, call in enumerate(calls):
        if call.call.user is not None:
            body, spec = planner.uda(call, f"a{i}", f"r{i}")
            draft.arguments |= shipped_arguments(call.call, body, f"a{i}")
        else:
            argument, own, types[f"r{i}"] = stages.aggregates.plan(flow, call.call, f"a{i}", f"r{i}")
            spec = planner.builtin(call, own)
            draft.arguments |= argument
        specs.append(spec)
    slide = planner.slide(calls[0], "complete" if complete else None)
    made = planner.kernels(calls, specs, slide, types, flow.origins)
    texts = [expr.sql for expr in calls[0].partition_by]
    draft.keys = calls[0].partition_by
    draft.key = next((f"c{i}" for i, ref in enumerate(refs) if texts == [ref.sql]), None)
    draft.kernels = made.kernels
    if first is not None:
        number = next(i for i, call in enumerate(calls) if call.call.result == first[0])
        only = (f"r{number}", first[1])
        draft.kernels = tuple(
            replace(spec, first=only) if isinstance(spec, OverAggregatesSpec) else spec
            for spec in made.kernels
        )
    draft.added = (*made.added, *((Column("complete", BOOLEAN, role=Role.RESULT),) if complete else ()))
    draft.marked = marked
    if any(c.active_expiration for c in calls):
        draft.time = bound_type(time_type)  # what leaves is stamped with the instant at which it does
    draft.notes = tuple(_note(call, planner.programs) for call in calls)
    result = exploded(put_together(stages.build(flow, draft), made.apart), made.listed)
    columns = [(ref, f"c{i}") for i, ref in enumerate(refs)]
    columns += [(call.call.result, f"r{i}") for i, call in enumerate(calls)]
    columns += [(COMPLETE, "complete")] if complete else []
    return Flow((replace(passed(flow, named(result, columns), marked=marked), origins=made.origins),))


@dataclass(frozen=True)
class OverPlanner:
    """Plans calls over windows on a timestamp of a type."""

    programs: Programs
    time_type: Type

    def units(self, amount: Quantity) -> int | float:
        return units(amount, self.time_type)

    def slide(self, call: OverCall, complete: str | None) -> SlideSpec | None:
        """Return which tuples give results."""
        emit = None if call.emit_every is None else int(self.units(call.emit_every))
        match call.slide:
            case None:
                return None
            case Rows(count):
                return SlideSpec(rows=count, emit=emit, complete=complete)
            case amount:
                return SlideSpec(time=int(self.units(amount)), emit=emit, complete=complete)

    def builtin(self, over: OverCall, aggregate: AggregateSpec) -> OverSpec:
        """Return an aggregate that kernels compute themselves."""
        frame = over.frame
        until = 0 if frame.until is None else self.units(frame.until)
        reach = None if frame.preceding is None else self.units(frame.preceding)
        if frame.rows:
            rows = None if reach is None else _rows(reach)
            return OverSpec(aggregate, rows=rows, rows_until=_rows(until))
        return OverSpec(aggregate, range=reach, range_until=until)

    def uda(self, over: OverCall, name: str, result: str) -> tuple[AnyBody, OverSpec | OverUdaSpec]:
        """Return a user's aggregate in the version that the semantics choose, and the body that is called."""
        version, call = self.programs.version(over), over.call
        if version.way is UdaStrategy.CONTENT:
            program = self.programs.program(version.body, uda_compiler.CONTENT)
            return version.body, self.builtin(over, content_spec(call, version.body, program, name, result))
        if version.way is UdaStrategy.TIME_PANES:
            return self._in_panes_of_time(over, version, name, result)
        taking = version.body
        if version.way is UdaStrategy.PANES:
            assert call.bodies is not None
            assert call.bodies.panes is not None
            taking = call.bodies.panes.pane
        program = self.programs.program(version.body, *over_mode(over, version))
        results = tuple(f"{result}_{i}" for i in range(len(version.body.returns)))
        user = UdaSpec(program, names_of(taking, name), results, result)
        return taking, self._uda_spec(over, version, user, taking)

    def _in_panes_of_time(
        self, over: OverCall, version: UdaVersion, name: str, result: str
    ) -> tuple[AnyBody, OverSpec]:
        assert over.call.bodies is not None
        assert over.call.bodies.panes is not None
        assert version.slide is not None
        pane = over.call.bodies.panes.pane
        programs = [self.programs.program(body, uda_compiler.CONTENT) for body in (version.body, pane)]
        spec = content_spec(over.call, pane, programs[0], name, result)
        return pane, self.builtin(over, replace(spec, parameters=(*programs, int(self.units(version.slide)))))

    def _uda_spec(self, over: OverCall, version: UdaVersion, user: UdaSpec, taking: AnyBody) -> OverUdaSpec:
        reach = over.frame.preceding
        slide = over.slide.count if isinstance(over.slide, Rows) and over.emit_every is None else 1
        if version.way is UdaStrategy.PANES:
            assert isinstance(taking, Body)
            every = slide // version.pane if over.emit_every is None else 1
            program = self.programs.compiled(taking, uda_compiler.TUMBLE)
            return OverUdaSpec(user, panes=PaneSpec(program, version.pane, version.over, every))
        if reach is None:
            return OverUdaSpec(user, rows=_FOR_EVER if version.way is UdaStrategy.WINDOW else None)
        if isinstance(reach, Rows):
            return OverUdaSpec(user, rows=reach.count, slide=slide)
        return OverUdaSpec(user, range=self.units(reach))

    def kernels(
        self,
        calls: Sequence[OverCall],
        specs: Sequence[OverSpec | OverUdaSpec],
        slide: SlideSpec | None,
        types: dict[str, Type],
        origins: int = ORIGINS_PER_INPUT,
    ) -> OverKernels:
        """Return the kernels for calls with the same partitions and the same slide.

        ``types`` are those of the results of built-in aggregates.
        """
        own = self._shared(
            [(c, spec) for c, spec in zip(calls, specs, strict=True) if isinstance(spec, OverUdaSpec)]
        )
        others = tuple(spec for spec in specs if isinstance(spec, OverSpec))
        kernels: list[KernelSpec] = [ReorderSpec()]
        lists = slide is not None and (bool(others) or not all(map(self._chooses_results, calls)))
        if calls[0].active_expiration:
            active = ActiveUdaSpec(own[0], origins) if own else ActiveAggregateSpec(others[0], origins)
            kernels.append(active)
            origins *= 2  # those of what leaves come after those of tuples
        elif lists:
            # What tuples give is known before it is known which of them give something.
            kernels += [OverUdasSpec(own, together=True)] if own else []
            kernels.append(OverAggregatesSpec(others, slide))
        else:
            kernels += [OverAggregatesSpec(others, slide)] if others else []
            kernels += [OverUdasSpec(own)] if own else []
        added: list[Column] = []
        apart: list[tuple[AggregateCall, UdaSpec, str]] = []
        listed: list[tuple[AggregateCall, str]] = []
        for call, spec in zip(calls, specs, strict=True):
            if isinstance(spec, OverSpec):
                name = spec.aggregate.result
                if call.call.user is None:
                    added.append(Column(name, types[name], role=Role.RESULT))
                else:
                    added.append(rows_column(spec.aggregate.parameters[0], name))
                    listed.append((call.call, name))
            elif lists:
                added.append(rows_column(spec.user.program, spec.user.whole))
                listed.append((call.call, spec.user.whole))
            else:
                added += returned_columns(spec.user.program, spec.user.results)
                apart.append((call.call, spec.user, spec.user.whole))
        return OverKernels(tuple(kernels), tuple(added), tuple(apart), tuple(listed), origins)

    def _shared(self, given: Sequence[tuple[OverCall, OverUdaSpec]]) -> tuple[OverUdaSpec, ...]:
        """Make one of aggregates that follow the same window, if they leave its tuples alone."""
        groups = self.programs.sharing([over for over, _ in given])
        return tuple(
            self._one([given[i] for i in group]) if len(group) > 1 else given[group[0]][1] for group in groups
        )

    def _one(self, group: Sequence[tuple[OverCall, OverUdaSpec]]) -> OverUdaSpec:
        body, arguments = self.programs.shared_body([over for over, _ in group])
        first = group[0][1]
        program = self.programs.program(body, first.user.program.mode)
        user = UdaSpec(program, tuple(group[number][1].user.arguments[i] for number, i in arguments), ())
        return replace(first, user=user, members=tuple(spec.user for _, spec in group))

    def _chooses_results(self, over: OverCall) -> bool:
        """Tell whether the program itself says which tuples give results."""
        if over.call.user is None or not isinstance(over.slide, Rows) or over.emit_every is not None:
            return False
        version = self.programs.version(over)
        by_rows = version.way is UdaStrategy.WINDOW and isinstance(over.frame.preceding, Rows)
        return by_rows or version.way in (UdaStrategy.TUMBLE, UdaStrategy.PANES)


def _rows(count: float) -> int:
    """Return a number of rows that kernels can add to others."""
    return max(-_FOR_EVER, min(int(count), _FOR_EVER))


def _note(over: OverCall, programs: Programs) -> Choice:
    if over.call.user is not None:
        return Choice(over.call.text, uda_versions.described_version(programs.version(over)))
    return aggregate_choice(over.call, unbounded=over.frame.preceding is None)


def aggregate_choice(call: AggregateCall, *, unbounded: bool = False) -> Choice:
    """Return how a call of a built-in aggregate is computed."""
    chosen = aggregate_strategies.strategy(call, unbounded=unbounded)
    return Choice(call.text, chosen.way if chosen else "", cost=chosen.cost if chosen else "")


def expressions_of(call: OverCall) -> Iterable[Expr]:
    """Yield the expressions that a call evaluates on tuples."""
    yield from call.partition_by
    yield from call.call.arguments
    if call.call.filter is not None:
        yield call.call.filter


def _columns(calls: Iterable[OverCall]) -> Iterable[ColumnRef]:
    for call in calls:
        for expr in expressions_of(call):
            yield from expr.columns()
