"""Comparisons of doubles and texts: whether some order of the values obeys all of them.

Doubles are compared as Spark does it: NaN equals itself and is greater than all others, so they have an order
like any. Arithmetic with them rounds, and where ``x > y`` holds, ``x + 1 > y + 1`` may not. But rounding
never turns an order around. So all that is used of ``x + c``, ``x * c`` and ``x / c`` (with positive factors)
is that they do not fall when x grows, and how they lie to each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from millstream.inference.linear_constraints import is_exact
from millstream.inference.three_valued_logic import Comparison
from millstream.ir.typed_nodes import Call, Constant, Expr
from millstream.types import Kind, Type

_MANY = 48
"""Values that are looked at; more are not understood."""


def is_ordered(type_: Type) -> bool:
    """Return True if only the order of values of a type is used."""
    return not is_exact(type_)


@dataclass(frozen=True)
class View:
    """A value as the result of a function with a constant, ``inner operator by``."""

    operator: str
    by: float
    inner: int


@dataclass
class _Known:
    """Numbered values, and the known order between them."""

    numbers: dict[Expr, int] = field(default_factory=dict)
    constants: dict[int, Constant] = field(default_factory=dict)
    views: list[set[View]] = field(default_factory=list)
    less: dict[tuple[int, int], bool] = field(default_factory=dict)
    """Pairs of which the first is at most the second, and whether it is surely less."""

    def number(self, expr: Expr) -> int:
        if expr not in self.numbers:
            self.numbers[expr] = number = len(self.numbers)
            self.views.append(set())
            self.less[number, number] = False
            if isinstance(expr, Constant):
                self._place(number, expr)
            elif (function := _function(expr)) is not None:
                operator, by, inner = function
                self.views[number].add(View(operator, by, self.number(inner)))
        return self.numbers[expr]

    def _place(self, number: int, constant: Constant) -> None:
        for other, known in self.constants.items():
            a, b = _key(constant), _key(known)
            if a <= b:
                self.at_most(number, other, strictly=a < b)
            if b <= a:
                self.at_most(other, number, strictly=b < a)
        self.constants[number] = constant

    def at_most(self, a: int, b: int, *, strictly: bool = False) -> bool:
        """Add a fact; return True if it is new."""
        known = self.less.get((a, b))
        if known is None or (strictly and not known):
            self.less[a, b] = strictly
            return True
        return False


def contradict(comparisons: Iterable[Comparison]) -> bool:
    """Return True if comparisons provably cannot hold together."""
    known = _Known()
    different: list[tuple[int, int]] = []
    doubles = False
    for comparison in comparisons:
        a, b = known.number(comparison.left), known.number(comparison.right)
        doubles |= comparison.left.type.kind is Kind.DOUBLE
        if comparison.operator == "<>":
            different.append((a, b))
        if comparison.operator in ("<", "<=", "="):
            known.at_most(a, b, strictly=comparison.operator == "<")
        if comparison.operator in (">", ">=", "="):
            known.at_most(b, a, strictly=comparison.operator == ">")
    if doubles:
        _add_results(known)
    if len(known.numbers) > _MANY:
        return False
    _close(known)
    if any(strictly for (a, b), strictly in known.less.items() if a == b):
        return True
    return any((a, b) in known.less and (b, a) in known.less for a, b in different)


def _key(constant: Constant) -> Any:
    """Return the sort key of a constant; texts are ordered by their bytes."""
    value = constant.value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return (True, 0.0) if isinstance(value, float) and math.isnan(value) else (False, value)


# ---------------------------------------------------------------- functions


def _function(expr: Expr) -> tuple[str, float, Expr] | None:
    """Return a double as a monotonic function of another one."""
    if expr.type.kind is not Kind.DOUBLE:
        return None
    match expr:
        case Call("+", (inner, Constant(by))) | Call("+", (Constant(by), inner)):
            operator = "+"
        case Call("-", (inner, Constant(by))) if by is not None:
            operator, by = "+", -by
        case Call("*", (inner, Constant(by))) | Call("*", (Constant(by), inner)):
            operator = "*"
        case Call("/", (inner, Constant(by))):
            operator = "/"
        case _:
            return None
    usable = isinstance(by, float) and math.isfinite(by) and (operator == "+" or by > 0)
    return (operator, by, inner) if usable and inner.type.kind is Kind.DOUBLE else None


def _result(operator: str, value: float, by: float) -> float:
    match operator:
        case "+":
            return value + by
        case "*":
            return value * by
        case _:
            return value / by


def _add_results(known: _Known) -> None:
    """Add the results of functions of constants; twice, for nested functions."""
    double = Type(Kind.DOUBLE)
    known.number(Constant(0.0, double))
    for _ in range(2):
        functions = {(view.operator, view.by) for views in known.views for view in views}
        for number, constant in list(known.constants.items()):
            for operator, by in functions:
                if len(known.numbers) > _MANY or not isinstance(constant.value, float):
                    return
                result = known.number(Constant(_result(operator, constant.value, by), double))
                known.views[result].add(View(operator, by, number))


def _close(known: _Known) -> None:
    """Add all facts that follow."""
    everybody = range(len(known.numbers))
    zero = known.numbers.get(Constant(0.0, Type(Kind.DOUBLE)))
    news = True
    while news:
        news = False
        for k in everybody:
            before = [(i, known.less[i, k]) for i in everybody if (i, k) in known.less]
            after = [(j, known.less[k, j]) for j in everybody if (k, j) in known.less]
            for i, one in before:
                for j, other in after:
                    news |= known.at_most(i, j, strictly=one or other)
        if zero is not None and not any(known.less[i, i] for i in everybody):
            news |= _grow_together(known, zero)


def _grow_together(known: _Known, zero: int) -> bool:
    news = False
    seen = [
        {*views, *(View(o, 0.0 if o == "+" else 1.0, i) for o in "+*/")}
        for i, views in enumerate(known.views)
    ]
    for a, views in enumerate(seen):
        for b, others in enumerate(seen):
            if (a, b) not in known.less and any(
                _is_at_most(one, other, known, zero) for one in views for other in others
            ):
                news |= known.at_most(a, b)
    return news


def _is_at_most(one: View, other: View, known: _Known, zero: int) -> bool:
    """Return True if one result is at most the other, by the known order of their arguments."""
    if one.operator != other.operator or (one.inner, other.inner) not in known.less:
        return False
    if one.by == other.by or (one.operator == "+" and one.by <= other.by):
        return True
    if one.operator == "+":
        return False
    # The larger factor gives a larger product for values >= 0, and a smaller one for values <= 0.
    grows = one.by < other.by if one.operator == "*" else one.by > other.by
    if grows:
        return (zero, one.inner) in known.less or (zero, other.inner) in known.less
    return (one.inner, zero) in known.less or (other.inner, zero) in known.less
