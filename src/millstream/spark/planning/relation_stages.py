"""From results that are maintained at every instant to stages: which kernels run, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.codegen.udas.uda_compiler import CONTENT
from millstream.kernels.core.kernel import Kernel
from millstream.kernels.relational.incremental_relation import OP
from millstream.kernels.relational.lifetimes import SlideInstants
from millstream.plan import nodes
from millstream.plan.maintained_relations import bounded, conditions_of, mentioned, merged, of_tuples
from millstream.plan.relation_variance import CHANGES, DSTREAM, ISTREAM, RSTREAM, VIEW, WITH_ENDS, maintained
from millstream.plan.update_patterns import grows
from millstream.spark.lowering.frames import InputFrame, StreamFrames, named
from millstream.spark.lowering.input_frames import time_type_of
from millstream.spark.planning.aggregate_columns import aggregate
from millstream.spark.planning.change_columns import (
    CHANGE,
    MARKS,
    SIGNED,
    VaryingRelation,
    in_order,
    marks_of,
    slotted,
    together,
)
from millstream.spark.planning.join_slots import JoinSlots, arrow_fields
from millstream.spark.planning.stage_builder import StageBuilder
from millstream.spark.planning.uda_columns import bracket_spec, collected
from millstream.spark.planning.window_lifetimes import lifetime_of, row_lifetime, slide_instants
from millstream.spark.planning.window_stage import bound_type_of
from millstream.types import BOOLEAN, STRING, Field
from millstream.windows.window_spec import RowWindow

MakeKernel = Callable[[], Kernel]


@dataclass
class RelationStages:
    """Lowers one result that is maintained. ``lower`` does so with everything else."""

    stages: StageBuilder
    lower: Callable[[nodes.Node], StreamFrames]
    root: nodes.RelationToStream
    marked: bool
    """Whether another stage takes the result."""

    slides: tuple[SlideInstants, ...] = field(init=False)
    _mentioned: frozenset[ColumnRef] = field(init=False)

    def __post_init__(self) -> None:
        windowed = [n for n in maintained(self.root.input) if isinstance(n, nodes.Windowed)]
        found = [slide_instants(side, self.stages.spark) for side in windowed]
        self.slides = tuple(dict.fromkeys(one for one in found if one is not None))
        self._mentioned = mentioned(self.root.input)

    def stream(self) -> StreamFrames:
        """The result as a stream."""
        kind = self.root.kind
        relation = self._relation(bounded(self.root.input), last=True)
        if kind == RSTREAM and not self.slides:
            relation = self._restated(relation)
        flow = relation.flow
        if relation.signed and kind in (ISTREAM, DSTREAM):
            sign = Expr((f"`{OP}` {'>' if kind == ISTREAM else '<'} 0",), BOOLEAN)
            flow = flow.map(lambda leg: leg.where([sign]))
        if kind == CHANGES:
            op = Output("op", Expr((f"IF(`{OP}` > 0, '+', '-')",), STRING))
            outputs = [op, *(Output(c.name, of_column(c)) for c in self.root.input.schema)]
            flow = flow.map(lambda leg: leg.project(outputs))
        if kind == VIEW:
            return self._kept(flow)
        flow = flow.map(lambda leg: replace(leg, changes=False))
        return flow if relation.stay is not None else flow.map(in_order)

    def _kept(self, flow: StreamFrames) -> StreamFrames:
        """Changes with their marks, for somebody who keeps the result."""
        if not any(leg.marked for leg in flow.legs):
            return flow
        marks = [ColumnRef("", name, type_) for name, type_ in MARKS.items()]
        return self.stages.settled(flow, [*self.root.input.schema, *marks], marked=False)

    # ------------------------------------------------------------ relations

    def _relation(self, node: nodes.Node, *, last: bool = False) -> VaryingRelation:
        """A node's rows as they vary. The ``last`` stage gives what the result is asked for."""
        windowed = of_tuples(node)
        if windowed is not None:
            flow = replace(self.lower(node), window=None)
            relation = VaryingRelation(flow, node.schema, lifetime_of(windowed, self.stages.spark))
            as_it_is = not last or (self.root.kind == ISTREAM and not self.slides)
            return relation if as_it_is else self._changes([relation], node.schema, last=last)
        node = merged(node)
        match node:
            case nodes.Windowed():
                return self._of_rows(node)
            case nodes.Rename():
                below = self._relation(node.input, last=last)
                return replace(below, flow=below.flow.alias(node.alias), schema=node.schema)
            case nodes.Filter():
                below = self._relation(node.input, last=last)
                return below.map(lambda leg: leg.where(node.conditions))
            case nodes.Project():
                below = self._relation(node.input, last=last)
                return replace(below.map(lambda leg: leg.project(node.outputs)), schema=node.schema)
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

    def _of_rows(self, node: nodes.Windowed) -> VaryingRelation:
        """A window of rows: who leaves is known when others come."""
        from millstream.kernels.core.reorder import Reorder
        from millstream.kernels.relational.changelog import RowChangelog

        assert isinstance(node.window, RowWindow)
        refs = self._wanted(node.input.schema)
        names = tuple(f"c{i}" for i in range(len(refs)))
        partition = {name.lower() for name in node.window.partition_by}
        keys = [F.expr(c.sql) for c in node.input.schema if c.name.lower() in partition]
        stay = row_lifetime(node.window)
        flow = self.lower(node.input)
        frame = self.stages.run(
            flow,
            {name: F.expr(ref.sql) for name, ref in zip(names, refs, strict=True)},
            keys,
            [partial(Reorder), partial(RowChangelog, stay, names, self.slides)],
            marked=True,
            keep=len(names),
            add=SIGNED,
            anew=True,
            time_type=_stamp_type(flow),
        )
        leg = InputFrame(named(frame, zip(refs, names, strict=True)), marked=True, staged=True, changes=True)
        return VaryingRelation(StreamFrames((leg,)), tuple(refs), None, signed=True)

    def _changes(
        self, sides: Sequence[VaryingRelation], schema: nodes.Schema, *, last: bool
    ) -> VaryingRelation:
        """The rows of one relation or of several, as they enter and leave."""
        from millstream.kernels.relational.changelog import Changelog
        from millstream.kernels.relational.rstream import RStream

        fields = tuple(Field(f"c{i}", ref.type) for i, ref in enumerate(schema))
        names = tuple(one.name for one in fields)
        flow, shipped = together(sides, fields)
        stays = tuple(side.stay for side in sides)
        every = last and self.root.kind in WITH_ENDS
        kernels: list[MakeKernel] = [partial(Changelog, stays, names, self.slides, all_=every)]
        if last and self._restates:
            kernels.append(partial(RStream, None, names, self.slides))
        columns = list(zip(schema, names, strict=True))
        return self._staged(flow, shipped, kernels, columns, last=last)

    def _copies(
        self, node: nodes.Node, sides: Sequence[VaryingRelation], kind: str, *, all_: bool, last: bool
    ) -> VaryingRelation:
        """DISTINCT, and set operations that count."""
        from millstream.kernels.relational.set_operations import SetOperation
        from millstream.kernels.specs import SetOperationSpec

        fields = tuple(Field(f"c{i}", ref.type) for i, ref in enumerate(node.schema))
        names = tuple(one.name for one in fields)
        flow, shipped = together(sides, fields)
        lasting = tuple(map(grows, node.inputs))
        spec = SetOperationSpec(kind, all_, names, lasting)  # type: ignore[arg-type]
        kernels: list[MakeKernel] = [partial(SetOperation, spec, tuple(s.stay for s in sides), self.slides)]
        kernels += self._ending(names, last=last)
        keys = [F.col(name) for name in names]
        columns = list(zip(node.schema, names, strict=True))
        return self._staged(flow, shipped, kernels, columns, keys=keys, last=last)

    def _groups(self, node: nodes.WindowAggregate, *, last: bool) -> VaryingRelation:
        """Aggregates over what is maintained."""
        from millstream.kernels.relational.append_only_groups import AppendOnlyGroups
        from millstream.kernels.relational.group_aggregate import GroupAggregate
        from millstream.kernels.relational.multi_row_groups import columns_of
        from millstream.kernels.specs import AggregateSpec, GroupSpec

        below = self._relation(node.input)
        keys = {k.expr.column or ColumnRef("", k.name, k.expr.type): k.expr for k in node.group_by}
        shipped = {f"g{i}": F.expr(expr.sql) for i, expr in enumerate(keys.values())}
        specs: list[AggregateSpec] = []
        returned: dict[str, AggregateCall] = {}
        results: list[pa.Field] = []
        for i, call in enumerate(node.aggregates):
            if call.user is not None:
                argument, spec = bracket_spec(call, f"a{i}", f"r{i}", CONTENT)
                returned[f"r{i}"] = call
            else:
                argument, spec = aggregate(below.flow.legs[0].frame, call, f"a{i}", f"r{i}")
            shipped |= argument
            specs.append(spec)
            results += columns_of(spec)
        groups = tuple(f"g{i}" for i in range(len(keys)))
        names = (*groups, *(one.name for one in results))
        spec_ = GroupSpec(groups, tuple(specs))
        kind = AppendOnlyGroups if grows(node.input) else GroupAggregate
        kernels: list[MakeKernel] = [partial(kind, spec_, below.stay, self.slides)]
        kernels += self._ending(names, last=last)
        columns = [*zip(keys, groups, strict=True)]
        columns += [(call.result, f"r{i}") for i, call in enumerate(node.aggregates)]
        return self._staged(
            below.flow,
            {**shipped, **marks_of(below)},
            kernels,
            columns,
            keys=[F.expr(expr.sql) for expr in keys.values()],
            keep=len(keys),
            add=results,
            returned=returned,
            last=last,
        )

    # ------------------------------------------------------------ joins

    def _join(self, node: nodes.WindowJoin, *, last: bool) -> VaryingRelation:
        from millstream.kernels.relational.inner_join import InnerJoin
        from millstream.kernels.specs import InnerJoinSpec

        own, others = _own_conditions(node)
        conditions = conditions_of(others, node.left, node.right)
        # What is NULL equals nothing.
        own[0].extend(_is_there(one.left) for one in conditions.equal)
        own[1].extend(_is_there(one.right) for one in conditions.equal)
        sides = [
            self._relation(nodes.filtered(side, tuple(asked)))
            for side, asked in zip(node.inputs, own, strict=True)
        ]
        slots = JoinSlots.of(self._wanted(node.left.schema), self._wanted(node.right.schema))
        flow, shipped, keys = slotted(sides, slots, conditions.equal)
        ends = last and self.root.kind in WITH_ENDS
        signed = ends or any(side.signed for side in sides)
        stays = sides[0].stay, sides[1].stay
        spec = InnerJoinSpec(stays, slots.results(), self.slides, signed, ends=ends)
        names = tuple(name for _, name in slots.columns())
        kernels: list[MakeKernel] = [partial(InnerJoin, spec)]
        kernels += self._ending(names, last=last)
        pairs = self._staged(
            flow,
            shipped,
            kernels,
            slots.columns(),
            keys=keys,
            keep=0,
            add=arrow_fields(slots.columns()),
            signed=signed,
            last=last,
        )
        return pairs.map(lambda leg: leg.where(conditions.rest)) if conditions.rest else pairs

    def _outer(self, node: nodes.WindowJoin, *, last: bool) -> VaryingRelation:
        """Pairs first, and then the rows that are in none of them."""
        from millstream.kernels.relational.inner_join import JOIN_KEY, JOIN_KEY2, PART, PARTS, InnerJoin
        from millstream.kernels.relational.outer_join import OuterJoin
        from millstream.kernels.specs import InnerJoinSpec, OuterJoinSpec

        conditions = conditions_of(node.conditions, node.left, node.right)
        sides = [self._relation(node.left), self._relation(node.right)]
        slots = JoinSlots.of(self._wanted(node.left.schema), self._wanted(node.right.schema))
        flow, shipped, keys = slotted(sides, slots, conditions.equal, apart=True)
        spec = InnerJoinSpec(
            (sides[0].stay, sides[1].stay), slots.results(), self.slides, signed=True, parts=True
        )
        columns = slots.columns()
        keyed = [pa.field(name, pa.int64()) for name in (JOIN_KEY, JOIN_KEY2)] if keys else []
        parts = [pa.field(name, pa.int8() if name == PART else pa.int64()) for name in PARTS]
        made = self._staged(
            flow,
            shipped,
            [partial(InnerJoin, spec)],
            columns,
            keys=keys,
            keep=0,
            add=[*arrow_fields(columns), *keyed, *parts],
            signed=True,
            last=False,
        )
        if conditions.rest:
            # Rows pass, whatever is asked of pairs.
            asked = [Expr((f"(`{PART}` <> 0 OR (", *c.parts, "))"), BOOLEAN) for c in conditions.rest]
            made = made.map(lambda leg: leg.where(asked))
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
        kernels: list[MakeKernel] = [partial(OuterJoin, unmatched)]
        kernels += self._ending(names, last=last)
        passed = {name: F.expr(ref.sql) for ref, name in wanted}
        return self._staged(
            made.flow,
            {**passed, **{name: F.col(name) for name in PARTS}, **marks_of(made)},
            kernels,
            wanted,
            keys=[F.col(one.name) for one in keyed],
            keep=len(names),
            last=last,
        )

    def _matched(self, node: nodes.WindowJoin, *, last: bool) -> VaryingRelation:
        """A semi or anti join that asks nothing of pairs makes none."""
        from millstream.kernels.relational.semi_anti_join import SemiAntiJoin
        from millstream.kernels.specs import SemiAntiJoinSpec

        own, others = _own_conditions(node)
        conditions = conditions_of(others, node.left, node.right)
        own[1].extend(_is_there(one.right) for one in conditions.equal)
        left = nodes.filtered(node.left, tuple(own[0]))
        sides = [self._relation(left), self._relation(nodes.filtered(node.right, tuple(own[1])))]
        slots = JoinSlots.of(self._wanted(node.left.schema), [])
        flow, shipped, keys = slotted(sides, slots, conditions.equal, apart=True)
        names = tuple(slots.left.values())
        lasting = grows(node.left), grows(node.right)
        spec = SemiAntiJoinSpec(
            (sides[0].stay, sides[1].stay), names, node.kind == "anti", self.slides, lasting
        )
        kernels: list[MakeKernel] = [partial(SemiAntiJoin, spec)]
        kernels += self._ending(names, last=last)
        return self._staged(flow, shipped, kernels, [*slots.left.items()], keys=keys, last=last)

    # ------------------------------------------------------------ stages

    def _wanted(self, schema: Iterable[ColumnRef]) -> list[ColumnRef]:
        return [ref for ref in schema if ref in self._mentioned]

    def _ending(self, names: Sequence[str], *, last: bool) -> list[MakeKernel]:
        """A kernel that restates the result at every slide, where RSTREAM asks for that."""
        from millstream.kernels.relational.rstream import RStream

        return [partial(RStream, None, tuple(names), self.slides)] if last and self._restates else []

    @property
    def _restates(self) -> bool:
        """Whether all is given at every slide; where nothing slides, that is another stage's work."""
        return self.root.kind == RSTREAM and bool(self.slides)

    def _staged(
        self,
        flow: StreamFrames,
        shipped: dict[str, Column],
        kernels: Sequence[MakeKernel],
        columns: Sequence[tuple[ColumnRef, str]],
        *,
        last: bool,
        keys: Sequence[Column] = (),
        keep: int | None = None,
        add: Sequence[pa.Field] = (),
        returned: Mapping[str, AggregateCall] = MappingProxyType({}),
        signed: bool = True,
    ) -> VaryingRelation:
        from millstream.kernels.core.reorder import Reorder

        apart = last and self.root.kind == RSTREAM and not self.slides  # one more stage will restate it
        marked = self.marked or not last or apart
        marks = [] if last and self._restates else SIGNED if signed else CHANGE
        frame = self.stages.run(
            flow,
            shipped,
            list(keys),
            [partial(Reorder), *kernels],
            marked=marked,
            keep=len(columns) if keep is None else keep,
            add=[*add, *marks],
            anew=True,
            time_type=_stamp_type(flow),
        )
        frame = named(collected(frame, returned), columns)
        leg = InputFrame(frame, marked=marked, staged=True, changes=True)
        return VaryingRelation(
            StreamFrames((leg,)), tuple(ref for ref, _ in columns), None, signed and bool(marks)
        )

    def _restated(self, relation: VaryingRelation) -> VaryingRelation:
        """All of it, whenever anything changes: only who has all can do that."""
        from millstream.kernels.core.reorder import Reorder
        from millstream.kernels.relational.rstream import RStream

        schema = self.root.input.schema
        names = tuple(f"c{i}" for i in range(len(schema)))
        frame = self.stages.run(
            relation.flow,
            {**{n: F.expr(ref.sql) for n, ref in zip(names, schema, strict=True)}, **marks_of(relation)},
            [],
            [partial(Reorder), partial(RStream, relation.stay, names)],
            marked=self.marked,
            keep=len(names),
            anew=True,
            time_type=_stamp_type(relation.flow),
        )
        leg = InputFrame(named(frame, zip(schema, names, strict=True)), marked=self.marked, staged=True)
        return VaryingRelation(StreamFrames((leg,)), schema)


def _stamp_type(flow: StreamFrames) -> pa.DataType:
    """The type of the instants at which rows of a flow enter and leave."""
    return bound_type_of(time_type_of(flow.legs[0]))


def _asked_of_pairs(node: nodes.WindowJoin) -> bool:
    """Whether a semi or anti join asks more of pairs than that columns are equal.

    What a semi join asks of one side alone can be asked before it. An anti join keeps rows of its left side
    for which such a condition does not hold.
    """
    own, others = _own_conditions(node)
    asked_of_left = node.kind == "anti" and bool(own[0])
    return asked_of_left or bool(conditions_of(others, node.left, node.right).rest)


def _own_conditions(node: nodes.WindowJoin) -> tuple[tuple[list[Expr], list[Expr]], list[Expr]]:
    """Conditions of an inner join that concern the left or the right side alone, and the others."""
    own: tuple[list[Expr], list[Expr]] = [], []
    others: list[Expr] = []
    for condition in node.conditions:
        columns = set(condition.columns())
        at = [i for i, side in enumerate(node.inputs) if columns and columns <= set(side.schema)]
        (own[at[0]] if at and condition.movable else others).append(condition)
    return own, others


def _is_there(column: ColumnRef) -> Expr:
    return Expr((column, " IS NOT NULL"), BOOLEAN)
