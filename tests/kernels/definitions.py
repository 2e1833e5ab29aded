"""All aggregates by definition, from the whole tuples of a window: what kernels are compared with."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import cmp_to_key, reduce
from operator import and_, or_, xor
from typing import Any

import brute
import pyarrow as pa

from millstream.kernels.specs import AggregateSpec

Row = dict[str, Any]

OF_ONE = {
    "var_pop": lambda n, m: m(2) / n,
    "var_samp": lambda n, m: m(2) / (n - 1) if n > 1 else None,
    "regr_sxx": lambda n, m: m(2),
    "skewness": lambda n, m: root(n * m(3) ** 2 / m(2) ** 3) * sign(m(3)) if m(2) else None,
    "kurtosis": lambda n, m: n * m(4) / m(2) ** 2 - 3 if m(2) else None,
}
OF_PAIRS = {
    "covar_pop": lambda n, xx, yy, xy: xy / n,
    "covar_samp": lambda n, xx, yy, xy: xy / (n - 1) if n > 1 else None,
    "corr": lambda n, xx, yy, xy: root(xy**2 / (xx * yy)) * sign(xy) if xx and yy else None,
    "regr_sxy": lambda n, xx, yy, xy: xy,
    "regr_slope": lambda n, xx, yy, xy: xy / yy if yy else None,
    "regr_r2": lambda n, xx, yy, xy: (xy**2 / (xx * yy) if xx else Fraction(1)) if yy else None,
}
BITS = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}


def aggregate(spec: AggregateSpec, rows: list[Row]) -> Any:
    """The result over tuples in order."""
    if spec.condition is not None:
        rows = [row for row in rows if row[spec.condition]]
    if spec.distinct:
        rows = distinct(spec, rows)
    content = [row[spec.argument] for row in rows] if spec.argument else rows
    values = [value for value in content if value is not None]
    function = spec.function
    if function in OF_ONE or function.startswith("stddev"):
        return moments(function, values)
    if function in OF_PAIRS:
        return pairs(spec, rows)
    if function in BITS:
        return reduce(BITS[function], values) if values else None
    if function in ("min_by", "max_by"):
        return chosen(spec, rows)
    if function in ("percentile", "percentile_disc", "percentile_approx"):
        return percentiles(spec, in_order(values))
    match function:
        case "try_sum" | "try_avg":
            try:
                return brute.aggregate(plain(spec, function.removeprefix("try_")), content)
            except brute.DoesNotFitError:
                return None
        case "mode":
            return mode(spec, values)
        case "collect_list":
            return values if spec.ignore_nulls else content
        case "collect_set":
            return unique(values)
        case "listagg":
            return listagg(spec, rows)
    return brute.aggregate(plain(spec, function), content)


def plain(spec: AggregateSpec, function: str) -> AggregateSpec:
    return AggregateSpec(function, spec.argument, spec.result, spec.type, spec.ignore_nulls)  # type: ignore[arg-type]


def key(value: Any) -> Any:
    """Equal values have equal keys: all NaNs, and both zeros."""
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def unique(values: list[Any]) -> list[Any]:
    """The first of each, in the order in which they come."""
    first: dict[Any, Any] = {}
    for value in values:
        first.setdefault(key(value), value)
    return list(first.values())


def distinct(spec: AggregateSpec, rows: list[Row]) -> list[Row]:
    names = [name for name in (spec.argument, *spec.others) if name is not None]
    known = [row for row in rows if all(row[name] is not None for name in names)]
    first: dict[Any, Row] = {}
    for row in known:
        first.setdefault(tuple(key(row[name]) for name in names), row)
    return list(first.values())


def sign(value: Any) -> int:
    return (value > 0) - (value < 0)


def root(value: Fraction) -> Fraction:
    return Fraction(Decimal(value.numerator).sqrt(brute.DIGITS)) / Fraction(
        Decimal(value.denominator).sqrt(brute.DIGITS)
    )


def moments(function: str, values: list[float]) -> float | None:
    n = len(values)
    if not n or (n == 1 and function.endswith("samp")):
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / n
    name = function.replace("stddev", "var")
    result = OF_ONE[name](n, lambda power: sum(((x - mean) ** power for x in exact), Fraction()))
    if result is None:
        return None
    return float(root(result)) if function.startswith("stddev") else float(result)


def pairs(spec: AggregateSpec, rows: list[Row]) -> float | None:
    both = [(row[spec.argument], row[spec.others[0]]) for row in rows]  # type: ignore[index]
    both = [(x, y) for x, y in both if x is not None and y is not None]
    n = len(both)
    if not n or (n == 1 and spec.function in ("covar_samp", "corr")):
        return None
    ys = {y for _, y in both}
    if spec.function in ("regr_slope", "regr_r2") and len(ys) == 1 and math.isfinite(next(iter(ys))):
        return None
    if not all(math.isfinite(x) and math.isfinite(y) for x, y in both):
        return math.nan
    mean_x, mean_y = (sum(map(Fraction, side)) / n for side in zip(*both, strict=True))
    away = [(Fraction(x) - mean_x, Fraction(y) - mean_y) for x, y in both]
    sums = [sum((a * b for a, b in made), Fraction()) for made in (
        [(x, x) for x, _ in away], [(y, y) for _, y in away], away
    )]  # fmt: skip
    result = OF_PAIRS[spec.function](n, *sums)
    return None if result is None else float(result)


def in_order(values: list[Any]) -> list[Any]:
    return sorted(values, key=cmp_to_key(lambda a, b: -1 if brute.less(a, b) else int(brute.less(b, a))))


def chosen(spec: AggregateSpec, rows: list[Row]) -> Any:
    by = spec.others[0]
    known = [row for row in rows if row[by] is not None]
    sorted_ = sorted(
        known,
        key=cmp_to_key(
            lambda a, b: -1 if brute.less(a[by], b[by]) else int(brute.less(b[by], a[by])),
        ),
        reverse=spec.function == "max_by",
    )
    found = [row[spec.argument] for row in sorted_]  # type: ignore[index]
    if not spec.parameters:
        # Of equal ones the last, as Spark takes it from rows in order.
        best = [row for row in sorted_ if not brute.less(row[by], sorted_[0][by])]
        best = [row for row in best if not brute.less(sorted_[0][by], row[by])]
        return best[-1][spec.argument] if best else None  # type: ignore[index]
    return found[: spec.parameters[0]] or None


def percentiles(spec: AggregateSpec, values: list[Any]) -> Any:
    if not values:
        return None
    if spec.order and spec.order[0].descending:
        values.reverse()
    found = []
    for share in spec.parameters:
        if spec.function == "percentile":
            position = (len(values) - 1) * share
            low, high = values[math.floor(position)], values[math.ceil(position)]
            weight = position - math.floor(position)
            same = weight == 0 or low == high
            found.append(low if same else (1 - weight) * low + weight * high)
        else:
            found.append(values[max(math.ceil(share * len(values)), 1) - 1])
    return found if pa.types.is_list(spec.type) else found[0]


def mode(spec: AggregateSpec, values: list[Any]) -> Any:
    counts = Counter(map(key, values))
    best = [value for value in in_order(values) if counts[key(value)] == max(counts.values())]
    if not best:
        return None
    return best[-1] if spec.order and spec.order[0].descending else best[0]


def listagg(spec: AggregateSpec, rows: list[Row]) -> str | None:
    known = [row for row in rows if row[spec.argument] is not None]  # type: ignore[index]
    for name, order in reversed(list(zip(spec.others, spec.order, strict=True))):
        known.sort(key=lambda row: (0, 0) if row[name] is None else (1, row[name]), reverse=order.descending)
    words = [row[spec.argument] for row in known]  # type: ignore[index]
    return spec.parameters[0].join(words) if words else None


def close(actual: Any, exact: Any) -> bool:
    """Equal, or doubles that differ by less than formulas in doubles make them differ."""
    if isinstance(actual, list) and isinstance(exact, list):
        return len(actual) == len(exact) and all(map(close, actual, exact))
    if isinstance(actual, float) and isinstance(exact, float):
        if math.isnan(actual) or math.isnan(exact):
            return math.isnan(actual) and math.isnan(exact)
        return math.isclose(actual, exact, rel_tol=1e-9, abs_tol=1e-9)
    return type(actual) is type(exact) and bool(actual == exact)
