"""Functions that bodies of aggregates may call, and the types in which they want their arguments."""

from __future__ import annotations

from collections.abc import Callable

from millstream.analysis.types.implicit_casts import converted
from millstream.ir.typed_nodes import Call, Case, Constant, Expr
from millstream.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Type

UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""Units of time in microseconds."""

Rule = Callable[[str, tuple[Expr, ...], Type], Expr]


def _in_result_type(name: str, arguments: tuple[Expr, ...], result: Type) -> Expr:
    return Call(name, tuple(converted(argument, result) for argument in arguments), result)


def _of(*wanted: Type) -> Rule:
    def rule(name: str, arguments: tuple[Expr, ...], result: Type) -> Expr:
        types = [*wanted, *(wanted[-1] for _ in arguments[len(wanted) :])] if wanted else []
        return Call(name, tuple(converted(a, t) for a, t in zip(arguments, types, strict=False)), result)

    return rule


def _as_they_are(name: str, arguments: tuple[Expr, ...], result: Type) -> Expr:
    return Call(name, arguments, result)


def _if(name: str, arguments: tuple[Expr, ...], result: Type) -> Expr:
    condition, yes, no = arguments
    return Case(((converted(condition, BOOLEAN), converted(yes, result)),), converted(no, result), result)


def _nvl2(name: str, arguments: tuple[Expr, ...], result: Type) -> Expr:
    value, yes, no = arguments
    return Case(((Call("isnull", (value,), BOOLEAN), converted(no, result)),), converted(yes, result), result)


def _isnotnull(name: str, arguments: tuple[Expr, ...], result: Type) -> Expr:
    return Call("not", (Call("isnull", arguments, BOOLEAN),), BOOLEAN)


def _nullif(name: str, arguments: tuple[Expr, ...], result: Type) -> Expr:
    value, other = arguments
    equal = Call("=", (value, converted(other, value.type)), BOOLEAN)
    return Case(((equal, Constant(None, result)),), converted(value, result), result)


def _rounding(name: str, arguments: tuple[Expr, ...], result: Type) -> Expr:
    digits = arguments[1] if len(arguments) > 1 else Constant(0, INT)
    return Call(name, (arguments[0], digits), result)


def _whole(name: str, arguments: tuple[Expr, ...], result: Type) -> Expr:
    """Make floor and ceil, which leave integers alone."""
    value = arguments[0]
    name = "ceil" if name == "ceiling" else name
    return converted(value, result) if value.type.is_integral else Call(name, (value,), result)


def _other_name(own: str, rule: Rule) -> Rule:
    return lambda name, arguments, result: rule(own, arguments, result)


_ON_DOUBLES = (
    *("sqrt", "exp", "ln", "log10", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh"),
    *("cosh", "tanh", "radians", "degrees", "cbrt", "log1p", "expm1", "signum", "isnan"),
)
_ON_STRINGS = (
    *("upper", "lower", "length", "char_length", "trim", "ltrim", "rtrim", "reverse", "initcap", "concat"),
    *("replace", "instr", "startswith", "endswith", "contains", "like", "rlike", "ascii"),
)
_PARTS_OF_TIME = ("year", "month", "day", "hour", "minute", "second", "dayofweek", "dayofyear", "quarter")

CALLS: dict[str, Rule] = {
    **dict.fromkeys(("coalesce", "greatest", "least", "abs"), _in_result_type),
    **dict.fromkeys(("ifnull", "nvl"), _other_name("coalesce", _in_result_type)),
    "if": _if,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "isnull": _as_they_are,
    "isnotnull": _isnotnull,
    **dict.fromkeys(_ON_DOUBLES, _of(DOUBLE)),
    "sign": _other_name("signum", _of(DOUBLE)),
    "log": lambda name, arguments, result: _of(DOUBLE)(
        "ln" if len(arguments) == 1 else "log", arguments, result
    ),
    **dict.fromkeys(("pow", "power"), _other_name("pow", _of(DOUBLE))),
    "round": _rounding,
    **dict.fromkeys(("floor", "ceil", "ceiling"), _whole),
    "pmod": _in_result_type,
    **dict.fromkeys(_ON_STRINGS, _of(STRING)),
    **dict.fromkeys(("substring", "substr"), _other_name("substring", _of(STRING, INT))),
    "split_part": _of(STRING, STRING, INT),
    "left": _of(STRING, INT),
    "right": _of(STRING, INT),
    "repeat": _of(STRING, INT),
    **dict.fromkeys(("lpad", "rpad"), _of(STRING, INT, STRING)),
    "position": lambda name, arguments, result: Call(
        "instr", (converted(arguments[1], STRING), converted(arguments[0], STRING)), result
    ),
    **dict.fromkeys(("hash", "xxhash64"), _as_they_are),
    **dict.fromkeys(_PARTS_OF_TIME, _as_they_are),
    **dict.fromkeys(("dayofmonth",), _other_name("day", _as_they_are)),
    **dict.fromkeys(("unix_micros", "unix_millis", "unix_seconds"), _of(TIMESTAMP)),
    **dict.fromkeys(("timestamp_micros", "timestamp_millis", "timestamp_seconds"), _of(BIGINT)),
}
"""Rules that make the typed call of each function."""
