"""Results that are maintained at every instant: the stages that keep them, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.codegen.udas.uda_compiler import CONTENT
from millstream.kernels.column_names import ID, ID2, JOIN_KEY, JOIN_KEY2, JOIN_PARTS, JOINED, OP
from millstream.kernels.kernel_specs import (
    AppendOnlyGroupsSpec,
    BegunChangelogSpec,
    ChangelogSpec,
    GroupsSpec,
    KernelSpec,
    ReorderSpec,
    RStreamSpec,
    ScalarRowSpec,
    SetOperationsSpec,
)
from millstream.kernels.relational.lifetimes import TICK, SlideInstants
from millstream.kernels.specs import (
    AggregateSpec,
    GroupSpec,
    InnerJoinSpec,
    OuterJoinSpec,
    SemiAntiJoinSpec,
    SetOperationSpec,
    depends_on_order,
)
from millstream.physical import expressions as ex
from millstream.physical.flow import Flow, FlowInput, named
from millstream.physical.flow import merged as merged_inputs
from millstream.physical.node import Column, Role
from millstream.physical.nodes import Lookup
from millstream.physical.operators.change_columns import (
    CHANGE,
    MARKS,
    SIGNED,
    VaryingRelation,
    beside_ticks,
    in_order,
    marks_of,
    slotted,
    together,
    told_changes,
)
from millstream.physical.operators.join_slots import JoinSlots, joined_columns
from millstream.physical.operators.lifetimes import (
    first_instant,
)
from millstream.physical.operators.udas import collected, returned_columns
from millstream.physical.operators.window import plan_calls
from millstream.physical.operators.window_contents import WindowContents, stamp_type
from millstream.physical.stage_builder import StageBuilder, StageDraft
from millstream.plan import nodes
from millstream.plan.join_conditions import equal_columns, join_conditions
from millstream.plan.maintained_relations import (
    bounded,
    is_in_order,
    merged,
    of_tuples,
    takes_tuples_as_they_come,
)
from millstream.plan.relation_variance import (
    CHANGES,
    DSTREAM,
    ISTREAM,
    RSTREAM,
    VIEW,
    WITH_ENDS,
    is_scalar,
    maintained,
    runs_dry,
)
from millstream.plan.update_patterns import grows
from millstream.types import BIGINT, BOOLEAN, TINYINT, Field


@dataclass
class RelationStages:
    """Plans one result that is maintained; ``lower`` plans everything else."""

    stages: StageBuilder
    lower: Callable[[nodes.Node], Flow]
    root: nodes.RelationToStream
    marked: bool
    """Whether another stage takes the result."""

    contents: WindowContents = field(init=False)
    _result: nodes.Node = field(init=False)
    _alone: nodes.Node | None = field(init=False)
    """Aggregates without GROUP BY of which the result is the row: it comes with its first change."""

    def __post_init__(self) -> None:
        self.contents = WindowContents.of(self.stages, self.lower, self.root.input)
        self._result = bounded(self.root.input)
        self._alone = None if self.root.kind == VIEW else _scalar_above_all(self._result)

    @property
    def slides(self) -> tuple[SlideInstants, ...]:
        return self.contents.slides

    def stream(self) -> Flow:
        """The result as a stream."""
        kind = self.root.kind
        begins = kind != VIEW and any(map(is_scalar, maintained(self.root.input))) and self._alone is None
        apart = kind == RSTREAM and not self._restates
        relation = self._relation(self._result, last=not apart and not begins)
        if begins:
            relation = self._begun(relation)
        if apart:
            relation = self._restated(relation)
        flow = relation.flow
        if relation.signed and kind in (ISTREAM, DSTREAM):
            sign = Expr((f"`{OP}` {'>' if kind == ISTREAM else '<'} 0",), BOOLEAN)
            flow = flow.map(lambda one: one.where([sign]))
        if kind == CHANGES or self.root.instant is not None:
            flow = flow.map(partial(told_changes, root=self.root))
        if kind == VIEW:
            return self._kept(flow)
        flow = flow.map(lambda one: replace(one, changes=False))
        return flow if relation.stay is not None else flow.map(in_order)

    def _kept(self, flow: Flow) -> Flow:
        """Return changes with their marks, for a result that is kept."""
        if not any(one.marked for one in flow.inputs):
            return flow
        marks = [ColumnRef("", name, type_) for name, type_ in MARKS.items()]
        return self.stages.settled(flow, [*self.root.input.schema, *marks], marked=False)

    # ------------------------------------------------------------ relations

    def _relation(self, node: nodes.Node, *, last: bool = False) -> VaryingRelation:
        """A node's rows as they vary. The ``last`` stage gives what the result is asked for."""
        windowed = of_tuples(node)
        if windowed is not None and (node is windowed or takes_tuples_as_they_come(windowed)):
            relation = self.contents.of_time(node, windowed)
            as_it_is = not last or (self.root.kind == ISTREAM and not self.slides)
            return relation if as_it_is else self._changes([relation], relation.schema, last=last)
        node = merged(node)
        match node:
            case nodes.Windowed():
                return self.contents.of_rows(node)
            case nodes.Rename():
                below = self._relation(node.input, last=last)
                return replace(below, flow=below.flow.alias(node.alias), schema=node.schema)
            case nodes.Filter():
                below = self._relation(node.input, last=last)
                return below.map(lambda one: one.where(node.conditions))
            case nodes.Project():
                below = self._relation(node.input, last=last)
                return replace(below.map(lambda one: one.project(node.outputs)), schema=node.schema)
            case nodes.TableJoin():
                return self._looked_up(node, last=last)
            case nodes.WindowJoin(kind="inner" | "cross"):
                return self._join(node, last=last)
            case nodes.WindowJoin(kind="semi" | "anti") if not _asked_of_pairs(node):
                return self._matched(node, last=last)
            case nodes.WindowJoin():
                return self._outer(node, last=last)
            case nodes.Distinct():
                return self._copies(node, [self._relation(node.input)], "UNION", all_=False, last=last)
            case nodes.WindowSetOperation():
                sides = [self._relation(side) for side in node.inputs]
                if node.kind == "UNION" and node.all:
                    return self._changes(sides, node.schema, last=last)
                return self._copies(node, sides, node.kind, all_=node.all, last=last)
            case nodes.WindowAggregate():
                return self._groups(node, last=last)
        raise AssertionError(f"{type(node).__name__} has passed the list of what can be maintained")

    def _looked_up(self, node: nodes.TableJoin, *, last: bool) -> VaryingRelation:
        """Rows beside those of a table that they met when they entered: retractions meet nothing again."""
        stream, table = (node.left, node.right) if node.left.streaming else (node.right, node.left)
        below = self._relation(stream)
        rows = merged_inputs(self.lower(table))

        def met(one: FlowInput) -> FlowInput:
            sides = (one.node, rows) if stream is node.left else (rows, one.node)
            return replace(
                one,
                node=Lookup(
                    *sides,
                    node.kind,
                    node.condition,
                    stream_is_left=stream is node.left,
                    marked=one.marked,
                    signed=below.signed,
                ),
            )

        schema = tuple(ref for ref in node.schema if ref in {*below.schema, *table.schema})
        relation = replace(below.map(met), schema=schema)
        if not last and not below.signed:
            return relation
        keys = [ex.column(name, BIGINT) for name in (ID, ID2)] if below.signed else ()
        return self._changes([relation], schema, last=last, keys=keys)

    def _changes(
        self,
        sides: Sequence[VaryingRelation],
        schema: nodes.Schema,
        *,
        last: bool,
        keys: Sequence[Expr] = (),
    ) -> VaryingRelation:
        """The rows of one relation or of several, as they enter and leave; those with one key together."""
        fields = tuple(Field(f"c{i}", ref.type) for i, ref in enumerate(schema))
        names = tuple(one.name for one in fields)
        flow, shipped = together(sides, fields)
        stays = tuple(side.stay for side in sides)
        every = last and self.root.kind in WITH_ENDS
        kernels: list[KernelSpec] = [ChangelogSpec(stays, names, self.slides, every)]
        if last and self._restates:
            kernels.append(RStreamSpec((None,), names, self.slides))
        columns = list(zip(schema, names, strict=True))
        return self._staged(flow, _draft(shipped, len(columns), kernels, keys), columns, last=last)

    def _copies(
        self, node: nodes.Node, sides: Sequence[VaryingRelation], kind: str, *, all_: bool, last: bool
    ) -> VaryingRelation:
        """DISTINCT, and set operations that count."""
        fields = tuple(Field(f"c{i}", ref.type) for i, ref in enumerate(node.schema))
        names = tuple(one.name for one in fields)
        flow, shipped = together(sides, fields)
        lasting = tuple(map(grows, node.inputs))
        spec = SetOperationSpec(kind, all_, names, lasting)  # type: ignore[arg-type]
        kernels: list[KernelSpec] = [SetOperationsSpec(spec, tuple(s.stay for s in sides), self.slides)]
        kernels += self._ending(names, last=last)
        keys = [ex.column(one.name, one.type) for one in fields]
        columns = list(zip(node.schema, names, strict=True))
        return self._staged(flow, _draft(shipped, len(columns), kernels, keys), columns, last=last)

    def _groups(self, node: nodes.WindowAggregate, *, last: bool) -> VaryingRelation:
        """Aggregates over what is maintained."""
        below = self._relation(node.input)
        keys = {k.expr.column or ColumnRef("", k.name, k.expr.type): k.expr for k in node.group_by}
        draft = StageDraft({f"g{i}": expr for i, expr in enumerate(keys.values())}, keys=list(keys.values()))
        specs, results, listed = plan_calls(self.stages, below.flow, node.aggregates, draft, CONTENT)
        returned = {name: call for call, name in listed}
        draft.added = [
            one for result, spec in zip(results, specs, strict=True) for one in _result(result, spec)
        ]
        groups = tuple(draft.columns)
        names = (*groups, *(one.name for one in draft.added))
        arranged = not is_in_order(node.input) and any(map(depends_on_order, specs))
        spec_ = GroupSpec(groups, tuple(specs), arranged)
        kind = AppendOnlyGroupsSpec if grows(node.input) and not arranged else GroupsSpec
        kernels: list[KernelSpec] = [kind(spec_, below.stay, self.slides)]
        if is_scalar(node):
            kernels.append(
                ScalarRowSpec(spec_, None if node is self._alone else first_instant(stamp_type(below.flow)))
            )
        draft.kernels = [*kernels, *self._ending(names, last=last)]
        draft.arguments |= marks_of(below)
        columns = [*zip(keys, groups, strict=True)]
        columns += [(call.result, f"r{i}") for i, call in enumerate(node.aggregates)]
        return self._staged(below.flow, draft, columns, returned=returned, last=last)

    # ------------------------------------------------------------ joins

    def _join(self, node: nodes.WindowJoin, *, last: bool) -> VaryingRelation:

        conditions = join_conditions(node.conditions, node.left, node.right)
        sides = [
            self._relation(nodes.filtered(side, asked))
            for side, asked in zip(node.inputs, conditions.with_keys, strict=True)
        ]
        slots = JoinSlots.of(self._wanted(node.left.schema), self._wanted(node.right.schema))
        flow, shipped, keys = slotted(sides, slots, conditions.equal)
        ends = last and self.root.kind in WITH_ENDS
        signed = ends or any(side.signed for side in sides)
        stays = sides[0].stay, sides[1].stay
        spec = InnerJoinSpec(stays, slots.results(), self.slides, signed, ends=ends)
        names = tuple(name for _, name in slots.columns())
        kernels: list[KernelSpec] = [spec]
        kernels += self._ending(names, last=last)
        columns = slots.columns()
        draft = _draft(shipped, 0, kernels, keys, joined_columns(columns))
        pairs = self._staged(flow, draft, columns, signed=signed, last=last)
        return pairs.map(lambda one: one.where(conditions.rest)) if conditions.rest else pairs

    def _outer(self, node: nodes.WindowJoin, *, last: bool) -> VaryingRelation:
        """Pairs first, and then the rows that are in none of them."""
        equal, rest = equal_columns(node.conditions, node.left, node.right)
        sides = [self._relation(node.left), self._relation(node.right)]
        slots = JoinSlots.of(self._wanted(node.left.schema), self._wanted(node.right.schema))
        flow, shipped, keys = slotted(sides, slots, equal, apart=True)
        spec = InnerJoinSpec(
            (sides[0].stay, sides[1].stay), slots.results(), self.slides, signed=True, parts=True
        )
        columns = slots.columns()
        keyed = [_mark(name) for name in (JOIN_KEY, JOIN_KEY2)] if keys else []
        parts = [_mark(name) for name in JOIN_PARTS]
        added = [*joined_columns(columns), *keyed, *parts]
        made = self._staged(flow, _draft(shipped, 0, [spec], keys, added), columns, last=False)
        if rest:
            # Rows pass, whatever is asked of pairs.
            asked = [Expr((f"(`{JOINED}` <> 0 OR (", *c.parts, "))"), BOOLEAN) for c in rest]
            made = made.map(lambda one: one.where(asked))
        wanted = columns if node.kind not in ("semi", "anti") else columns[: len(slots.left)]
        names = tuple(name for _, name in wanted)
        unmatched = OuterJoinSpec(
            names,
            node.kind in ("left", "right", "full"),
            {"left": -1, "full": -1, "anti": -1, "semi": 1}.get(node.kind, 0),
            {"right": -1, "full": -1}.get(node.kind, 0),
            lasting=all(map(grows, node.inputs)),
            ends=last and self.root.kind in WITH_ENDS,
        )
        kernels: list[KernelSpec] = [unmatched]
        kernels += self._ending(names, last=last)
        passed = {name: of_column(ref) for ref, name in wanted}
        marks = {one.name: ex.column(one.name, one.type) for one in parts}
        met = [ex.column(one.name, one.type) for one in keyed]
        draft = _draft({**passed, **marks, **marks_of(made)}, len(names), kernels, met)
        return self._staged(made.flow, draft, wanted, last=last)

    def _matched(self, node: nodes.WindowJoin, *, last: bool) -> VaryingRelation:
        """A semi or anti join that asks nothing of pairs makes none."""
        conditions = join_conditions(node.conditions, node.left, node.right)
        # An anti join keeps the rows for which a condition on them does not hold.
        before, asked = ((), conditions.left) if node.kind == "anti" else (conditions.left, ())
        left = nodes.filtered(node.left, before)
        sides = [self._relation(left), self._relation(nodes.filtered(node.right, conditions.with_keys[1]))]
        slots = JoinSlots.of(self._wanted(node.left.schema), [])
        flow, shipped, keys = slotted(sides, slots, conditions.equal, apart=True, asked=asked)
        names = tuple(slots.left.values())
        lasting = grows(node.left), grows(node.right)
        spec = SemiAntiJoinSpec(
            (sides[0].stay, sides[1].stay), names, node.kind == "anti", self.slides, lasting
        )
        kernels: list[KernelSpec] = [spec]
        kernels += self._ending(names, last=last)
        draft = _draft(shipped, len(names), kernels, keys)
        return self._staged(flow, draft, [*slots.left.items()], last=last)

    # ------------------------------------------------------------ stages

    def _wanted(self, schema: Iterable[ColumnRef]) -> list[ColumnRef]:
        return [ref for ref in schema if ref in self.contents.mentioned]

    def _ending(self, names: Sequence[str], *, last: bool) -> list[KernelSpec]:
        """A kernel that restates the result at every slide, where RSTREAM asks for that."""
        return [RStreamSpec((None,), tuple(names), self.slides)] if last and self._restates else []

    @property
    def _restates(self) -> bool:
        """Whether each shard restates its own rows at every slide.

        Without slides, or where rows never leave, one shard must know the changes of all.
        """
        return self.root.kind == RSTREAM and bool(self.slides) and runs_dry(self.root.input)

    def _staged(
        self,
        flow: Flow,
        draft: StageDraft,
        columns: Sequence[tuple[ColumnRef, str]],
        *,
        last: bool,
        returned: Mapping[str, AggregateCall] = MappingProxyType({}),
        signed: bool = True,
    ) -> VaryingRelation:
        """Return the changes that a stage makes, with ``columns`` of its results."""
        marked = self.marked or not last
        marks = () if last and self._restates else SIGNED if signed else CHANGE
        draft.kernels = [ReorderSpec(), *draft.kernels]
        draft.added = [*draft.added, *marks]
        draft.marked, draft.anew, draft.time = marked, True, stamp_type(flow)
        made = named(collected(self.stages.build(flow, draft), returned), columns)
        one = FlowInput(made, marked=marked, staged=True, changes=True)
        schema = tuple(ref for ref, _ in columns)
        return VaryingRelation(Flow((one,)), schema, None, signed and bool(marks))

    def _begun(self, relation: VaryingRelation) -> VaryingRelation:
        """The rows from the first change on, in one shard that knows it."""
        names = [f"c{i}" for i in range(len(relation.schema))]
        flow, shipped = beside_ticks(relation, (), names)
        kernel = BegunChangelogSpec(relation.stay, tuple(names), first_instant(stamp_type(flow)))
        columns = list(zip(relation.schema, names, strict=True))
        return self._staged(
            flow, _draft(shipped, len(columns), [kernel]), columns, last=self.root.kind != RSTREAM
        )

    def _restated(self, relation: VaryingRelation) -> VaryingRelation:
        """Restate all of it at every slide, or whenever anything changes, in one shard that has all."""
        schema = self.root.input.schema
        names = [f"c{i}" for i in range(len(schema))]
        ticks = self.contents.ticks()
        flow, shipped = beside_ticks(relation, ticks, names)
        stays = (relation.stay, TICK) if ticks else (relation.stay,)
        draft = _draft(
            shipped, len(names), [ReorderSpec(), RStreamSpec(stays, tuple(names), self.contents.periodic)]
        )
        draft.marked, draft.anew, draft.time = self.marked, True, stamp_type(flow)
        made = named(self.stages.build(flow, draft), zip(schema, names, strict=True))
        return VaryingRelation(Flow((FlowInput(made, marked=self.marked, staged=True),)), schema)


def _scalar_above_all(node: nodes.Node) -> nodes.Node | None:
    """Return the aggregates without GROUP BY that a result only converts."""
    if isinstance(node, nodes.Rename | nodes.Filter | nodes.Project):
        return _scalar_above_all(node.input)
    others = [below for below in maintained(node) if is_scalar(below) and below is not node]
    return node if is_scalar(node) and not others else None


def _draft(
    shipped: Mapping[str, Expr],
    keep: int,
    kernels: Sequence[KernelSpec],
    keys: Sequence[Expr] = (),
    added: Sequence[Column] = (),
) -> StageDraft:
    """Return a stage of which the first ``keep`` columns come out again."""
    names = list(shipped)
    columns = {name: shipped[name] for name in names[:keep]}
    arguments = {name: shipped[name] for name in names[keep:]}
    return StageDraft(columns, arguments, keys=keys, kernels=kernels, added=added)


def _result(result: Column, spec: AggregateSpec) -> Sequence[Column]:
    """Return the columns of an aggregate's results: of a user's aggregate, those of the rows it returns."""
    if spec.function != "user":
        return [result]
    program = spec.parameters[0]
    return returned_columns(program, [f"{spec.result}_{i}" for i in range(len(program.returns))])


def _mark(name: str) -> Column:
    return Column(name, TINYINT if name == JOINED else BIGINT, role=Role.MARK)


def _asked_of_pairs(node: nodes.WindowJoin) -> bool:
    """Whether a semi or anti join asks more of pairs than that columns are equal.

    What concerns one side alone is asked of its rows.
    """
    return bool(join_conditions(node.conditions, node.left, node.right).rest)
