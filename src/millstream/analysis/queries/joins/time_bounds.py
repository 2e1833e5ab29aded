"""Bounds of the distance between the timestamps of streams, as the conditions of a join state them.

``b.t BETWEEN a.t - INTERVAL 5 MINUTES AND a.t`` bounds ``b.t - a.t`` from both sides. Amounts are
microseconds for times and dates, and the numbers themselves for numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from millstream.analysis.types.quantities import quantity
from millstream.errors import AnalysisError
from millstream.quantity import MICROSECONDS, Distance, Duration
from millstream.types import Kind, Type


@dataclass(frozen=True)
class Placed:
    """A column as the timestamp of a stream and a distance from it."""

    stream: str
    distance: Fraction
    type: Type


Place = Callable[[exp.Column], Placed | None]
"""Returns the place of a column; None if its distance from the timestamp varies."""


@dataclass(frozen=True)
class Sum:
    """Timestamps with whole factors, and an amount."""

    factors: Mapping[str, int]
    amount: Fraction = Fraction(0)
    is_number: bool = False
    is_date: bool = False

    def plus(self, other: Sum, sign: int) -> Sum:
        factors = dict(self.factors)
        for stream, factor in other.factors.items():
            factors[stream] = factors.get(stream, 0) + sign * factor
        amount = self._beside(other) + sign * other._beside(self)
        left = {stream: factor for stream, factor in factors.items() if factor}
        return Sum(left, amount, self.is_number and other.is_number, self.is_date or other.is_date)

    def _beside(self, other: Sum) -> Fraction:
        """Return the amount: a number beside a date counts days."""
        return self.amount * MICROSECONDS["DAY"] if self.is_number and other.is_date else self.amount


@dataclass(frozen=True)
class Limit:
    """A largest distance, which is reached itself unless it is ``strict``."""

    amount: Fraction
    strict: bool = False

    def __add__(self, other: Limit) -> Limit:
        return Limit(self.amount + other.amount, self.strict or other.strict)

    def __lt__(self, other: Limit) -> bool:
        return (self.amount, not self.strict) < (other.amount, not other.strict)


@dataclass(frozen=True)
class Bound:
    """A limit by which the timestamp of one stream can exceed that of another."""

    one: str
    other: str
    limit: Limit


_COMPARED = {exp.LTE: (False, False), exp.LT: (True, False), exp.GTE: (False, True), exp.GT: (True, True)}
"""Comparisons: whether they are strict, and whether the left side is the larger one."""


def bounds_in(condition: exp.Expr, place: Place) -> Iterator[Bound]:
    """Yield the bounds of distances between two timestamps that a condition states."""
    match condition.unnest():
        case exp.Where() as clause:
            yield from bounds_in(clause.this, place)
        case exp.And() as both:
            yield from bounds_in(both.left, place)
            yield from bounds_in(both.right, place)
        case exp.Between(this=value) as between:
            yield from _at_most(between.args["low"], value, place)
            yield from _at_most(value, between.args["high"], place)
        case exp.EQ() | exp.NullSafeEQ() as same:
            yield from _at_most(same.left, same.right, place)
            yield from _at_most(same.right, same.left, place)
        case exp.LTE() | exp.LT() | exp.GTE() | exp.GT() as compared:
            strict, is_larger = _COMPARED[type(compared)]
            sides = (compared.right, compared.left) if is_larger else (compared.left, compared.right)
            yield from _at_most(*sides, place, strict=strict)


def equal(one: Placed, other: Placed) -> Iterator[Bound]:
    """Yield the bounds of two columns that are equal."""
    between = other.distance - one.distance
    yield Bound(one.stream, other.stream, Limit(between))
    yield Bound(other.stream, one.stream, Limit(-between))


def _at_most(smaller: exp.Expr, larger: exp.Expr, place: Place, *, strict: bool = False) -> Iterator[Bound]:
    one, other = _sum(smaller, place), _sum(larger, place)
    if one is None or other is None:
        return
    rest = one.plus(other, -1)
    if sorted(rest.factors.values()) == [-1, 1]:
        added, taken = sorted(rest.factors, key=lambda stream: -rest.factors[stream])
        yield Bound(added, taken, Limit(-rest.amount, strict))


def _sum(node: exp.Expr, place: Place) -> Sum | None:
    """Return an expression as a sum, or None."""
    match node:
        case exp.Paren():
            return _sum(node.this, place)
        case exp.Column():
            placed = place(node)
            if placed is None:
                return None
            return Sum({placed.stream: 1}, placed.distance, is_date=placed.type.kind is Kind.DATE)
        case exp.Add() | exp.Sub():
            one, other = _sum(node.left, place), _sum(node.right, place)
            if one is None or other is None:
                return None
            return one.plus(other, 1 if isinstance(node, exp.Add) else -1)
        case exp.Literal(is_string=False) | exp.Neg() | exp.Interval():
            return _amount(node)
        case _:
            return None


def _amount(node: exp.Expr) -> Sum | None:
    try:
        match quantity(node):
            case Duration(microseconds, months=0):
                return Sum({}, Fraction(microseconds))
            case Distance(value):
                return Sum({}, Fraction(value), is_number=True)
    except AnalysisError:
        pass
    return None


@dataclass
class Distances:
    """The limits of distances between timestamps that follow from bounds."""

    limits: dict[tuple[str, str], Limit] = field(default_factory=dict)

    @staticmethod
    def of(bounds: Iterable[Bound]) -> Distances:
        found = Distances()
        for bound in bounds:
            found._take(bound.one, bound.other, bound.limit)
        streams = sorted({stream for pair in found.limits for stream in pair})
        for middle in streams:
            for one in streams:
                for other in streams:
                    first, second = found.limits.get((one, middle)), found.limits.get((middle, other))
                    if first is not None and second is not None and one != other:
                        found._take(one, other, first + second)
        return found

    def _take(self, one: str, other: str, limit: Limit) -> None:
        known = self.limits.get((one, other))
        if known is None or limit < known:
            self.limits[one, other] = limit

    def most(self, one: str, other: str) -> Limit | None:
        """Return the most by which the timestamp of one stream can exceed that of another."""
        return self.limits.get((one, other))
