"""Checked expressions, evaluated by Spark's rules: NULL, NaN, three-valued logic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from millstream.ir.typed_nodes import Call, Cast, Column, Constant, Expr

Tuple = Sequence[Any]


def value(expr: Expr, tuples: Sequence[Tuple]) -> Any:
    """``tuples[n]`` is the tuple n before the one that is asked."""
    match expr:
        case Constant(constant):
            return constant
        case Column(back, index):
            return tuples[back][index]
        case Cast(argument, type_):
            given = value(argument, tuples)
            return float(given) if given is not None and str(type_) == "double" else given
        case Call("and" | "or" as name, (a, b)):
            decisive = name == "or"
            sides = value(a, tuples), value(b, tuples)
            return decisive if decisive in sides else None if None in sides else not decisive
        case Call("not", (a,)):
            inner = value(a, tuples)
            return None if inner is None else not inner
        case Call("isnull", (a,)):
            return value(a, tuples) is None
        case Call("in", (a, *others)):
            found = [value(Call("=", (a, other), expr.type), tuples) for other in others]
            return True if True in found else None if None in found else False
        case Call("<=>", (a, b)):
            one, other = value(a, tuples), value(b, tuples)
            if one is None or other is None:
                return one is other
            return ordered(one) == ordered(other)
        case Call(name, arguments):
            given = [value(argument, tuples) for argument in arguments]
            return None if None in given else _FUNCTIONS[name](*given)
    raise AssertionError(expr)


def ordered(one: Any) -> Any:
    """NaN is greater than all others, and equals itself."""
    return (isinstance(one, float) and math.isnan(one), 0.0 if one != one else one)


def holds(conditions: Sequence[Expr], tuples: Sequence[Tuple]) -> bool:
    return all(value(condition, tuples) is True for condition in conditions)


def _divided(a: float, b: float) -> float:
    return a / b


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divided,
    "negative": lambda a: -a,
    "=": lambda a, b: ordered(a) == ordered(b),
    "<>": lambda a, b: ordered(a) != ordered(b),
    "<": lambda a, b: ordered(a) < ordered(b),
    "<=": lambda a, b: ordered(a) <= ordered(b),
    ">": lambda a, b: ordered(a) > ordered(b),
    ">=": lambda a, b: ordered(a) >= ordered(b),
}
