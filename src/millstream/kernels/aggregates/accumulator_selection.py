"""From aggregates to the measures that they need."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.kernels.aggregates.accumulator import Accumulator
from millstream.kernels.aggregates.bitwise import Bits
from millstream.kernels.aggregates.content_aggregates import DistinctValues, Recomputed
from millstream.kernels.aggregates.content_functions import summary
from millstream.kernels.aggregates.count import Count
from millstream.kernels.aggregates.double_sum import DoubleSum
from millstream.kernels.aggregates.first_last import Edge
from millstream.kernels.aggregates.integer_sum import IntegerSum
from millstream.kernels.aggregates.min_max import Extreme
from millstream.kernels.aggregates.min_max_by import Chosen
from millstream.kernels.aggregates.moments import PAIRS, SHAPE, VARIANCE, Moments
from millstream.kernels.aggregates.percentiles import WAYS, OrderStatistics
from millstream.kernels.core.column_codec import check_type, is_long_decimal
from millstream.kernels.specs import AggregateSpec
from millstream.kernels.udas.content_uda import ContentUda

ARGUMENTS = b"millstream.arguments"
"""Under which the types of arguments are kept with a table of state."""

_VARIANCES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "regr_sxx", "regr_syy")
_SHAPES = ("skewness", "kurtosis")
_PAIRED = ("covar_pop", "covar_samp", "corr", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2")
_LISTED = ("collect_list", "collect_set", "listagg", "histogram_numeric", "percentile_of_counts")
_CONTENTS = (*_LISTED, "collect_union", "approx_top_k", "vector_sum", "vector_avg", "user")
_SAME_IF_DISTINCT = ("min", "max", "first", "last", "min_by", "max_by", "bit_and", "bit_or")
"""Aggregates to which it makes no difference how often a value is there."""


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


def needs_values(spec: AggregateSpec) -> bool:
    """Whether a few numbers of each group are not enough, so that its values have to be kept."""
    if spec.argument is None:
        return False
    is_distinct = spec.distinct and spec.function not in _SAME_IF_DISTINCT
    return _is_listed(spec) or is_distinct or spec.function in WAYS or spec.function == "mode"


def argument_types(specs: Iterable[AggregateSpec], schema: pa.Schema) -> pa.Schema:
    """The columns that aggregates need."""
    names = dict.fromkeys(name for spec in specs for name in spec.arguments)
    return pa.schema([pa.field(name, schema.field(name).type) for name in names])


def with_arguments(table: pa.Table, types: pa.Schema) -> pa.Table:
    return table.replace_schema_metadata({ARGUMENTS: base64.b64encode(types.serialize())})


def arguments_of(schema: pa.Schema) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema.metadata[ARGUMENTS])))


def plan(
    specs: Sequence[AggregateSpec], types: pa.Schema, *, in_order: bool
) -> tuple[list[Accumulator], list[Aggregate]]:
    """The measures that are needed, each once, and the aggregates that are made from them."""
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
    type_ = types.field(argument).type
    if _is_listed(spec):
        return [_recomputed(spec, types, in_order=in_order)]
    if spec.distinct and function == "count" and not spec.others:
        return [OrderStatistics(argument, type_)]
    if spec.distinct and function not in _SAME_IF_DISTINCT:
        return [_distinct(spec, types, in_order=in_order)]
    match function:
        case "count":
            return [Count(argument)]
        case "min" | "max":
            return [Extreme(argument, type_, largest=function == "max")]
        case "first" | "last":
            options = {"ignore_nulls": spec.ignore_nulls, "in_order": in_order}
            return [Edge(argument, type_, last=function == "last", condition=spec.condition, **options)]
        case "min_by" | "max_by":
            by = spec.others[0], types.field(spec.others[0]).type
            return [Chosen((argument, type_), by, largest=function == "max_by", in_order=in_order)]
        case "bit_and" | "bit_or" | "bit_xor":
            return [Bits(argument, type_, function)]
        case "sum" | "avg" | "try_sum" | "try_avg":
            return _sums(spec, argument, type_)
    if function in WAYS or function == "mode":
        return [OrderStatistics(argument, type_, high=function == "mode" and _from_top(spec))]
    if function in _PAIRED:
        return [Moments((argument, *spec.others), PAIRS)]
    if function in _VARIANCES or function in _SHAPES:
        return [Moments((argument,), SHAPE if function in _SHAPES else VARIANCE)]
    raise NotImplementedError(f"{function} of {type_}")


def _is_listed(spec: AggregateSpec) -> bool:
    """Whether it is computed from the content of windows; of the first so many by another column too."""
    return spec.function in _CONTENTS or (spec.function in ("min_by", "max_by") and bool(spec.parameters))


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
    needed = [names[1]] if spec.function in ("min_by", "max_by") else names[:1]
    if spec.function == "percentile_of_counts":
        needed = names
    takes_nulls = spec.function in ("approx_top_k", "user") or (
        spec.function == "collect_list" and not spec.ignore_nulls
    )
    return Recomputed(
        _label(spec),
        {name: types.field(name).type for name in names},
        ContentUda(spec.parameters[0]) if spec.function == "user" else summary(spec),
        needed=[] if takes_nulls else needed,
        condition=spec.condition,
        distinct=spec.distinct or spec.function == "collect_set",
        in_order=in_order,
    )


def _distinct(spec: AggregateSpec, types: pa.Schema, *, in_order: bool) -> Recomputed:
    """Any aggregate of distinct values, or of distinct pairs of them, of which neither may be missing."""
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
    """Tells contents apart; the order of arguments and all parameters matter."""
    parameters = [spec.parameters[0].digest] if spec.function == "user" else map(repr, spec.parameters)
    shown = [*spec.arguments, *parameters, *map(repr, spec.order)]
    kind = f"{'distinct ' if spec.distinct else ''}{'nonnull ' if spec.ignore_nulls else ''}"
    return f"{kind}{spec.function}({', '.join(shown)})"
