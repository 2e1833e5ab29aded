"""Conversions that SQL makes unasked, in the checked form: what can be converted here and now is."""

from __future__ import annotations

from decimal import Decimal

from millstream.analysis.types.coercion import Widening, common_type_of
from millstream.errors import AnalysisError
from millstream.ir.typed_nodes import Cast, Constant, Expr
from millstream.ir.value_kinds import LIMITS
from millstream.types import Kind, Type


def together(*values: Expr) -> tuple[Expr, ...]:
    """Convert values that are compared to their common type."""
    types = [value.type for value in values]
    wanted = common_type_of(types, Widening.STRINGS)
    if wanted is None:
        raise AnalysisError(f"cannot compare {' with '.join(map(str, types))}")
    return tuple(converted(value, wanted) for value in values)


def converted(value: Expr, wanted: Type) -> Expr:
    """Return a value in another type; what can be converted here and now is."""
    given = value.type
    if given == wanted or (given.is_interval and wanted.kind is given.kind):
        return value
    if isinstance(value, Constant):
        if value.value is None:
            return Constant(None, wanted)
        if given.is_integral and wanted.is_integral and _fits(value.value, wanted):
            return Constant(value.value, wanted)
        if given.is_integral and wanted.kind is Kind.DOUBLE:
            return Constant(float(value.value), wanted)
        if given.is_integral and wanted.kind is Kind.DECIMAL:
            unscaled = value.value * 10**wanted.scale
            if abs(unscaled) < 10**wanted.precision:
                return Constant(unscaled, wanted)
        if given.kind is Kind.DECIMAL and wanted.kind is Kind.DOUBLE:
            return Constant(float(Decimal(value.value).scaleb(-given.scale)), wanted)
    return Cast(value, wanted)


def _fits(value: int, type_: Type) -> bool:
    low, high = LIMITS[type_.kind]
    return low <= value <= high
