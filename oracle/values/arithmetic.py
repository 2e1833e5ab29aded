"""``+ - * / % div``, minus and abs, with Spark's meaning in ANSI mode.

Analysis determines the type of a result, and a value that does not fit it is an Overflow.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from fractions import Fraction

from millstream.types import DATE, TIMESTAMP, Kind, Type
from oracle.errors import DivisionByZero, NotInterpreted, Overflow
from oracle.values.casts import cast
from oracle.values.points import month_of, months_later
from oracle.values.values import MICROSECOND, Months, Value, fitted, fitted_decimal, half_up, single

_MAX_SCALE = 38
_DAYS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT)


def compute(operator: str, left: Value, right: Value, types: tuple[Type, Type], result: Type) -> Value:
    """``left operator right`` for operands of these types; NULL if either is NULL.

    >>> from millstream.types import BIGINT, INT
    >>> compute("%", -7, 3, (INT, INT), INT), compute("div", -7, 2, (INT, INT), BIGINT)
    (-1, -3)
    """
    if left is None or right is None:
        return None
    if not result.is_known:
        raise NotInterpreted("a value of unknown type")
    if any(type_.kind is Kind.STRING for type_ in types):
        raise NotInterpreted(f"'{operator}' on a string")
    what = f"{left} {operator} {right}"
    try:
        if all(type_.is_numeric for type_ in types):
            return _numbers(operator, left, right, types, result, what)
        return _times(operator, left, right, types, result)
    except OverflowError:
        raise Overflow(f"{what} does not fit its type {result}") from None


def negated(value: Value, type_: Type) -> Value:
    if isinstance(value, Months):
        return Months(-value.count)
    return None if value is None else fitted(-value, type_, f"-({value})")


def absolute(value: Value, type_: Type) -> Value:
    if isinstance(value, Months):
        return Months(abs(value.count))
    return None if value is None else fitted(abs(value), type_, f"abs({value})")


# ---------------------------------------------------------------- numbers


def _numbers(
    operator: str, left: Value, right: Value, types: tuple[Type, Type], result: Type, what: str
) -> Value:
    if operator in ("/", "%", "div") and right == 0:
        raise DivisionByZero(f"{what}: division by zero")
    if result.kind in (Kind.DOUBLE, Kind.FLOAT):
        value = _doubles(operator, cast(left, types[0], result), cast(right, types[1], result))
        return single(value) if result.kind is Kind.FLOAT else value
    exact = _exact(operator, Fraction(left), Fraction(right))
    if result.kind is Kind.DECIMAL:
        if operator == "/":
            # Spark divides to 38 digits behind the point before it rounds to the type.
            exact = Fraction(half_up(exact * 10**_MAX_SCALE), 10**_MAX_SCALE)
        return fitted_decimal(exact, result, what)
    return fitted(int(exact), result, what)


def _doubles(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case "%" if math.isinf(left) or math.isnan(left) or math.isnan(right):
            return math.nan
        case "%":
            return math.fmod(left, right)
        case _:
            raise NotInterpreted(f"'{operator}' on doubles")


def _exact(operator: str, left: Fraction, right: Fraction) -> Fraction:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case "%":
            return left - right * math.trunc(left / right)
        case "div":
            return Fraction(math.trunc(left / right))
        case _:
            raise NotInterpreted(f"'{operator}' on numbers")


# ---------------------------------------------------------------- dates, timestamps, intervals


def _times(operator: str, left: Value, right: Value, types: tuple[Type, Type], result: Type) -> Value:
    a, b = types
    if a.is_time and b.is_time and operator == "-":
        if a != b:
            left, right = cast(left, a, TIMESTAMP), cast(right, b, TIMESTAMP)
        return left - right
    if a.is_time and operator in "+-":
        return _moved(left, a, right, b, result, 1 if operator == "+" else -1)
    if b.is_time and operator == "+":
        return _moved(right, b, left, a, result, 1)
    if a.is_interval and b.is_interval and operator in "+-":
        if isinstance(left, Months):
            return Months(left.count + right.count if operator == "+" else left.count - right.count)
        return left + right if operator == "+" else left - right
    if a.is_interval and b.is_numeric and operator in "*/":
        return _scaled(operator, left, right)
    if a.is_numeric and b.is_interval and operator == "*":
        return _scaled(operator, right, left)
    raise NotInterpreted(f"{a} {operator} {b}")


def _moved(time: date | datetime, type_: Type, by: Value, by_type: Type, result: Type, sign: int) -> Value:
    if by_type.kind in _DAYS and type_ == DATE:
        return time + timedelta(days=sign * by)
    if isinstance(by, Months):
        months = sign * by.count
        return months_later(time, months) if isinstance(time, datetime) else month_of(time, months)
    if isinstance(by, timedelta):
        return cast(time, type_, result) + sign * by
    raise NotInterpreted(f"{type_} moved by {by_type}")


def _scaled(operator: str, interval: Value, factor: Value) -> Value:
    if isinstance(factor, float) and not math.isfinite(factor):
        raise Overflow(f"an interval times {factor}")
    if operator == "/" and factor == 0:
        raise DivisionByZero("an interval divided by zero")
    by = Fraction(factor) if operator == "*" else 1 / Fraction(factor)
    if isinstance(interval, Months):
        return Months(half_up(interval.count * by))
    return timedelta(microseconds=half_up(interval // MICROSECOND * by))
