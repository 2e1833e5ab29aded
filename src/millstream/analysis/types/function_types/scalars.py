"""Result types of functions of numbers, strings and conditions."""

from __future__ import annotations

from millstream.analysis.types import coercion
from millstream.analysis.types.arithmetic_types import arithmetic
from millstream.analysis.types.coercion import MAX_PRECISION, as_decimal
from millstream.analysis.types.function_types.function_call import Call, Rule, beside, literal_integer
from millstream.types import BIGINT, BINARY, BOOLEAN, INT, STRING, UNKNOWN, Kind, Type, decimal


def _arithmetic(operator: str) -> Rule:
    def rule(call: Call) -> Type:
        left, right = (
            beside(other, type_, argument)
            for type_, other, argument in zip(call.types, call.types[::-1], call.arguments, strict=True)
        )
        result = arithmetic(operator, left, right)
        if result is None:
            call.fail(f"'{call.name}' cannot be applied to {left} and {right}")
        return result

    return rule


def _round(call: Call) -> Type:
    type_ = call.types[0]
    if type_.kind is not Kind.DECIMAL:
        return type_
    digits = literal_integer(call.arguments[1]) if len(call.arguments) > 1 else 0
    return UNKNOWN if digits is None else _rounded(type_, digits)


def _ceil(call: Call) -> Type:
    type_ = call.types[0]
    if not type_.is_known:
        return UNKNOWN
    if len(call.arguments) == 1:
        return _rounded(type_, 0) if type_.kind is Kind.DECIMAL else BIGINT
    digits = literal_integer(call.arguments[1])
    floating = {Kind.FLOAT: decimal(14, 7), Kind.DOUBLE: decimal(30, 15)}
    as_decimals = floating.get(type_.kind, as_decimal(type_))
    if digits is None or as_decimals.kind is not Kind.DECIMAL:
        return UNKNOWN
    return _rounded(as_decimals, digits)


def _rounded(type_: Type, digits: int) -> Type:
    # Rounding may carry into one more digit before the point.
    whole = type_.precision - type_.scale + 1
    if digits < 0:
        return decimal(min(max(whole, 1 - digits), MAX_PRECISION), 0)
    scale = min(type_.scale, digits)
    return decimal(min(whole + scale, MAX_PRECISION), scale)


def _nanvl(call: Call) -> Type:
    return call.common(call.types)


def _nullif(call: Call) -> Type:
    _equal(call)
    return call.types[0]


def _equal(call: Call) -> Type:
    left, right = call.types
    if not coercion.can_compare(left, right):
        call.fail(f"cannot compare {left} with {right}")
    return BOOLEAN


def _zeroifnull(call: Call) -> Type:
    return call.common([call.types[0], INT])


def _nullifzero(call: Call) -> Type:
    if not coercion.can_compare(call.types[0], INT):
        call.fail(f"cannot compare {call.types[0]} with int")
    return call.types[0]


def _cast(call: Call) -> Type:
    wanted = decimal() if call.name == "decimal" else Type(Kind(call.name))
    if not coercion.can_cast(call.types[0], wanted):
        call.fail(f"cannot convert {call.types[0]} to {wanted}")
    return wanted


def concatenated(call: Call) -> Type:
    """Type ``concat(...)`` and ``||``: arrays with arrays, binary with binary, all else as strings."""
    types = call.types
    if not all(type_.is_known for type_ in types):
        return UNKNOWN
    if any(type_.kind is Kind.ARRAY for type_ in types):
        if not all(type_.kind is Kind.ARRAY for type_ in types):
            call.fail(f"cannot concatenate {' and '.join(dict.fromkeys(map(str, types)))}")
        return call.common(types)
    for type_ in types:
        if not coercion.converts(type_, STRING):
            call.fail(f"cannot concatenate values of type {type_}")
    return BINARY if types and all(type_ == BINARY for type_ in types) else STRING


RULES: dict[str, Rule] = {
    "add": _arithmetic("+"),
    "subtract": _arithmetic("-"),
    "multiply": _arithmetic("*"),
    "divide": _arithmetic("/"),
    "mod": _arithmetic("%"),
    "div": _arithmetic("div"),
    "round": _round,
    "ceil": _ceil,
    "nanvl": _nanvl,
    "nullif": _nullif,
    "equal": _equal,
    "zeroifnull": _zeroifnull,
    "nullifzero": _nullifzero,
    "cast": _cast,
    "concat": concatenated,
}
