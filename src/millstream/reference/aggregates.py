"""Aggregates by their definitions: a function of all values of a window, computed anew each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from millstream.analysis.calls import AggregateCall
from millstream.analysis.expressions import ColumnRef
from millstream.reference.casts import cast
from millstream.reference.errors import NotInterpreted
from millstream.reference.expressions import Function, compiled, holds
from millstream.reference.relations import Record
from millstream.reference.values import (
    Value,
    exact_sum,
    fitted,
    fitted_decimal,
    order_key,
    same_key,
)
from millstream.types import DOUBLE, Kind, Type


@dataclass(frozen=True)
class Aggregation:
    """A call, ready to be applied to the content of a window, which comes in stream order."""

    call: AggregateCall
    arguments: tuple[Function, ...]
    condition: Callable[[Sequence[Value]], bool] | None
    compute: Callable[[list[Value], Type, AggregateCall], Value]
    ignores_nulls: bool

    def of(self, content: Sequence[Record]) -> Value:
        rows = [record.values for record in content]
        if self.condition is not None:
            rows = [row for row in rows if self.condition(row)]
        if not self.arguments:
            return len(rows)
        values = [tuple(argument(row) for argument in self.arguments) for row in rows]
        if self.ignores_nulls:
            values = [value for value in values if None not in value]
        if self.call.distinct:
            values = list({same_key(value): value for value in reversed(values)}.values())
        return self.compute([value[0] for value in values], self.call.arguments[0].type, self.call)


def aggregation(call: AggregateCall, schema: Sequence[ColumnRef]) -> Aggregation:
    """A call over rows with these columns, or NotInterpreted with its name."""
    if call.user is not None or call.name not in _FUNCTIONS:
        raise NotInterpreted(f"the aggregate '{call.name}'")
    condition = None if call.filter is None else holds(call.filter, schema)
    arguments = tuple(compiled(argument, schema) for argument in call.arguments)
    ignores_nulls = True
    if call.name in _IN_ORDER:
        if call.distinct:
            raise NotInterpreted(f"{call.name}(DISTINCT ...)")
        ignores_nulls = call.ignore_nulls
    if not arguments and call.name != "count":
        raise NotInterpreted(f"'{call.name}' without an argument")
    return Aggregation(call, arguments, condition, _FUNCTIONS[call.name], ignores_nulls)


def _count(values: list[Value], type_: Type, call: AggregateCall) -> Value:
    return len(values)


def _sum(values: list[Value], type_: Type, call: AggregateCall) -> Value:
    if not values:
        return None
    if call.type.kind is Kind.DOUBLE:
        return exact_sum(cast(value, type_, DOUBLE) for value in values)
    if call.type.kind is Kind.DECIMAL or call.type.is_integral:
        total = sum(map(Fraction, values), Fraction())
        exact = total if call.type.kind is Kind.DECIMAL else int(total)
        return fitted(exact, call.type, call.text)
    raise NotInterpreted(f"a sum of {type_}")


def _avg(values: list[Value], type_: Type, call: AggregateCall) -> Value:
    if not values:
        return None
    if type_.is_integral:
        # Python divides integers of any size to the nearest double.
        return sum(values) / len(values)
    if type_.kind is Kind.DECIMAL:
        return fitted_decimal(sum(map(Fraction, values), Fraction()) / len(values), call.type, call.text)
    if call.type.kind is Kind.DOUBLE:
        return exact_sum(cast(value, type_, DOUBLE) for value in values) / len(values)
    raise NotInterpreted(f"an average of {type_}")


def _min(values: list[Value], type_: Type, call: AggregateCall) -> Value:
    return min(values, key=order_key, default=None)


def _max(values: list[Value], type_: Type, call: AggregateCall) -> Value:
    return max(values, key=order_key, default=None)


def _first(values: list[Value], type_: Type, call: AggregateCall) -> Value:
    return values[0] if values else None


def _last(values: list[Value], type_: Type, call: AggregateCall) -> Value:
    return values[-1] if values else None


_FUNCTIONS: dict[str, Callable[[list[Value], Type, AggregateCall], Value]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "mean": _avg,
    "min": _min,
    "max": _max,
    "first": _first,
    "first_value": _first,
    "last": _last,
    "last_value": _last,
}
_IN_ORDER = frozenset({"first", "first_value", "last", "last_value"})
"""Aggregates that take NULLs as they come, and depend on the order."""
