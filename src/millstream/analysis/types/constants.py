"""Values of constant expressions, and the constant arguments of built-in aggregates."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types.data_types import from_datatype
from millstream.catalog.builtin_aggregates import SHARE, BuiltinAggregate, Constant
from millstream.types import Kind, Type

_ARITHMETIC: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
}


class NotConstantError(Exception):
    """An expression whose value is not known before the query runs, or not without Spark."""

    def __init__(self, node: exp.Expr) -> None:
        super().__init__(node.sql())
        self.node = node


def constant_value(node: exp.Expr) -> Any:
    """The value of a literal, of a cast or array of literals, or of arithmetic with them.

    Numbers are fractions, so that a decimal is exactly the one that is written.
    """
    match node:
        case exp.Paren():
            return constant_value(node.this)
        case exp.Literal():
            return node.name if node.is_string else Fraction(node.name)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.HexString():
            return int(node.name, 16).to_bytes(len(node.name) // 2)
        case exp.Neg():
            return -_number(node.this)
        case exp.Cast():
            return _cast(node)
        case exp.Array():
            return [constant_value(element) for element in node.expressions]
        case exp.Anonymous() if node.name.lower() == "array":
            return [constant_value(element) for element in node.expressions]
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            one, other = _number(node.this), _number(node.expression)
            if isinstance(node, exp.Div) and not other:
                raise NotConstantError(node)
            return _ARITHMETIC[type(node)](one, other)
    raise NotConstantError(node)


def _number(node: exp.Expr) -> Fraction:
    value = constant_value(node)
    if not isinstance(value, Fraction):
        raise NotConstantError(node)
    return value


def _cast(node: exp.Cast) -> Any:
    value, type_ = constant_value(node.this), from_datatype(node.to)
    if value is None:
        return None
    if type_.kind is Kind.STRING and isinstance(value, str):
        return value
    if not type_.is_numeric or not isinstance(value, Fraction | str):
        raise NotConstantError(node)
    try:
        number = Fraction(value)
    except ValueError:
        raise NotConstantError(node) from None
    return Fraction(int(number)) if type_.is_integral else number


def parameters(row: BuiltinAggregate, written: Sequence[exp.Expr], value: Type) -> tuple[Any, ...]:
    """The constants of a call, checked: percentages one by one, defaults where none are written.

    Args:
        row: The aggregate.
        written: The arguments that have to be constants.
        value: The type of the first argument.

    Raises:
        NotConstantError: One of them is not constant.
        AnalysisError: One of them is out of range.
    """
    found: list[Any] = []
    for constant, node in zip(row.constants, written, strict=False):
        given = constant_value(node)
        if not constant.is_ignored:
            several = given if isinstance(given, list) and constant is SHARE else [given]
            found += [_checked(constant, one, row.name, node, value) for one in several]
    if found or not row.constants:
        return tuple(found) or row.defaults
    return row.defaults or tuple(_nothing(value) for one in row.constants if one.is_text)


def _checked(constant: Constant, given: Any, name: str, node: exp.Expr, value: Type) -> Any:
    if constant.is_text:
        return _nothing(value) if given is None else given
    is_number = isinstance(given, Fraction) and (given.denominator == 1 or not constant.whole)
    if not is_number or not constant.contains(given):
        kind = "a whole number" if constant.whole else "a number"
        raise error_at(
            node,
            f"{constant.noun} of '{name}' must be {kind} from {constant.least} to {constant.most},"
            f" but this is {node.sql()}",
            hint="the median is 0.5" if constant is SHARE else None,
        )
    return int(given) if constant.whole else float(given)


def _nothing(value: Type) -> str | bytes:
    """The separator if none is written."""
    return b"" if value.kind is Kind.BINARY else ""
