"""SQL's three-valued logic, in which None is unknown, and its comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from oracle.values.values import Value, order_key

Test = Callable[[Any, Any], bool]

COMPARISONS: dict[type[exp.Expr], Test] = {
    exp.EQ: lambda a, b: bool(a == b),
    exp.NEQ: lambda a, b: bool(a != b),
    exp.LT: lambda a, b: bool(a < b),
    exp.LTE: lambda a, b: bool(a <= b),
    exp.GT: lambda a, b: bool(a > b),
    exp.GTE: lambda a, b: bool(a >= b),
    exp.NullSafeEQ: lambda a, b: bool(a == b),
    exp.NullSafeNEQ: lambda a, b: bool(a != b),
}
"""Comparisons of values by their places in the order of their type."""


def negation(value: bool | None) -> bool | None:
    return None if value is None else not value


def both(a: bool | None, b: bool | None) -> bool | None:
    """AND.

    >>> both(None, False), both(None, True)
    (False, None)
    """
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def either(a: bool | None, b: bool | None) -> bool | None:
    """OR."""
    return negation(both(negation(a), negation(b)))


def compared(test: Test, a: Value, b: Value) -> bool | None:
    return None if a is None or b is None else test(order_key(a), order_key(b))


def equal(a: Value, b: Value) -> bool | None:
    return compared(COMPARISONS[exp.EQ], a, b)


def is_among(value: Value, elements: list[Value]) -> bool | None:
    """Evaluate IN: unknown if the value might equal an element that is NULL."""
    tests = [equal(value, element) for element in elements]
    return True if True in tests else None if None in tests else False
