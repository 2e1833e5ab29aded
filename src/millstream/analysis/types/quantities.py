"""Amounts as written (``5 MINUTES``, ``100 ROWS``, ``2.5``) to amounts as meant."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeVar

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.quantity import MICROSECONDS, MONTHS, Distance, Duration, Quantity, Rows, is_positive
from millstream.syntax import nodes
from millstream.types import Kind, Type

MOST = 2**63 - 1
"""The largest number of rows, of microseconds, or of steps of an attribute that a window can span."""
_LARGEST_FLOAT = (2 - 2**-23) * 2.0**127
_Amount = TypeVar("_Amount", Rows, Duration)


def example(type_: Type, time: str = "1 MINUTE", number: str = "100") -> str:
    """Return an amount along an attribute of a type, for hints.

    >>> from millstream.types import BIGINT, DATE, TIMESTAMP
    >>> example(TIMESTAMP), example(BIGINT), example(DATE)
    ('1 MINUTE', '100', '7 DAYS')
    """
    if type_.is_numeric:
        return number
    return "7 DAYS" if type_.kind is Kind.DATE else time


def quantity(node: exp.Expr) -> Quantity:
    """Return the amount that a node says, of whatever kind."""
    match node:
        case nodes.RowCount():
            return _limited(Rows(_whole_number(node.this)), node)
        case exp.Interval():
            return _limited(_duration(node), node)
        case exp.Add():
            left, right = quantity(node.this), quantity(node.expression)
            if isinstance(left, Duration) and isinstance(right, Duration):
                return _limited(left + right, node)
        case exp.Literal() | exp.Neg():
            return Distance(_number(node))
    raise error_at(node, "expected an interval, a number or n ROWS")


def positive(node: exp.Expr, what: str) -> Quantity:
    """Return an amount by which something can move or reach."""
    amount = quantity(node)
    if not is_positive(amount):
        raise error_at(node, f"{what} must be positive, not {amount}")
    return amount


def positive_rows(node: exp.Expr, what: str) -> Rows:
    """Return a number of tuples; the word ROWS may be left out where only tuples can be meant."""
    if isinstance(node, exp.Literal | exp.Neg):
        rows = Rows(_whole_number(node))
        if rows.count <= 0:
            raise error_at(node, f"{what} must be positive, not {rows.count}")
        return _limited(rows, node)
    amount = positive(node, what)
    if not isinstance(amount, Rows):
        raise error_at(node, f"{what} counts tuples here and cannot be {amount}", hint="write n ROWS")
    return amount


def as_rows(amount: Distance, node: exp.Expr) -> Rows:
    """Return a whole number that counts tuples."""
    return _limited(Rows(int(amount.value)), node)


def positive_duration(node: exp.Expr, what: str) -> Duration:
    amount = positive(node, what)
    if not isinstance(amount, Duration):
        raise error_at(node, f"{what} is a length of time, not {amount}", hint="write INTERVAL 5 SECONDS")
    _require_fixed_length(amount, what, node)
    return amount


def _require_fixed_length(amount: Duration, what: str, node: exp.Expr) -> None:
    if amount.months:
        raise error_at(node, f"{what} {amount} has no fixed length", hint="write it in DAYS")


def positive_on(node: exp.Expr, what: str, attribute: str, type_: Type) -> Duration | Distance:
    """Return an amount along an attribute: an interval for times, a number for numbers."""
    amount = positive(node, what)
    if isinstance(amount, Rows):
        raise error_at(
            node,
            f"{what} {amount} does not measure '{attribute}', which is of type {type_}",
            hint="to count tuples write [ROWS n SLIDE m] or WATTR row_num",
        )
    if type_.is_time and isinstance(amount, Distance):
        raise error_at(
            node,
            f"{what} must be an interval, because '{attribute}' is of type {type_}",
            hint=f"write {amount} SECONDS, or whatever unit is meant",
        )
    if type_.is_numeric and isinstance(amount, Duration):
        raise error_at(
            node,
            f"{what} cannot be an interval, because '{attribute}' is of type {type_}",
            hint="write a plain number",
        )
    if isinstance(amount, Duration):
        _require_fixed_length(amount, what, node)
    if isinstance(amount, Distance) and _is_too_long(amount.value, type_):
        raise error_at(
            node,
            f"{what} {amount} is longer than any distance on '{attribute}', which is of type {type_}",
            hint="for a window without a limit write [UNBOUNDED], or UNBOUNDED PRECEDING in OVER",
        )
    if not _is_measurable(amount, type_):
        hint = "write it in DAYS" if type_.is_time else "no two values are so close, so use a coarser one"
        raise error_at(
            node, f"{what} {amount} is finer than '{attribute}', which is of type {type_}", hint=hint
        )
    return amount


def is_point(value: Decimal, type_: Type) -> bool:
    """Tell whether a number can be an instant on an attribute of a type."""
    if not type_.is_numeric:
        return True
    exact = type_.kind not in (Kind.FLOAT, Kind.DOUBLE)
    whole = not exact or _steps(value, type_).denominator == 1
    return whole and not _is_too_long(abs(value), type_)


def _is_measurable(amount: Duration | Distance, type_: Type) -> bool:
    """Tell whether an amount is a whole number of steps of a type; doubles have no fixed step."""
    match amount:
        case Duration(microseconds):
            return type_.kind is not Kind.DATE or microseconds % MICROSECONDS["DAY"] == 0
        case Distance(value) if type_.kind in (Kind.FLOAT, Kind.DOUBLE):
            return float(value) > 0
        case Distance(value):
            exact = type_.is_integral or type_.kind is Kind.DECIMAL
            return not exact or _steps(value, type_).denominator == 1


def _is_too_long(value: Decimal, type_: Type) -> bool:
    """Tell whether a distance is more than the kernels can count in steps of a type."""
    match type_.kind:
        case Kind.DOUBLE:
            return math.isinf(float(value))
        case Kind.FLOAT:
            return float(value) > _LARGEST_FLOAT
        case _:
            return type_.is_numeric and _steps(value, type_) > MOST


def _steps(value: Decimal, type_: Type) -> Fraction:
    scale: int = type_.scale if type_.kind is Kind.DECIMAL else 0
    return Fraction(value) * Fraction(10) ** scale


def _limited(amount: _Amount, node: exp.Expr) -> _Amount:
    """Return the amount itself, unless 64 bits cannot count its rows or microseconds."""
    count, unit = _counted(amount)
    if abs(count) > MOST:
        raise error_at(
            node,
            f"{amount} cannot be counted: the most is {MOST} {unit}",
            hint="for a window without a limit write [UNBOUNDED], or UNBOUNDED PRECEDING in OVER",
        )
    return amount


def _counted(amount: Rows | Duration) -> tuple[int, str]:
    return (amount.count, "rows") if isinstance(amount, Rows) else (amount.microseconds, "microseconds")


def _duration(node: exp.Interval) -> Duration:
    unit = node.args.get("unit")
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    scale = MICROSECONDS.get(name) or MONTHS.get(name)
    if scale is None or node.this is None:
        raise error_at(
            node,
            "this form of interval cannot measure a window",
            hint="write INTERVAL 5 MINUTES, or 1 HOUR 30 MINUTES",
        )
    amount = _number(node.this, node) * scale
    if amount != int(amount):
        raise error_at(node, "an interval cannot be finer than a microsecond")
    return Duration(months=int(amount)) if name in MONTHS else Duration(microseconds=int(amount))


def _number(node: exp.Expr, whole: exp.Expr | None = None) -> Decimal:
    try:
        if isinstance(node, exp.Neg):
            return -_number(node.this, whole)
        value = Decimal(node.name.strip())
        if value.is_finite():
            return value
    except InvalidOperation:
        pass
    raise error_at(whole or node, f"'{node.name}' is not a number")


def _whole_number(node: exp.Expr) -> int:
    value = _number(node)
    if value != int(value):
        raise error_at(node, f"a number of rows must be whole, not {value}")
    return int(value)
