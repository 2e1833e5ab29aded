"""From aggregates to the measures that they need."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from millstream.kernels.columns import check_type, is_long_decimal
from millstream.kernels.counts import Count
from millstream.kernels.doubles import DoubleSum
from millstream.kernels.edges import Edge
from millstream.kernels.extremes import Extreme
from millstream.kernels.integers import IntegerSum
from millstream.kernels.measures import Measure
from millstream.kernels.specs import AggregateSpec

ARGUMENTS = b"millstream.arguments"
"""Under which the types of arguments are kept with a table of state."""


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of an argument whose type is known, with the numbers of its measures."""

    spec: AggregateSpec
    argument: pa.DataType
    measures: tuple[int, ...]


def check(specs: Iterable[AggregateSpec]) -> None:
    """Refuse at once what could only be refused when tuples come."""
    for spec in specs:
        if spec.function in ("min", "max", "first", "last"):
            check_type(spec.type)


def argument_types(specs: Iterable[AggregateSpec], schema: pa.Schema) -> pa.Schema:
    """The columns that aggregates need."""
    names = dict.fromkeys(spec.argument for spec in specs if spec.argument is not None)
    return pa.schema([pa.field(name, schema.field(name).type) for name in names])


def with_arguments(table: pa.Table, types: pa.Schema) -> pa.Table:
    return table.replace_schema_metadata({ARGUMENTS: base64.b64encode(types.serialize())})


def arguments_of(schema: pa.Schema) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema.metadata[ARGUMENTS])))


def plan(
    specs: Sequence[AggregateSpec], types: pa.Schema, *, in_order: bool
) -> tuple[list[Measure], list[Aggregate]]:
    """The measures that are needed, each once, and the aggregates that are made from them."""
    measures: dict[str, Measure] = {}
    aggregates = []
    for spec in specs:
        type_ = pa.null() if spec.argument is None else types.field(spec.argument).type
        wanted = _measures(spec, type_, in_order=in_order)
        for measure in wanted:
            measures.setdefault(measure.name, measure)
        numbers = tuple(list(measures).index(measure.name) for measure in wanted)
        aggregates.append(Aggregate(spec, type_, numbers))
    return list(measures.values()), aggregates


def _measures(spec: AggregateSpec, type_: pa.DataType, *, in_order: bool) -> list[Measure]:
    argument = spec.argument
    count = Count(argument)
    if argument is None or spec.function == "count":
        return [count]
    if spec.function in ("min", "max"):
        return [Extreme(argument, type_, largest=spec.function == "max")]
    if spec.function in ("first", "last"):
        last = spec.function == "last"
        return [Edge(argument, type_, last=last, ignore_nulls=spec.ignore_nulls, in_order=in_order)]
    if pa.types.is_floating(type_) or pa.types.is_null(type_):
        return [DoubleSum(argument), count] if spec.function == "avg" else [DoubleSum(argument)]
    if is_long_decimal(type_):
        return [IntegerSum(argument, type_, "low"), IntegerSum(argument, type_, "high"), count]
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_) or pa.types.is_duration(type_):
        return [IntegerSum(argument, type_), count]
    raise NotImplementedError(f"{spec.function} of {type_}")
