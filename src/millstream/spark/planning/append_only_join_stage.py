"""From a join of windows to what is shipped of both streams, and what pairs have of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.kernels.relational.incremental_relation import SIDE
from millstream.kernels.specs import AppendOnlyJoinSpec
from millstream.plan import nodes
from millstream.plan.join_conditions import JoinSide, WindowJoinParts
from millstream.spark.planning.join_slots import JoinSlots, arrow_fields
from millstream.spark.planning.stream_disorder import units
from millstream.types import TINYINT, Field
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

    def shipped(self) -> dict[str, Column]:
        return {**{field.name: F.col(field.name) for field in self.slots.fields}, SIDE: F.col(_SIDE)}

    def columns(self) -> list[tuple[ColumnRef, str]]:
        return self.slots.columns()

    def spec(self, parts: WindowJoinParts, time_type: T.DataType) -> AppendOnlyJoinSpec:
        reach = tuple(_reach(side.windowed, time_type) for side in (parts.left, parts.right))
        return AppendOnlyJoinSpec((reach[0], reach[1]), self.slots.results())

    def results(self) -> list[pa.Field]:
        return arrow_fields(self.columns())


def join_input(parts: WindowJoinParts) -> JoinInput:
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


def _reach(windowed: nodes.Windowed, time_type: T.DataType) -> int | float | None:
    match windowed.window:
        case RangeWindow(range=size):
            return units(size, time_type)
        case NowWindow():
            return 0
        case LandmarkWindow():
            return None
    raise AssertionError(f"{windowed.window} has passed the list of what can be run")


def needed_of(side: JoinSide, parts: WindowJoinParts) -> list[Expr]:
    """What is looked at of a side."""
    own = set(side.windowed.input.schema)
    columns = [*parts.wanted(), *(c for e in parts.equal for c in (e.left, e.right))]
    return [*side.conditions, *(of_column(c) for c in columns if c in own)]
