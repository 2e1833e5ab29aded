"""Relations that vary on their way to a stage, one alone or two together, and marks on their rows.

A relation comes as the tuples of a window of time, whose stay kernels compute, or as changes that a stage has
made. Changes have hidden columns: until when a row is there and, where ends are not known before, whether it
enters or leaves, and what it is found by again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.kernels.column_names import ID, ID2, OP, SIDE, UNTIL
from millstream.kernels.relational.lifetimes import TICK, Lifetime
from millstream.physical import expressions as ex
from millstream.physical.flow import Flow, FlowInput, united
from millstream.physical.node import Column, Role
from millstream.physical.operators.join_slots import JoinSlots
from millstream.physical.stage_builder import sorting_columns
from millstream.plan import nodes
from millstream.plan.join_conditions import EqualColumns
from millstream.plan.relation_variance import CHANGES
from millstream.stage.pipeline import TIME
from millstream.types import BIGINT, STRING, TINYINT, Field

MARKS = {UNTIL: BIGINT, OP: TINYINT, ID: BIGINT, ID2: BIGINT}
"""The hidden columns of changes."""

SIGNED = tuple(Column(name, type_, role=Role.MARK) for name, type_ in MARKS.items())
CHANGE = SIGNED[:1]


@dataclass(frozen=True)
class VaryingRelation:
    """A relation that varies: tuples that stay, or changes; ``signed`` ones also say what leaves."""

    flow: Flow
    schema: nodes.Schema
    stay: Lifetime | None = None
    signed: bool = False

    def map(self, change: Callable[[FlowInput], FlowInput]) -> VaryingRelation:
        return replace(self, flow=self.flow.map(change))


def together(sides: Sequence[VaryingRelation], fields: Sequence[Field]) -> tuple[Flow, dict[str, Expr]]:
    """Relations with columns of the same types as one flow."""
    outputs = [
        [Output(one.name, of_column(ref)) for one, ref in zip(fields, side.schema, strict=True)]
        for side in sides
    ]
    return _united(sides, outputs, fields), _shipped(sides, fields)


def beside_ticks(
    relation: VaryingRelation, ticks: Sequence[Flow], names: Sequence[str]
) -> tuple[Flow, dict[str, Expr]]:
    """A relation and, as a second side, the rows of other flows, of which only the instants count."""
    fields = tuple(Field(name, ref.type) for name, ref in zip(names, relation.schema, strict=True))
    if not ticks:
        return together([relation], fields)
    outputs = [Output(one.name, of_column(ref)) for one, ref in zip(fields, relation.schema, strict=True)]
    empty = [Output(one.name, ex.nothing(one.type)) for one in fields]
    inputs = [one for flow in ticks for one in flow.inputs]
    sides = relation, VaryingRelation(Flow(tuple(inputs)), (), TICK)
    return _united(sides, [outputs, empty], fields), _shipped(sides, fields)


def slotted(
    sides: Sequence[VaryingRelation],
    slots: JoinSlots,
    equal: Sequence[EqualColumns],
    *,
    apart: bool = False,
    asked: Sequence[Expr] = (),
) -> tuple[Flow, dict[str, Expr], list[Expr]]:
    """Both sides of a join as one flow, and what tells their keys apart.

    What is NULL equals nothing: rows without a key that must be kept ``apart`` get keys of their own, and so
    do rows of the left side for which the conditions ``asked`` of them do not hold.
    """
    apart = apart and bool(equal or asked)
    keys = [Field(f"k{i}", one.type) for i, one in enumerate(equal)]
    outputs = []
    for number, columns in enumerate([[one.left for one in equal], [one.right for one in equal]]):
        own = [*slots.outputs(number), *(Output(f"k{i}", of_column(c)) for i, c in enumerate(columns))]
        if apart:
            own.append(Output("absent", _absent(columns, number + 1, () if number else asked)))
        outputs.append(own)
    if apart:
        keys.append(Field("absent", TINYINT))
    flow = _united(sides, outputs, [*slots.fields, *keys])
    return flow, _shipped(sides, slots.fields), [ex.column(key.name, key.type) for key in keys]


def _united(
    sides: Sequence[VaryingRelation], outputs: Sequence[Sequence[Output]], fields: Sequence[Field]
) -> Flow:
    """Projections of relations onto the same columns, and what is known of their rows, one beside another."""
    if len(sides) == 1:
        return sides[0].map(partial(_projected, outputs=outputs[0])).flow
    extra = [Field("side", TINYINT)]
    changes = any(side.stay is None for side in sides)
    extra += [Field(_plain(name), type_) for name, type_ in MARKS.items()] if changes else []
    flows = []
    for number, (side, own) in enumerate(zip(sides, outputs, strict=True)):
        marks = [Output("side", Expr((f"CAST({number} AS TINYINT)",), TINYINT))]
        marks += [Output(_plain(name), _mark(side, name)) for name in MARKS] if changes else []
        flows.append(side.map(partial(_projected, outputs=[*own, *marks])).flow)
    return united(flows[0], flows[1], (*fields, *extra))


def _shipped(sides: Sequence[VaryingRelation], fields: Sequence[Field]) -> dict[str, Expr]:
    shipped = {field.name: ex.column(field.name, field.type) for field in fields}
    if len(sides) == 1:
        return {**shipped, **marks_of(sides[0])}
    shipped[SIDE] = ex.column("side", TINYINT)
    if any(side.stay is None for side in sides):
        shipped |= {name: ex.column(_plain(name), type_) for name, type_ in MARKS.items()}
    return shipped


def marks_of(relation: VaryingRelation) -> dict[str, Expr]:
    """Return the columns with lifetimes and signs of the rows of a relation."""
    if relation.stay is not None:
        return {}
    return {name: ex.column(name, MARKS[name]) for name in (MARKS if relation.signed else (UNTIL,))}


def _mark(relation: VaryingRelation, name: str) -> Expr:
    type_ = MARKS[name]
    if relation.stay is None and (relation.signed or name == UNTIL):
        return Expr((f"`{name}`",), type_)
    return Expr(("CAST(1 AS TINYINT)" if name == OP else f"CAST(NULL AS {type_})",), type_)


def _plain(name: str) -> str:
    """The name of a hidden column among those that are seen."""
    return name.removeprefix("__ms_")


def _projected(one: FlowInput, outputs: Sequence[Output]) -> FlowInput:
    return one.project(outputs)


def in_order(one: FlowInput) -> FlowInput:
    """Show what happens at one instant in an order of its own: what leaves first, then by values."""
    names = [c.name for c in one.node.shown]
    keys = [ex.column(OP, TINYINT)] if one.node.has(OP) else []
    keys += [ex.sort_key(ex.column(c.name, c.type)) for c in one.node.shown if names.count(c.name) == 1]
    return one.set_hidden(*sorting_columns(keys), drops=tuple(MARKS))


def _absent(columns: Sequence[ColumnRef], number: int, asked: Sequence[Expr]) -> Expr:
    """A number of its own for rows of a side that have no key, and 0 for all others."""
    reasons: list[tuple[str | ColumnRef, ...]] = [(ref, " IS NULL") for ref in columns]
    reasons += [("NOT coalesce(", *condition.parts, ", false)") for condition in asked]
    if not reasons:
        return Expr(("CAST(0 AS TINYINT)",), TINYINT)
    parts: list[str | ColumnRef] = ["CAST(IF("]
    for i, reason in enumerate(reasons):
        parts += [*([" OR "] if i else []), *reason]
    return Expr((*parts, f", {number}, 0) AS TINYINT)"), TINYINT)


def told_changes(one: FlowInput, root: nodes.RelationToStream) -> FlowInput:
    """Add the columns that tell what happens to a row, and when."""
    outputs = [Output(c.name, of_column(c)) for c in root.input.schema]
    if root.kind == CHANGES:
        outputs.insert(0, Output("op", Expr((f"IF(`{OP}` > 0, '+', '-')",), STRING)))
    if root.instant is not None:
        time = next(c for c in one.node.layout if c.name == TIME)
        outputs.append(Output("instant", ex.cast(ex.column(TIME, time.type), root.instant)))
    return one.project(outputs)
