"""Result types of aggregates and window functions."""

from __future__ import annotations

from millstream.analysis.types.coercion import MAX_PRECISION, converts
from millstream.analysis.types.function_types.function_call import Call, Rule
from millstream.types import BIGINT, DOUBLE, UNKNOWN, Field, Kind, Type, array, decimal, struct


def _sum(call: Call) -> Type:
    type_ = call.types[0]
    if type_.is_integral:
        return BIGINT
    if type_.kind is Kind.DECIMAL:
        return decimal(min(type_.precision + 10, MAX_PRECISION), type_.scale)
    return type_ if type_.is_interval or not type_.is_known else DOUBLE


def _avg(call: Call) -> Type:
    type_ = call.types[0]
    if type_.kind is Kind.DECIMAL:
        return decimal(min(type_.precision + 4, MAX_PRECISION), min(type_.scale + 4, MAX_PRECISION))
    return Type(type_.kind) if type_.is_interval or not type_.is_known else DOUBLE


def _percentile(call: Call) -> Type:
    value = call.types[0]
    one = Type(value.kind) if value.is_interval or not value.is_known else DOUBLE
    return _per_percentage(call, one)


def _approx_percentile(call: Call) -> Type:
    return _per_percentage(call, call.types[0])


def _per_percentage(call: Call, one: Type) -> Type:
    if len(call.types) < 2:
        return one
    percentage = call.types[1]
    if not percentage.is_known:
        return UNKNOWN
    return array(one) if percentage.kind is Kind.ARRAY else one


def _by(call: Call) -> Type:
    return array(call.types[0]) if len(call.types) == 3 else call.types[0]


def _collect_set(call: Call) -> Type:
    if call.types[0].kind is Kind.MAP:
        call.fail("a set cannot have maps in it")
    return array(call.types[0])


def _histogram(call: Call) -> Type:
    return array(struct(Field("x", call.types[0]), Field("y", DOUBLE)))


def _top_k(call: Call) -> Type:
    return array(struct(Field("item", call.types[0]), Field("count", BIGINT)))


def _lag(call: Call) -> Type:
    type_ = call.types[0]
    if len(call.types) == 3 and not converts(call.types[2], type_):
        call.fail(f"the default of '{call.name}' must be {type_}, but this is {call.types[2]}")
    return type_


RULES: dict[str, Rule] = {
    "sum": _sum,
    "avg": _avg,
    "percentile": _percentile,
    "approx_percentile": _approx_percentile,
    "by": _by,
    "array_of": lambda call: array(call.types[0]),
    "collect_set": _collect_set,
    "histogram": _histogram,
    "top_k": _top_k,
    "lag": _lag,
}
