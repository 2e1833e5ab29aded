"""Comparisons of exact numbers: whether sums of columns, so many times each, can obey all of them.

Integers, decimals (in units of their last digit), dates, instants and intervals are whole numbers, and
arithmetic with them is exact or an error. Columns are eliminated one after the other, as Fourier and Motzkin
have shown, and bounds are rounded to whole numbers on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from millstream.inference.three_valued_logic import Comparison
from millstream.ir.typed_nodes import Call, Cast, Constant, Expr
from millstream.types import Kind, Type

_EXACT = frozenset(
    {
        *(Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DECIMAL),
        *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DAY_TIME_INTERVAL),
    }
)
_PLUS = frozenset({"+", "+time", "+days", "+intervals"})
_MINUS = frozenset({"-", "-time", "-days", "-intervals", "-times"})

_MANY = 400
"""Inequalities that are looked at; more are not understood."""

_SPLIT = 6
"""Numbers that differ (one is less, or the other) of which both cases are looked at."""


def is_exact(type_: Type) -> bool:
    """Return True if values of a type are whole numbers in some unit."""
    return type_.kind in _EXACT


@dataclass(frozen=True)
class Sum:
    """Columns, so many times each, and a number."""

    times: dict[Expr, Fraction]
    plus: Fraction

    def scaled(self, factor: Fraction) -> Sum:
        times = {column: amount * factor for column, amount in self.times.items() if factor}
        return Sum(times, self.plus * factor)

    def added(self, other: Sum) -> Sum:
        times = dict(self.times)
        for column, amount in other.times.items():
            times[column] = times.get(column, Fraction(0)) + amount
        return Sum({c: a for c, a in times.items() if a}, self.plus + other.plus)


def sum_of(expr: Expr) -> Sum:
    """Return an expression as a sum; an opaque part is a column of its own."""
    match expr:
        case Constant(value, type_) if value is not None:
            return Sum({}, Fraction(value) * _unit(type_))
        case Cast(argument, type_, False) if _is_exact_cast(argument.type, type_):
            return sum_of(argument)
        case Call("negative", (argument,)):
            return sum_of(argument).scaled(Fraction(-1))
        case Call(name, (a, b)) if name in _PLUS and _keeps_digits(expr):
            return sum_of(a).added(sum_of(b))
        case Call(name, (a, b)) if name in _MINUS and _keeps_digits(expr):
            return sum_of(a).added(sum_of(b).scaled(Fraction(-1)))
        case Call("*", (a, b)) if is_exact(a.type) and is_exact(b.type) and _keeps_digits(expr):
            left, right = sum_of(a), sum_of(b)
            if not left.times:
                return right.scaled(left.plus)
            if not right.times:
                return left.scaled(right.plus)
    return Sum({expr: _unit(expr.type)}, Fraction(0))


def _unit(type_: Type) -> Fraction:
    return Fraction(1, 10**type_.scale) if type_.kind is Kind.DECIMAL else Fraction(1)


def _is_exact_cast(given: Type, wanted: Type) -> bool:
    """Return True if a cast keeps the number or fails."""
    if given.is_integral:
        return wanted.is_integral or wanted.kind is Kind.DECIMAL
    return given.kind is Kind.DECIMAL and wanted.kind is Kind.DECIMAL and wanted.scale >= given.scale


def _keeps_digits(expr: Call) -> bool:
    """Return True if the result of arithmetic is not rounded: decimals can run out of digits."""
    if expr.type.kind is not Kind.DECIMAL:
        return all(argument.type.kind is not Kind.DECIMAL for argument in expr.arguments)
    scales = [argument.type.scale for argument in expr.arguments]
    return expr.type.scale >= (sum(scales) if expr.name == "*" else max(scales))


# ---------------------------------------------------------------- inequalities


@dataclass(frozen=True)
class AtMost:
    """A linear inequality: a weighted sum of columns is at most a bound."""

    times: tuple[tuple[Expr, int], ...]
    bound: int


def contradict(comparisons: Iterable[Comparison]) -> bool:
    """Return True if comparisons of exact numbers provably cannot hold together."""
    inequalities: list[AtMost] = []
    different: list[Sum] = []
    for comparison in comparisons:
        difference = sum_of(comparison.left).added(sum_of(comparison.right).scaled(Fraction(-1)))
        if comparison.operator == "<>":
            different.append(difference)
        else:
            inequalities += _inequalities(comparison.operator, difference)
    return _contradict(inequalities, different[:_SPLIT])


def _contradict(inequalities: list[AtMost], different: list[Sum]) -> bool:
    if not different:
        return _cannot_hold(inequalities)
    difference, *others = different
    return all(
        _contradict([*inequalities, *_inequalities(operator, difference)], others) for operator in ("<", ">")
    )


def _inequalities(operator: str, difference: Sum) -> list[AtMost]:
    """Return ``difference operator 0`` as inequalities."""
    made = []
    if operator in ("<", "<=", "="):
        made.append(_at_most(difference, strictly=operator == "<"))
    if operator in (">", ">=", "="):
        made.append(_at_most(difference.scaled(Fraction(-1)), strictly=operator == ">"))
    return made


def _at_most(difference: Sum, *, strictly: bool) -> AtMost:
    common = math.lcm(*(amount.denominator for amount in difference.times.values()))
    bound = -difference.plus * common
    whole = math.ceil(bound) - 1 if strictly else math.floor(bound)
    return _lowest({column: int(amount * common) for column, amount in difference.times.items()}, whole)


def _lowest(times: dict[Expr, int], bound: int) -> AtMost:
    """Return an inequality in lowest terms: for whole numbers 2x <= 5 is x <= 2."""
    divisor = math.gcd(*times.values()) or 1
    ordered = sorted(((c, a // divisor) for c, a in times.items() if a), key=lambda pair: repr(pair[0]))
    return AtMost(tuple(ordered), bound // divisor)


def _cannot_hold(inequalities: list[AtMost]) -> bool:
    tightest = _tightest(inequalities)
    while True:
        if any(not times and bound < 0 for times, bound in tightest.items()):
            return True
        columns = {column for times in tightest for column, _ in times}
        if not columns or len(tightest) > _MANY:
            return False
        # The one that makes the fewest new ones goes first.
        column = min(columns, key=lambda c: (_pairs(c, tightest), repr(c)))
        tightest = _eliminated(column, tightest)


def _tightest(inequalities: Iterable[AtMost]) -> dict[tuple[tuple[Expr, int], ...], int]:
    tightest: dict[tuple[tuple[Expr, int], ...], int] = {}
    for inequality in inequalities:
        tightest[inequality.times] = min(inequality.bound, tightest.get(inequality.times, inequality.bound))
    return tightest


def _pairs(column: Expr, inequalities: dict[tuple[tuple[Expr, int], ...], int]) -> int:
    amounts = [dict(times).get(column, 0) for times in inequalities]
    return sum(a > 0 for a in amounts) * sum(a < 0 for a in amounts)


def _eliminated(
    column: Expr, inequalities: dict[tuple[tuple[Expr, int], ...], int]
) -> dict[tuple[tuple[Expr, int], ...], int]:
    """Eliminate a column: combine each upper bound of it with each lower bound."""
    with_amount = [(dict(times), bound) for times, bound in inequalities.items()]
    kept = [_lowest(times, bound) for times, bound in with_amount if not times.get(column)]
    above = [(times, bound) for times, bound in with_amount if times.get(column, 0) > 0]
    below = [(times, bound) for times, bound in with_amount if times.get(column, 0) < 0]
    for a, a_bound in above:
        for b, b_bound in below:
            one, other = -b[column], a[column]
            times = {c: a.get(c, 0) * one + b.get(c, 0) * other for c in {*a, *b}}
            kept.append(_lowest(times, a_bound * one + b_bound * other))
    return _tightest(kept)
