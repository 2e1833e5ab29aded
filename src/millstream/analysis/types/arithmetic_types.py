"""The types of ``+ - * / % div`` and of the bitwise operators, exactly as Spark derives them (ANSI mode).

Every function answers None where Spark refuses the types. UNKNOWN gives UNKNOWN.
"""

from __future__ import annotations

from millstream.analysis.types.coercion import MAX_PRECISION, as_decimal, common_type
from millstream.types import (
    BIGINT,
    DATE,
    DAY_INTERVAL,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Kind,
    Type,
    decimal,
)

_MIN_SCALE = 6
"""Digits after the point that Spark keeps at least when a result is cut to 38 digits."""


def arithmetic(operator: str, left: Type, right: Type) -> Type | None:
    """Return the type of a binary arithmetic operation.

    >>> print(arithmetic("+", INT, decimal(10, 2)), arithmetic("/", INT, INT))
    decimal(13,2) double
    >>> arithmetic("+", TIMESTAMP, INT)
    """
    if not (left.is_known and right.is_known):
        return UNKNOWN
    match operator:
        case "+":
            with_time = _add_time(left, right)
        case "-":
            with_time = _subtract_time(left, right)
        case "*":
            with_time = _scale_interval(left, right) or _scale_interval(right, left)
        case "/":
            with_time = _scale_interval(left, right)
        case "div":
            with_time = _count_intervals(left, right)
        case _:
            with_time = None
    return with_time or _on_numbers(operator, left, right)


def bitwise(left: Type, right: Type) -> Type | None:
    """Return the type of ``& | ^``."""
    if left == right == NULL:
        return INT
    result = _on_numbers("%", left, right)
    return result if result is None or result.is_integral or not result.is_known else None


# ---------------------------------------------------------------- numbers


def _on_numbers(operator: str, left: Type, right: Type) -> Type | None:
    types = left, right
    if not (left.is_known and right.is_known):
        return UNKNOWN
    if not all(type_.is_numeric or type_.kind in (Kind.STRING, Kind.NULL) for type_ in types):
        return None
    if not any(type_.is_numeric for type_ in types):
        # A string needs a number beside it to know what to become.
        return (BIGINT if operator == "div" else DOUBLE) if left == right == NULL else None
    if operator == "div":
        common = common_type(left, right)
        exact = common is not None and (common.is_integral or common.kind is Kind.DECIMAL)
        return BIGINT if exact else None
    if Kind.DECIMAL in (left.kind, right.kind) and not _becomes_double(operator, left, right):
        return _decimal_result(operator, _meeting(left, right), _meeting(right, left))
    if operator == "/":
        return DOUBLE
    return common_type(left, right)


def _becomes_double(operator: str, left: Type, right: Type) -> bool:
    inexact = any(type_.kind in (Kind.FLOAT, Kind.DOUBLE, Kind.STRING) for type_ in (left, right))
    return inexact or (operator == "/" and left == NULL)


def _meeting(type_: Type, other: Type) -> Type:
    return as_decimal(other if type_ == NULL else type_)


def _decimal_result(operator: str, a: Type, b: Type) -> Type:
    whole_a, whole_b = a.precision - a.scale, b.precision - b.scale
    scale = max(a.scale, b.scale)
    match operator:
        case "+" | "-":
            whole = max(whole_a, whole_b) + 1
        case "*":
            scale = a.scale + b.scale
            whole = a.precision + b.precision + 1 - scale
        case "/":
            scale = max(_MIN_SCALE, a.scale + b.precision + 1)
            whole = whole_a + b.scale
        case _:
            whole = min(whole_a, whole_b)
    if whole + scale <= MAX_PRECISION:
        return decimal(whole + scale, scale)
    # Digits before the point go first; of those after it, six are worth more than the rest.
    return decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _MIN_SCALE)))


# ---------------------------------------------------------------- dates, timestamps, intervals


def _add_time(left: Type, right: Type) -> Type | None:
    if left.is_time and right.is_time:
        return None
    return _moved(left, right) or _moved(right, left) or _same_interval(left, right)


def _subtract_time(left: Type, right: Type) -> Type | None:
    types = left, right
    if any(type_.is_time for type_ in types) and all(
        type_.is_time or type_.kind in (Kind.STRING, Kind.NULL) for type_ in types
    ):
        days = all(type_ in (DATE, NULL, STRING) for type_ in types)
        return DAY_INTERVAL if days else DAY_TIME_INTERVAL
    return _moved(left, right) or _same_interval(left, right)


def _moved(time: Type, by: Type) -> Type | None:
    """Return a point in time moved by a distance."""
    if time == STRING and by.kind is Kind.DAY_TIME_INTERVAL:
        return STRING  # Spark reads the string as a timestamp, and writes one again.
    if not time.is_time:
        return None
    if time != DATE:
        return time if by.is_interval or by == NULL else None
    if by.kind in (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.YEAR_MONTH_INTERVAL) or by.whole_days:
        return DATE
    return TIMESTAMP if by.is_interval or by == NULL else None


def _same_interval(left: Type, right: Type) -> Type | None:
    if not (left.is_interval or right.is_interval) or STRING in (left, right):
        return None
    return common_type(left, right)


def _scale_interval(interval: Type, factor: Type) -> Type | None:
    if not interval.is_interval or not (factor.is_numeric or factor in (STRING, NULL)):
        return None
    return Type(interval.kind)


def _count_intervals(left: Type, right: Type) -> Type | None:
    return BIGINT if _same_interval(left, right) else None
