"""From a join of windows to what is shipped of both streams, and what pairs have of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from millstream.analysis.expressions import ColumnRef, Expr, of_column
from millstream.analysis.resolved import Output
from millstream.kernels.specs import JoinSpec
from millstream.kernels.window_join import SIDE
from millstream.plan import nodes
from millstream.plan.window_joins import Joined, Side
from millstream.spark.promises import units
from millstream.spark.types import to_spark_type
from millstream.types import TINYINT, Field, Type
from millstream.windows.spec import LandmarkWindow, NowWindow, RangeWindow

_SIDE = "side"


@dataclass(frozen=True)
class Slots:
    """Columns in which tuples of both sides travel.

    Columns of one type share a slot, whatever they are called on either side: what a side has not is NULL,
    and would be shipped for nothing.
    """

    fields: tuple[Field, ...]
    left: dict[ColumnRef, str]
    right: dict[ColumnRef, str]

    @classmethod
    def of(cls, joined: Joined) -> Slots:
        fields: list[Field] = []
        found: list[dict[ColumnRef, str]] = []
        for side in (joined.left, joined.right):
            free = list(fields)
            mine: dict[ColumnRef, str] = {}
            for column in joined.wanted():
                known = next((c for c in side.windowed.input.schema if c == column), None)
                if known is None:
                    continue
                field = next((f for f in free if f.type == known.type), None)
                if field is None:
                    field = Field(f"s{len(fields)}", known.type)
                    fields.append(field)
                else:
                    free.remove(field)
                mine[known] = field.name
            found.append(mine)
        return cls(tuple(fields), *found)


@dataclass(frozen=True)
class Shipment:
    """A join as a stage takes it: both sides as projections onto the same columns."""

    left: tuple[Output, ...]
    right: tuple[Output, ...]
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    slots: Slots

    def shipped(self) -> dict[str, Column]:
        return {**{field.name: F.col(field.name) for field in self.slots.fields}, SIDE: F.col(_SIDE)}

    def columns(self) -> list[tuple[ColumnRef, str]]:
        """The columns of a pair by the names that the kernel gives them."""
        return [(ref, f"l{i}") for i, ref in enumerate(self.slots.left)] + [
            (ref, f"r{i}") for i, ref in enumerate(self.slots.right)
        ]

    def spec(self, joined: Joined, time_type: T.DataType) -> JoinSpec:
        reach = tuple(_reach(side.windowed, time_type) for side in (joined.left, joined.right))
        left = {f"l{i}": slot for i, slot in enumerate(self.slots.left.values())}
        right = {f"r{i}": slot for i, slot in enumerate(self.slots.right.values())}
        return JoinSpec((reach[0], reach[1]), (left, right))

    def results(self) -> list[pa.Field]:
        types = [ref.type for ref, _ in self.columns()]
        schema = T.StructType([T.StructField(f"f{i}", to_spark_type(type_)) for i, type_ in enumerate(types)])
        made = to_arrow_schema(schema, timezone="UTC")
        return [pa.field(name, made.field(i).type) for i, (_, name) in enumerate(self.columns())]


def shipment(joined: Joined) -> Shipment:
    slots = Slots.of(joined)
    keys = tuple(f"k{i}" for i in range(len(joined.equal)))
    fields = (
        *slots.fields,
        Field(_SIDE, TINYINT),
        *(Field(name, equal.type) for name, equal in zip(keys, joined.equal, strict=True)),
    )
    return Shipment(
        tuple(_outputs(slots, slots.left, 0, [e.left for e in joined.equal])),
        tuple(_outputs(slots, slots.right, 1, [e.right for e in joined.equal])),
        fields,
        keys,
        slots,
    )


def _outputs(slots: Slots, mine: dict[ColumnRef, str], side: int, equal: list[ColumnRef]) -> Iterator[Output]:
    by_slot = {slot: column for column, slot in mine.items()}
    for field in slots.fields:
        column = by_slot.get(field.name)
        yield Output(field.name, _nothing(field.type) if column is None else of_column(column))
    yield Output(_SIDE, Expr((f"CAST({side} AS TINYINT)",), TINYINT))
    for i, column in enumerate(equal):
        yield Output(f"k{i}", of_column(column))


def _nothing(type_: Type) -> Expr:
    return Expr((f"CAST(NULL AS {type_})",), type_)


def _reach(windowed: nodes.Windowed, time_type: T.DataType) -> int | float | None:
    match windowed.window:
        case RangeWindow(range=size):
            return units(size, time_type)
        case NowWindow():
            return 0
        case LandmarkWindow():
            return None
    raise AssertionError(f"{windowed.window} has passed the list of what can be run")


def needed_of(side: Side, joined: Joined) -> list[Expr]:
    """What is looked at of a side."""
    own = set(side.windowed.input.schema)
    columns = [*joined.wanted(), *(c for e in joined.equal for c in (e.left, e.right))]
    return [*side.conditions, *(of_column(c) for c in columns if c in own)]
