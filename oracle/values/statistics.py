"""Variances, covariances and regressions: from exact sums of powers, rounded once.

A division by a sum of squares that is zero gives NULL, as in Spark; a NaN or an infinity among the values
gives NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from oracle.values.values import exact_sum, nearest_double

Statistic = Callable[[Sequence[float]], float | None]
PairStatistic = Callable[[Sequence[tuple[float, float]]], float | None]


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction()) / len(values)


def _moment(values: Sequence[float], power: int) -> Fraction:
    """Return the sum of the powers of the differences from the mean."""
    exact = [Fraction(value) for value in values]
    mean = _mean(exact)
    return sum(((value - mean) ** power for value in exact), Fraction())


def _product(pairs: Sequence[tuple[float, float]], i: int, j: int) -> Fraction:
    """Return the sum of the products of the differences from the means."""
    a, b = ([Fraction(pair[k]) for pair in pairs] for k in (i, j))
    mean_a, mean_b = _mean(a), _mean(b)
    return sum(((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)), Fraction())


def _root(square: Fraction, sign: Fraction) -> float:
    return math.copysign(math.sqrt(nearest_double(square)), sign)


# ---------------------------------------------------------------- of one column


def variance(spare: int, *, root: bool = False) -> Statistic:
    """Return VAR_POP or VAR_SAMP, or the standard deviation; ``spare`` is subtracted from the count."""

    def of(values: Sequence[float]) -> float | None:
        if len(values) <= spare:
            return None
        if not all(map(math.isfinite, values)):
            return math.nan
        square = _moment(values, 2) / (len(values) - spare)
        return _root(square, Fraction(1)) if root else nearest_double(square)

    return of


def skewness(values: Sequence[float]) -> float | None:
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    second, third = _moment(values, 2), _moment(values, 3)
    return _root(len(values) * third**2 / second**3, third) if second else None


def kurtosis(values: Sequence[float]) -> float | None:
    """Return the excess kurtosis."""
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    second = _moment(values, 2)
    return nearest_double(len(values) * _moment(values, 4) / second**2 - 3) if second else None


# ---------------------------------------------------------------- of two columns


def covariance(spare: int) -> PairStatistic:
    def of(pairs: Sequence[tuple[float, float]]) -> float | None:
        if len(pairs) <= spare:
            return None
        if not _finite(pairs, 0, 1):
            return math.nan
        return nearest_double(_product(pairs, 0, 1) / (len(pairs) - spare))

    return of


def correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 2:
        return None
    if not _finite(pairs, 0, 1):
        return math.nan
    product, squares = _product(pairs, 0, 1), _product(pairs, 0, 0) * _product(pairs, 1, 1)
    return _root(product**2 / squares, product) if squares else None


def regression(part: str) -> PairStatistic:
    """Return REGR_SLOPE or the like; the first column is the dependent one, y, and the second is x."""
    if part in _SUMS:
        return _SUMS[part]

    def of(pairs: Sequence[tuple[float, float]]) -> float | None:
        if not pairs or (_finite(pairs, 1) and not _product(pairs, 1, 1)):
            return None
        if part == "r2" and _finite(pairs, 0) and not _product(pairs, 0, 0):
            return 1.0
        if not _finite(pairs, 0, 1):
            return math.nan
        syy, sxy, sxx = _product(pairs, 0, 0), _product(pairs, 0, 1), _product(pairs, 1, 1)
        y, x = (_mean([Fraction(pair[k]) for pair in pairs]) for k in (0, 1))
        match part:
            case "slope":
                return nearest_double(sxy / sxx)
            case "intercept":
                return nearest_double(y - sxy / sxx * x)
            case _:
                return nearest_double(sxy**2 / (sxx * syy))

    return of


def _sum_of_products(i: int, j: int) -> PairStatistic:
    def of(pairs: Sequence[tuple[float, float]]) -> float | None:
        if not pairs:
            return None
        return nearest_double(_product(pairs, i, j)) if _finite(pairs, i, j) else math.nan

    return of


def _average(i: int) -> PairStatistic:
    return lambda pairs: exact_sum(pair[i] for pair in pairs) / len(pairs) if pairs else None


_SUMS = {
    "avgx": _average(1),
    "avgy": _average(0),
    "sxx": _sum_of_products(1, 1),
    "syy": _sum_of_products(0, 0),
    "sxy": _sum_of_products(0, 1),
}


def _finite(pairs: Sequence[tuple[float, float]], *columns: int) -> bool:
    return all(math.isfinite(pair[k]) for pair in pairs for k in columns)
