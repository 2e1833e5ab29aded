"""Aggregates by definition, in plain Python: what kernels are compared with."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from millstream.kernels.specs import AggregateSpec, OverSpec

DIGITS = Context(prec=100, rounding=ROUND_HALF_UP)


class DoesNotFitError(Exception):
    pass


def aggregate(spec: AggregateSpec, content: list[Any]) -> Any:
    """Aggregate the arguments of a window's tuples, in order."""
    if spec.argument is None:
        return len(content)
    values = [value for value in content if value is not None]
    match spec.function:
        case "count":
            return len(values)
        case "first" | "last":
            kept = values if spec.ignore_nulls else content
            return kept[0 if spec.function == "first" else -1] if kept else None
        case "min":
            return functools.reduce(lambda a, b: b if less(b, a) else a, values) if values else None
        case "max":
            return functools.reduce(lambda a, b: b if less(a, b) else a, values) if values else None
    if not values:
        return None
    if isinstance(values[0], float):
        total = double_sum(values)
        return total if spec.function == "sum" else mean(values)
    total = sum(map(Fraction, values))
    if spec.function == "avg":
        total /= len(values)
    return converted(total, spec.type)


def less(a: Any, b: Any) -> bool:
    if isinstance(a, float) and (math.isnan(a) or math.isnan(b)):
        return not math.isnan(a) and math.isnan(b)
    return bool(a < b)


def double_sum(values: list[float]) -> float:
    special = [value for value in values if not math.isfinite(value)]
    return sum(special) if special else as_double(sum(map(Fraction, values)))


def mean(values: list[float]) -> float:
    special = [value for value in values if not math.isfinite(value)]
    return sum(special) if special else as_double(sum(map(Fraction, values)) / len(values))


def as_double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def converted(exact: Fraction, type_: pa.DataType) -> Any:
    if pa.types.is_floating(type_):
        return as_double(exact)
    if pa.types.is_decimal(type_):
        scaled = exact * 10**type_.scale
        whole = int(abs(scaled) + Fraction(1, 2)) * (1 if scaled >= 0 else -1)
        if abs(whole) >= 10**type_.precision:
            raise DoesNotFitError
        return Decimal(whole).scaleb(-type_.scale, DIGITS)
    if not -(2**63) <= exact < 2**63:
        raise DoesNotFitError
    return int(exact)


def over(rows: list[dict[str, Any]], call: OverSpec, wanted: Iterable[int] | None = None) -> list[Any]:
    """A result for each tuple, or for some by their place, of tuples in order; `key` names the partition."""
    results = []
    for i in range(len(rows)) if wanted is None else wanted:
        row = rows[i]
        content = [other for other in rows[: i + 1] if other.get("key") == row.get("key")]
        if call.rows is not None:
            content = content[-call.rows - 1 :]
        if call.range is not None:
            content = [other for other in content if other["time"] >= row["time"] - call.range]
        argument = call.aggregate.argument or "key"
        results.append(aggregate(call.aggregate, [other[argument] for other in content]))
    return results


def close(actual: Any, exact: Any, magnitude: float = 0.0) -> bool:
    """Equal, or doubles as near as twice their precision allows for addends of some magnitude."""
    if isinstance(actual, list) and isinstance(exact, list):
        return len(actual) == len(exact) and all(
            close(one, other, magnitude) for one, other in zip(actual, exact, strict=True)
        )
    if not isinstance(actual, float) or not isinstance(exact, float):
        return type(actual) is type(exact) and bool(actual == exact)
    if math.isnan(actual) or math.isnan(exact):
        return math.isnan(actual) and math.isnan(exact)
    return actual == exact or math.isclose(actual, exact, rel_tol=1e-12, abs_tol=magnitude * 1e-27)
