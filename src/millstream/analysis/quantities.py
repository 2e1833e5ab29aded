"""Amounts as written (``5 MINUTES``, ``100 ROWS``, ``2.5``) to amounts as meant."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from sqlglot import exp

from millstream.errors import AnalysisError
from millstream.quantity import MICROSECONDS, MONTHS, Distance, Duration, Quantity, Rows, is_positive
from millstream.syntax import nodes
from millstream.syntax.positions import span_of
from millstream.types import Kind, Type


def quantity(node: exp.Expr) -> Quantity:
    """The amount that a node says, of whatever kind."""
    match node:
        case nodes.RowCount():
            return Rows(_whole_number(node.this))
        case exp.Interval():
            return _duration(node)
        case exp.Add():
            left, right = quantity(node.this), quantity(node.expression)
            if isinstance(left, Duration) and isinstance(right, Duration):
                return left + right
        case exp.Literal() | exp.Neg():
            return Distance(_number(node))
    raise AnalysisError("expected an interval, a number or n ROWS", span=span_of(node))


def positive(node: exp.Expr, what: str) -> Quantity:
    """An amount by which something can move or reach."""
    amount = quantity(node)
    if not is_positive(amount):
        raise AnalysisError(f"{what} must be positive, not {amount}", span=span_of(node))
    return amount


def positive_rows(node: exp.Expr, what: str) -> Rows:
    """A number of tuples; the word ROWS may be left out where only tuples can be meant."""
    if isinstance(node, exp.Literal | exp.Neg):
        rows = Rows(_whole_number(node))
        if rows.count <= 0:
            raise AnalysisError(f"{what} must be positive, not {rows.count}", span=span_of(node))
        return rows
    amount = positive(node, what)
    if not isinstance(amount, Rows):
        raise AnalysisError(
            f"{what} counts tuples here and cannot be {amount}", span=span_of(node), hint="write n ROWS"
        )
    return amount


def positive_duration(node: exp.Expr, what: str) -> Duration:
    amount = positive(node, what)
    if not isinstance(amount, Duration):
        raise AnalysisError(
            f"{what} is a length of time, not {amount}", span=span_of(node), hint="write INTERVAL 5 SECONDS"
        )
    return amount


def positive_on(node: exp.Expr, what: str, attribute: str, type_: Type) -> Duration | Distance:
    """An amount along an attribute: an interval where that is a time, a number where it is a number."""
    amount = positive(node, what)
    if isinstance(amount, Rows):
        raise AnalysisError(
            f"{what} {amount} does not measure '{attribute}', which is of type {type_}",
            span=span_of(node),
            hint="to count tuples write [ROWS n SLIDE m] or WATTR row_num",
        )
    if type_.is_time and isinstance(amount, Distance):
        raise AnalysisError(
            f"{what} must be an interval, because '{attribute}' is of type {type_}",
            span=span_of(node),
            hint=f"write {amount} SECONDS, or whatever unit is meant",
        )
    if type_.is_numeric and isinstance(amount, Duration):
        raise AnalysisError(
            f"{what} cannot be an interval, because '{attribute}' is of type {type_}",
            span=span_of(node),
            hint="write a plain number",
        )
    if not _is_measurable(amount, type_):
        hint = "write it in DAYS" if type_.is_time else "no two values are so close, so use a coarser one"
        raise AnalysisError(
            f"{what} {amount} is finer than '{attribute}', which is of type {type_}",
            span=span_of(node),
            hint=hint,
        )
    return amount


def _is_measurable(amount: Duration | Distance, type_: Type) -> bool:
    """Whether an amount is a whole number of the smallest steps of a type."""
    match amount:
        case Duration(microseconds):
            return type_.kind is not Kind.DATE or microseconds % MICROSECONDS["DAY"] == 0
        case Distance(value):
            scale = type_.scale if type_.kind is Kind.DECIMAL else 0
            exact = type_.is_integral or type_.kind is Kind.DECIMAL
            return not exact or value.scaleb(scale) % 1 == 0


def _duration(node: exp.Interval) -> Duration:
    unit = node.args.get("unit")
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    scale = MICROSECONDS.get(name) or MONTHS.get(name)
    if scale is None or node.this is None:
        raise AnalysisError(
            "this form of interval cannot measure a window",
            span=span_of(node),
            hint="write INTERVAL 5 MINUTES, or 1 HOUR 30 MINUTES",
        )
    amount = _number(node.this, node) * scale
    if amount != int(amount):
        raise AnalysisError("an interval cannot be finer than a microsecond", span=span_of(node))
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
    raise AnalysisError(f"'{node.name}' is not a number", span=span_of(whole or node))


def _whole_number(node: exp.Expr) -> int:
    value = _number(node)
    if value != int(value):
        raise AnalysisError(f"a number of rows must be whole, not {value}", span=span_of(node))
    return int(value)
