"""Joins of windows whose tuples leave in the order in which they entered: no pair is ever taken back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.kernels.column_names import SIDE
from millstream.kernels.kernel_specs import ReorderSpec
from millstream.kernels.specs import AppendOnlyJoinSpec
from millstream.physical import expressions as ex
from millstream.physical.flow import Flow, named, passed
from millstream.physical.node import Choice
from millstream.physical.operators.join_slots import JoinSlots, joined_columns
from millstream.physical.promise_units import units
from millstream.physical.stage_builder import StageBuilder, StageDraft
from millstream.plan import nodes
from millstream.plan.join_conditions import JoinSide, WindowJoinParts
from millstream.types import TINYINT, Field, Type
from millstream.windows.window_spec import LandmarkWindow, NowWindow, RangeWindow

_SIDE = "side"


@dataclass(frozen=True)
class JoinInput:
    """A join as a stage takes it: both sides as projections onto the same columns."""

    left: tuple[Output, ...]
    right: tuple[Output, ...]
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    slots: JoinSlots

    def shipped(self) -> dict[str, Expr]:
        slots = {field.name: ex.column(field.name, field.type) for field in self.slots.fields}
        return {**slots, SIDE: ex.column(_SIDE, TINYINT)}

    def columns(self) -> list[tuple[ColumnRef, str]]:
        return self.slots.columns()

    def spec(self, parts: WindowJoinParts, time_type: Type) -> AppendOnlyJoinSpec:
        reach = tuple(_reach(side.windowed, time_type) for side in (parts.left, parts.right))
        return AppendOnlyJoinSpec((reach[0], reach[1]), self.slots.results())


def plan_append_only_join(
    stages: StageBuilder, flow: Flow, parts: WindowJoinParts, given: JoinInput, *, marked: bool
) -> Flow:
    """Plan pairs of tuples of two streams, which are one flow that tells their tuples apart."""
    types = {field.name: field.type for field in given.fields}
    draft = StageDraft(
        {},
        given.shipped(),
        keys=tuple(ex.column(name, types[name]) for name in given.keys),
        kernels=(ReorderSpec(), given.spec(parts, flow.first.time_type)),
        added=joined_columns(given.columns()),
        marked=marked,
        notes=(Choice("join", "append only", "tuples leave in the order in which they entered", "O(pairs)"),),
    )
    node = named(stages.build(flow, draft), given.columns())
    return Flow((passed(flow, node, marked=marked),))


def join_input(parts: WindowJoinParts) -> JoinInput:
    """Return both sides of a join as projections onto the same columns."""
    wanted = parts.wanted()
    sides = (
        [column for column in side.windowed.input.schema if column in wanted]
        for side in (parts.left, parts.right)
    )
    slots = JoinSlots.of(*sides)
    keys = tuple(f"k{i}" for i in range(len(parts.equal)))
    fields = (
        *slots.fields,
        Field(_SIDE, TINYINT),
        *(Field(name, equal.type) for name, equal in zip(keys, parts.equal, strict=True)),
    )
    return JoinInput(
        tuple(_outputs(slots, 0, [e.left for e in parts.equal])),
        tuple(_outputs(slots, 1, [e.right for e in parts.equal])),
        fields,
        keys,
        slots,
    )


def _outputs(slots: JoinSlots, side: int, equal: list[ColumnRef]) -> Iterator[Output]:
    yield from slots.outputs(side)
    yield Output(_SIDE, Expr((f"CAST({side} AS TINYINT)",), TINYINT))
    for i, column in enumerate(equal):
        yield Output(f"k{i}", of_column(column))


def _reach(windowed: nodes.Windowed, time_type: Type) -> int | float | None:
    match windowed.window:
        case RangeWindow(range=size):
            return units(size, time_type)
        case NowWindow():
            return 0
        case LandmarkWindow():
            return None
    raise AssertionError(f"{windowed.window} has passed the list of what can be run")


def needed_of(side: JoinSide, parts: WindowJoinParts) -> list[Expr]:
    """Return the columns of a side that the join reads."""
    own = set(side.windowed.input.schema)
    columns = [*parts.wanted(), *(c for e in parts.equal for c in (e.left, e.right))]
    return [*side.conditions, *(of_column(c) for c in columns if c in own)]
