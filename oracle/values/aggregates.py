"""Aggregates by definition: a function of all values of a window, recomputed each time.

Cases that Spark leaves open are settled here: of equal values `min_by` and `max_by` take the last in the
order of the stream, as Spark does with rows in order; `mode` takes the smallest; `collect_set` keeps values
in the order of first occurrence; `any_value` takes the first; approximations are exact.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.catalog.builtin_aggregates import Within, within
from millstream.ir.python_aggregate import EXPIRE, PythonBody
from millstream.types import BOOLEAN, DOUBLE, STRING, Kind, Type
from oracle.errors import NotInterpreted, Overflow
from oracle.python_aggregates import of_content
from oracle.relations import Record
from oracle.values import statistics
from oracle.values.casts import cast
from oracle.values.expressions import Function, compiled, holds
from oracle.values.quantiles import discrete, interpolated, most_frequent
from oracle.values.values import Value, exact_sum, fitted, fitted_decimal, order_key, same_key

Rows = list[tuple[Value, ...]]
"""The arguments of a call, for each tuple that counts."""
Compute = Callable[[Rows, AggregateCall], Value]


@dataclass(frozen=True)
class Aggregation:
    """A call, ready to be applied to the content of a window in stream order."""

    call: AggregateCall
    arguments: tuple[Function, ...]
    order: tuple[Function, ...]
    condition: Callable[[Sequence[Value]], bool] | None
    compute: Compute
    needed: Sequence[int]
    """The arguments that must not be NULL for a tuple to count."""

    def of(self, content: Sequence[Record]) -> Value:
        tuples = [record.values for record in content]
        if self.condition is not None:
            tuples = [values for values in tuples if self.condition(values)]
        if not self.arguments:
            return len(tuples)
        for key, sort in reversed([*zip(self.order, self.call.within, strict=True)]):
            known = [values for values in tuples if key(values) is not None]
            unknown = [values for values in tuples if key(values) is None]
            known.sort(key=lambda values, key=key: order_key(key(values)), reverse=sort.descending)  # type: ignore[misc]
            tuples = [*unknown, *known] if sort.nulls_first else [*known, *unknown]
        rows = [tuple(argument(values) for argument in self.arguments) for values in tuples]
        rows = [row for row in rows if all(row[i] is not None for i in self.needed)]
        if self.call.distinct:
            rows = _distinct(rows)
        return self.compute(rows, self.call)


def aggregation(call: AggregateCall, schema: Sequence[ColumnRef]) -> Aggregation:
    """Return a call over rows with these columns, or raise NotInterpreted with its name."""
    body = None if call.bodies is None else call.bodies.base or call.bodies.window
    if isinstance(body, PythonBody) and body.python.way != EXPIRE and len(body.returns) == 1:
        arguments = tuple(compiled(argument, schema) for argument in call.arguments)
        return Aggregation(call, arguments, (), None, partial(_in_python, body), ())
    if call.user is not None or call.name not in _FUNCTIONS:
        raise NotInterpreted(f"the aggregate '{call.name}'")
    if call.name in _OF_ONE_TUPLE and call.distinct:
        raise NotInterpreted(f"{call.name}(DISTINCT ...)")
    if not call.arguments and call.name != "count":
        raise NotInterpreted(f"'{call.name}' without an argument")
    condition = None if call.filter is None else holds(call.filter, schema)
    arguments = tuple(compiled(argument, schema) for argument in call.arguments)
    # The key of WITHIN GROUP is the first argument of percentiles, and the last of other aggregates.
    count = len(call.within)
    is_first = within(call.name) is Within.FIRST
    order = arguments[:count] if is_first else arguments[len(arguments) - count :]
    if not is_first:
        arguments = arguments[: len(arguments) - count]
    return Aggregation(call, arguments, order, condition, _FUNCTIONS[call.name], _needed(call))


def is_in_python(call: AggregateCall) -> bool:
    return call.bodies is not None and isinstance(call.bodies.base or call.bodies.window, PythonBody)


def _in_python(body: PythonBody, rows: Rows, call: AggregateCall) -> Value:
    types = [(a.type, p.type) for a, p in zip(call.arguments, body.parameters, strict=True)]
    content = [tuple(cast(v, *both) for v, both in zip(row, types, strict=True)) for row in rows]
    returned = of_content(body, content)
    if len(returned) != 1:
        raise NotInterpreted(f"'{call.name}', which returns {len(returned)} rows for a window")
    return returned[0]


def _needed(call: AggregateCall) -> Sequence[int]:
    if call.name in _OF_ONE_TUPLE:
        return [0] if call.ignore_nulls else []
    if call.name in ("min_by", "max_by"):
        return [1]
    # A separator may be NULL, and percentages and flags are equal for all tuples.
    return range(len(call.arguments)) if call.name in _OF_ALL_ARGUMENTS else [0]


def _distinct(rows: Rows) -> Rows:
    """Return one of each, in the order of first occurrence."""
    first: dict[Value, tuple[Value, ...]] = {}
    for row in rows:
        first.setdefault(same_key(row), row)
    return list(first.values())


def _type(call: AggregateCall, argument: int = 0) -> Type:
    return call.arguments[argument].type


def _doubles(rows: Rows, call: AggregateCall, argument: int = 0) -> list[float]:
    return [cast(row[argument], _type(call, argument), DOUBLE) for row in rows]


# ---------------------------------------------------------------- sums


def _count(rows: Rows, call: AggregateCall) -> Value:
    return len(rows)


def _count_if(rows: Rows, call: AggregateCall) -> Value:
    return sum(_booleans(rows, call))


def _sum(rows: Rows, call: AggregateCall) -> Value:
    if not rows:
        return None
    if call.type.kind is Kind.DOUBLE:
        return exact_sum(_doubles(rows, call))
    if call.type.kind is Kind.DECIMAL or call.type.is_integral:
        total = sum((Fraction(value) for value, *_ in rows), Fraction())
        exact = total if call.type.kind is Kind.DECIMAL else int(total)
        return fitted(exact, call.type, call.text)
    raise NotInterpreted(f"a sum of {_type(call)}")


def _avg(rows: Rows, call: AggregateCall) -> Value:
    if not rows:
        return None
    type_ = _type(call)
    if type_.is_integral:
        # Python divides integers of any size to the nearest double.
        return sum(value for value, *_ in rows) / len(rows)
    if type_.kind is Kind.DECIMAL:
        total = sum((Fraction(value) for value, *_ in rows), Fraction())
        return fitted_decimal(total / len(rows), call.type, call.text)
    if call.type.kind is Kind.DOUBLE:
        return exact_sum(_doubles(rows, call)) / len(rows)
    raise NotInterpreted(f"an average of {type_}")


def _tried(compute: Compute) -> Compute:
    """Return NULL where another aggregate fails."""

    def of(rows: Rows, call: AggregateCall) -> Value:
        try:
            return compute(rows, call)
        except Overflow:
            return None

    return of


# ---------------------------------------------------------------- values of one tuple


def _min(rows: Rows, call: AggregateCall) -> Value:
    return min((value for value, *_ in rows), key=order_key, default=None)


def _max(rows: Rows, call: AggregateCall) -> Value:
    return max((value for value, *_ in rows), key=order_key, default=None)


def _first(rows: Rows, call: AggregateCall) -> Value:
    return rows[0][0] if rows else None


def _last(rows: Rows, call: AggregateCall) -> Value:
    return rows[-1][0] if rows else None


def _by(extreme: Callable[..., Value]) -> Compute:
    def of(rows: Rows, call: AggregateCall) -> Value:
        if len(call.arguments) > 2:
            raise NotInterpreted(f"{call.name} with a number of values")
        best = extreme((order_key(by) for _, by in rows), default=None)
        return next((value for value, by in reversed(rows) if order_key(by) == best), None)

    return of


def _mode(rows: Rows, call: AggregateCall) -> Value:
    values = [value for value, *_ in rows]
    return most_frequent(values, descending=_descends(call)) if rows else None


# ---------------------------------------------------------------- truth values and bits


def _booleans(rows: Rows, call: AggregateCall) -> list[bool]:
    return [cast(value, _type(call), BOOLEAN) for value, *_ in rows]


def _every(rows: Rows, call: AggregateCall) -> Value:
    return all(_booleans(rows, call)) if rows else None


def _some(rows: Rows, call: AggregateCall) -> Value:
    return any(_booleans(rows, call)) if rows else None


def _bits(combine: Callable[[int, int], int]) -> Compute:
    return lambda rows, call: functools.reduce(combine, (value for value, *_ in rows)) if rows else None


# ---------------------------------------------------------------- statistics


def _statistic(compute: statistics.Statistic) -> Compute:
    return lambda rows, call: compute(_doubles(rows, call))


def _pairs(compute: statistics.PairStatistic) -> Compute:
    return lambda rows, call: compute(list(zip(_doubles(rows, call), _doubles(rows, call, 1), strict=True)))


def _percentile(rows: Rows, call: AggregateCall) -> Value:
    """``percentile(v, p [, frequency])``, ``median(v)``, ``percentile_cont(p) WITHIN GROUP (ORDER BY v)``."""
    if _type(call).is_interval:
        raise NotInterpreted(f"{call.name} of {_type(call)}")
    weights = [row[2] if len(row) > 2 else 1 for row in rows]
    values = [
        value for value, weight in zip(_doubles(rows, call), weights, strict=True) for _ in range(weight)
    ]
    if not values:
        return None
    # On values in descending order it is as far from the other end.
    return _per_percentage(rows, call, lambda p: interpolated(values, 1 - p if _descends(call) else p))


def _percentile_disc(rows: Rows, call: AggregateCall) -> Value:
    if _type(call).is_interval:
        raise NotInterpreted(f"{call.name} of {_type(call)}")
    descending = _descends(call)
    return _per_percentage(rows, call, lambda p: discrete(_doubles(rows, call), p, descending=descending))


def _approx_percentile(rows: Rows, call: AggregateCall) -> Value:
    return _per_percentage(rows, call, lambda p: discrete([value for value, *_ in rows], p))


def _per_percentage(rows: Rows, call: AggregateCall, compute: Callable[[float], Value]) -> Value:
    if not rows:
        return None
    given = rows[0][1] if len(rows[0]) > 1 else 0.5
    return [compute(float(p)) for p in given] if isinstance(given, list) else compute(float(given))


def _descends(call: AggregateCall) -> bool:
    return bool(call.within) and call.within[0].descending


# ---------------------------------------------------------------- collections


def _collect_list(rows: Rows, call: AggregateCall) -> Value:
    return [value for value, *_ in rows]


def _collect_set(rows: Rows, call: AggregateCall) -> Value:
    return [value for value, *_ in _distinct(rows)]


def _count_distinct(rows: Rows, call: AggregateCall) -> Value:
    return len({order_key(value) for value, *_ in rows})


def _listagg(rows: Rows, call: AggregateCall) -> Value:
    if not rows:
        return None
    if _type(call).kind is Kind.BINARY:
        raise NotInterpreted(f"{call.name} of {_type(call)}")
    separator = rows[0][1] if len(rows[0]) > 1 else None
    return (separator or "").join(cast(row[0], _type(call), STRING) for row in rows)


_OF_ONE_TUPLE = frozenset({"first", "first_value", "last", "last_value", "any_value"})
"""Aggregates that take NULLs as they come, and depend on the order."""
_REGRESSIONS = ("slope", "intercept", "r2", "sxx", "syy", "sxy", "avgx", "avgy")
_OF_ALL_ARGUMENTS = frozenset(
    {"count", "corr", "covar_pop", "covar_samp", "regr_count", *(f"regr_{part}" for part in _REGRESSIONS)}
)
"""Aggregates that leave out a tuple if any of their arguments is NULL."""

_FUNCTIONS: dict[str, Compute] = {
    "count": _count,
    "count_if": _count_if,
    "regr_count": _count,
    "approx_count_distinct": _count_distinct,
    "sum": _sum,
    "try_sum": _tried(_sum),
    **dict.fromkeys(("avg", "mean"), _avg),
    "try_avg": _tried(_avg),
    "min": _min,
    "max": _max,
    "min_by": _by(min),
    "max_by": _by(max),
    **dict.fromkeys(("first", "first_value", "any_value"), _first),
    **dict.fromkeys(("last", "last_value"), _last),
    "mode": _mode,
    **dict.fromkeys(("bool_and", "every"), _every),
    **dict.fromkeys(("bool_or", "some", "any"), _some),
    "bit_and": _bits(operator.and_),
    "bit_or": _bits(operator.or_),
    "bit_xor": _bits(operator.xor),
    **dict.fromkeys(("variance", "var_samp"), _statistic(statistics.variance(1))),
    "var_pop": _statistic(statistics.variance(0)),
    **dict.fromkeys(("stddev", "std", "stddev_samp"), _statistic(statistics.variance(1, root=True))),
    "stddev_pop": _statistic(statistics.variance(0, root=True)),
    "skewness": _statistic(statistics.skewness),
    "kurtosis": _statistic(statistics.kurtosis),
    "covar_samp": _pairs(statistics.covariance(1)),
    "covar_pop": _pairs(statistics.covariance(0)),
    "corr": _pairs(statistics.correlation),
    **{f"regr_{part}": _pairs(statistics.regression(part)) for part in _REGRESSIONS},
    **dict.fromkeys(("median", "percentile", "percentile_cont"), _percentile),
    "percentile_disc": _percentile_disc,
    **dict.fromkeys(("approx_percentile", "percentile_approx"), _approx_percentile),
    **dict.fromkeys(("collect_list", "array_agg"), _collect_list),
    "collect_set": _collect_set,
    **dict.fromkeys(("listagg", "string_agg"), _listagg),
}
