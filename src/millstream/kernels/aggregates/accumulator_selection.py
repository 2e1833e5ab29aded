"""Selection of the accumulators that aggregates need."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.catalog.builtin_aggregates import Family, Nulls, accumulator_row
from millstream.kernels.aggregates.accumulator import Accumulator
from millstream.kernels.aggregates.best_row import BestRow
from millstream.kernels.aggregates.content_aggregates import DistinctValues, Recomputed
from millstream.kernels.aggregates.content_functions import summary
from millstream.kernels.aggregates.count import Count
from millstream.kernels.aggregates.double_sum import DoubleSum
from millstream.kernels.aggregates.integer_sum import IntegerSum
from millstream.kernels.aggregates.min_max_bitwise import MinMaxBitwise
from millstream.kernels.aggregates.moments import PAIRS, SHAPE, VARIANCE, Moments
from millstream.kernels.aggregates.percentiles import OrderStatistics
from millstream.kernels.core.column_codec import check_type, is_long_decimal
from millstream.kernels.specs import ROWS, USER, AggregateSpec, family_of
from millstream.kernels.udas.content_uda import ContentUda, PaneRows
from millstream.kernels.udas.paned_content import PanedContent

ARGUMENTS = b"millstream.arguments"
"""Metadata key of the argument types in a table of state."""

_MOMENTS = {Family.VARIANCE: VARIANCE, Family.SHAPE: SHAPE, Family.PAIR: PAIRS}


@dataclass(frozen=True)
class Aggregate:
    """An aggregate with the type of its argument and the numbers of its accumulators."""

    spec: AggregateSpec
    argument: pa.DataType
    measures: tuple[int, ...]


def check(specs: Iterable[AggregateSpec]) -> None:
    """Refuse unsupported types before tuples come."""
    for spec in specs:
        if family_of(spec) in (Family.MIN_MAX, Family.FIRST_LAST):
            check_type(spec.type)


def needs_values(spec: AggregateSpec) -> bool:
    """Tell whether the state of a group must hold its values, not only a few numbers."""
    if spec.argument is None:
        return False
    return family_of(spec) in (Family.CONTENT, Family.ORDER) or drops_copies(spec)


def drops_copies(spec: AggregateSpec) -> bool:
    """Whether equal values count once, and that makes a difference."""
    if spec.function in (USER, ROWS):
        return spec.distinct
    row = accumulator_row(spec.function)
    return row.distinct or (spec.distinct and not (row.same_if_distinct and family_of(spec) is row.family))


def argument_types(specs: Iterable[AggregateSpec], schema: pa.Schema) -> pa.Schema:
    """Return the columns that aggregates need."""
    names = dict.fromkeys(name for spec in specs for name in spec.arguments)
    return pa.schema([pa.field(name, schema.field(name).type) for name in names])


def with_arguments(table: pa.Table, types: pa.Schema) -> pa.Table:
    return table.replace_schema_metadata({ARGUMENTS: base64.b64encode(types.serialize())})


def arguments_of(schema: pa.Schema) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema.metadata[ARGUMENTS])))


def plan(
    specs: Sequence[AggregateSpec], types: pa.Schema, *, in_order: bool
) -> tuple[list[Accumulator], list[Aggregate]]:
    """Return the accumulators that are needed, each once, and the aggregates made from them."""
    measures: dict[str, Accumulator] = {}
    aggregates = []
    for spec in specs:
        type_ = pa.null() if spec.argument is None else types.field(spec.argument).type
        wanted = _measures(spec, types, in_order=in_order)
        for measure in wanted:
            shared = measures.setdefault(measure.name, measure)
            if isinstance(shared, OrderStatistics):
                shared.want(spec)
        numbers = tuple(list(measures).index(measure.name) for measure in wanted)
        aggregates.append(Aggregate(spec, type_, numbers))
    return list(measures.values()), aggregates


def _measures(spec: AggregateSpec, types: pa.Schema, *, in_order: bool) -> list[Accumulator]:
    argument, function = spec.argument, spec.function
    if argument is None:
        return [Count(None)]
    type_, family = types.field(argument).type, family_of(spec)
    if family is Family.CONTENT:
        return [_recomputed(spec, types, in_order=in_order)]
    if drops_copies(spec):
        if function == "count" and not spec.others:
            return [OrderStatistics(argument, type_)]
        return [_distinct(spec, types, in_order=in_order)]
    match family:
        case Family.COUNT:
            return [Count(argument)]
        case Family.MIN_MAX | Family.BITS:
            return [MinMaxBitwise(argument, type_, function)]
        case Family.FIRST_LAST:
            nulls, condition = spec.ignore_nulls, spec.condition
            value = argument, type_
            return [BestRow(function, value, ignore_nulls=nulls, condition=condition, in_order=in_order)]
        case Family.MIN_MAX_BY:
            by = spec.others[0], types.field(spec.others[0]).type
            return [BestRow(function, (argument, type_), by, in_order=in_order)]
        case Family.SUM:
            return _sums(spec, argument, type_)
        case Family.ORDER:
            return [OrderStatistics(argument, type_, high=function == "mode" and _from_top(spec))]
        case Family.VARIANCE | Family.SHAPE | Family.PAIR:
            return [Moments((argument, *spec.others), _MOMENTS[family])]


def _sums(spec: AggregateSpec, argument: str, type_: pa.DataType) -> list[Accumulator]:
    count = Count(argument)
    if pa.types.is_floating(type_) or pa.types.is_null(type_):
        return [DoubleSum(argument), count] if spec.function in ("avg", "try_avg") else [DoubleSum(argument)]
    if is_long_decimal(type_):
        return [IntegerSum(argument, type_, "low"), IntegerSum(argument, type_, "high"), count]
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_) or pa.types.is_duration(type_):
        return [IntegerSum(argument, type_), count]
    raise NotImplementedError(f"{spec.function} of {type_}")


def _from_top(spec: AggregateSpec) -> bool:
    return bool(spec.order) and spec.order[0].descending


def _recomputed(spec: AggregateSpec, types: pa.Schema, *, in_order: bool) -> Recomputed:
    names = [name for name in spec.arguments if name != spec.condition]
    arguments = {name: types.field(name).type for name in names}
    if spec.function == USER and len(spec.parameters) > 1:
        *programs, length = spec.parameters
        return PanedContent(_label(spec), arguments, tuple(programs), length, spec.condition)
    needed = [names[1]] if spec.function in ("min_by", "max_by") else names[:1]
    if spec.function == "percentile_of_counts":
        needed = names
    nulls = Nulls.KEEP if spec.function in (USER, ROWS) else accumulator_row(spec.function).nulls
    takes_nulls = nulls is Nulls.KEEP or (nulls is Nulls.SKIP_UNLESS_TOLD and not spec.ignore_nulls)
    return Recomputed(
        _label(spec),
        arguments,
        _of_user(spec) if spec.function == USER else summary(spec),
        needed=[] if takes_nulls else needed,
        condition=spec.condition,
        distinct=drops_copies(spec),
        in_order=in_order,
    )


def _of_user(spec: AggregateSpec) -> ContentUda | PaneRows:
    program = spec.parameters[0]
    return PaneRows(program) if program.mode == "pane" else ContentUda(program)


def _distinct(spec: AggregateSpec, types: pa.Schema, *, in_order: bool) -> Recomputed:
    """Return the accumulator of an aggregate of distinct values, or of distinct pairs without NULLs."""
    inner, _ = plan([replace(spec, distinct=False)], types, in_order=True)
    names = [name for name in spec.arguments if name != spec.condition]
    return Recomputed(
        _label(spec),
        {name: types.field(name).type for name in names},
        DistinctValues(names, inner),
        needed=names,
        condition=spec.condition,
        distinct=True,
        in_order=in_order,
    )


def _label(spec: AggregateSpec) -> str:
    """Return an identity for contents; the order of arguments and all parameters matter."""
    parameters = [getattr(parameter, "digest", None) or repr(parameter) for parameter in spec.parameters]
    shown = [*spec.arguments, *parameters, *map(repr, spec.order)]
    kind = f"{'distinct ' if spec.distinct else ''}{'nonnull ' if spec.ignore_nulls else ''}"
    return f"{kind}{spec.function}({', '.join(shown)})"
