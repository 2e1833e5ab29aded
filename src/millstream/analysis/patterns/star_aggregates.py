"""Aggregates of stars: calls as they are written, and their typed form, compiled or computed from all values.

Arguments are prepared as for windows (``physical.operators.aggregates``), so that few functions are left:
count_if is a count of what is not NULL, bool_and the smallest boolean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types.constants import NotConstantError, parameters
from millstream.analysis.types.implicit_casts import converted
from millstream.analysis.types.typed_aggregates import built_in
from millstream.catalog.builtin_aggregates import (
    Arguments,
    BuiltinAggregate,
    Nulls,
    accumulator_row,
    function_of,
)
from millstream.codegen.udas.accumulator_emitters import ACCUMULATORS
from millstream.ir.typed_nodes import Aggregation, Call, Case, Constant, Expr
from millstream.program.content_aggregate import ContentAggregate, Direction
from millstream.types import BIGINT, BOOLEAN, DOUBLE, INT, Kind, Type


@dataclass(frozen=True)
class WrittenCall:
    """A function with its arguments, and what FILTER, WITHIN GROUP, IGNORE NULLS and OVER add to it."""

    call: exp.Expr
    condition: exp.Expr | None = None
    order: tuple[exp.Ordered, ...] = ()
    ignore_nulls: bool | None = None
    """None if nothing is said."""

    window: exp.Window | None = None

    @property
    def sorted_by(self) -> list[exp.Expr]:
        """The values that WITHIN GROUP orders by."""
        return [ordered.this for ordered in self.order]

    @property
    def has_more(self) -> bool:
        """True if there is anything but arguments, OVER aside."""
        return self.condition is not None or bool(self.order) or self.ignore_nulls is not None


def written_call(node: exp.Expr) -> WrittenCall:
    """Take a call apart."""
    window = node if isinstance(node, exp.Window) else None
    call = node if window is None else window.this
    condition: exp.Expr | None = None
    order: tuple[exp.Ordered, ...] = ()
    ignore_nulls: bool | None = None
    while isinstance(call, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(call, exp.Filter):
            condition = call.expression.this
        elif isinstance(call, exp.WithinGroup):
            order = tuple(call.expression.expressions)
        else:
            ignore_nulls = isinstance(call, exp.IgnoreNulls)
        call = call.this
    return WrittenCall(call, condition, order, ignore_nulls, window)


def split_arguments(
    row: BuiltinAggregate, written: Sequence[exp.Expr]
) -> tuple[list[exp.Expr], list[exp.Expr], bool]:
    """Split arguments into values of each tuple, constants, and whether NULLs are left out."""
    if row.nulls is Nulls.KEEP_UNLESS_TOLD:
        return list(written[:1]), [], any(isinstance(flag, exp.Boolean) and flag.this for flag in written[1:])
    first, last = row.first_constant, row.last_constant
    values = [*written[:first], *written[last:]]
    return values, list(written[first:last]), row.nulls is Nulls.SKIP_UNLESS_TOLD


def of_star(
    row: BuiltinAggregate,
    arguments: Sequence[Expr],
    constants: Sequence[exp.Expr],
    result: Type,
    *,
    distinct: bool,
    ignore_nulls: bool,
    order: tuple[Direction, ...] = (),
) -> Aggregation:
    """Return an aggregate of the tuples of a star."""
    function = function_of(row, len(arguments) + len(constants))
    own = accumulator_row(function)
    given = _prepared(own if row.content_form and constants else row, tuple(arguments))
    fixed = _parameters(row, constants, given)
    is_same = own.same_if_distinct and not fixed
    distinct = (distinct or (row.distinct and not own.distinct)) and not is_same
    if own.nulls is Nulls.KEEP_UNLESS_TOLD and ignore_nulls:
        function = f"{function}_known"
    is_interval = result.kind is Kind.DAY_TIME_INTERVAL and row.arguments is Arguments.SUMMAND
    if function in ACCUMULATORS and not (distinct or fixed or is_interval):
        return built_in(function, given, result)
    return ContentAggregate(
        function, given, result, distinct, parameters=fixed, ignore_nulls=ignore_nulls, order=order
    )


def _prepared(row: BuiltinAggregate, arguments: tuple[Expr, ...]) -> tuple[Expr, ...]:
    first = arguments[0].type if arguments else INT
    match row.arguments:
        case Arguments.CONDITION:
            return (Case(((converted(arguments[0], BOOLEAN), Constant(1, INT)),), None, INT),)
        case Arguments.SECOND_OF_PAIR:
            return (_beside(arguments[1], arguments[0]),)
        case Arguments.FIRST_OF_PAIR:
            return (_beside(arguments[0], arguments[1]),)
        case Arguments.VALUES_AND_COUNTS:
            return converted(arguments[0], DOUBLE), converted(arguments[1], BIGINT)
        case Arguments.TRUTH:
            return (converted(arguments[0], BOOLEAN),)
        case Arguments.DOUBLES:
            return tuple(converted(argument, DOUBLE) for argument in arguments)
        case Arguments.SUMMAND if first.is_numeric or first.kind is Kind.DAY_TIME_INTERVAL:
            return arguments
        case Arguments.NUMBER if first.kind is Kind.DAY_TIME_INTERVAL:
            return arguments
        case Arguments.SUMMAND | Arguments.NUMBER:
            return (converted(arguments[0], DOUBLE), *arguments[1:])
        case _:
            return arguments


def _beside(value: Expr, other: Expr) -> Expr:
    """Return a value as a double, NULL where the other one is."""
    there = Call("not", (Call("isnull", (other,), BOOLEAN),), BOOLEAN)
    return Case(((there, converted(value, DOUBLE)),), None, DOUBLE)


def _parameters(
    row: BuiltinAggregate, constants: Sequence[exp.Expr], given: Sequence[Expr]
) -> tuple[Any, ...]:
    try:
        return parameters(row, constants, given[0].type if given else INT)
    except NotConstantError as error:
        raise error_at(
            error.node,
            f"'{error.node.sql()}' in '{row.name}' is no constant",
            hint="write a number or a text",
        ) from None
