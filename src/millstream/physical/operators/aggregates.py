"""Calls of built-in aggregates: the columns that are shipped for them, and their specifications.

Arguments are prepared by expressions as far as possible, so that kernels know few functions: count_if is a
count of what is not NULL, bool_and the smallest boolean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import Expr
from millstream.catalog.builtin_aggregates import (
    Arguments,
    BuiltinAggregate,
    Nulls,
    accumulator_row,
    builtin_aggregate,
    function_of,
)
from millstream.kernels.specs import AggregateSpec, Order
from millstream.physical import expressions as ex
from millstream.physical.flow import Flow
from millstream.physical.node import arrow_of
from millstream.plan.aggregate_strategies import constants as constants_of
from millstream.types import BIGINT, BOOLEAN, DOUBLE, Kind, Type


@dataclass(frozen=True)
class AggregatePlanner:
    """Plans calls of built-in aggregates; ``typed`` and ``result`` know types that the analysis does not."""

    typed: Callable[[Flow, Expr], Expr]
    result: Callable[[Flow, AggregateCall], Type]

    def plan(
        self, flow: Flow, call: AggregateCall, argument: str, result: str
    ) -> tuple[dict[str, Expr], AggregateSpec, Type]:
        """Return the columns that a call needs, its specification, and the type of its result.

        The names of the columns begin with ``argument``.
        """
        row = builtin_aggregate(call.name)
        assert row is not None, f"{call.name} has passed the list of refusals"
        assert call.constants is not None, f"the constants of {call.name} have passed the list of refusals"
        type_ = self.result(flow, call)
        function = function_of(row, len(call.arguments))
        own = accumulator_row(function)
        columns = _prepared(call, row, own, [self.typed(flow, one) for one in call.arguments])
        names = [argument, *(f"{argument}_{i}" for i in range(1, len(columns)))]
        where = None
        condition = call.filter
        if condition is not None and own.nulls is not Nulls.SKIP:
            where = f"{argument}_where"
        elif condition is not None and not columns:
            columns = [ex.when(condition, ex.ONE)]
        elif condition is not None:
            # A tuple that does not count is one without the value that it would be counted by.
            by = 1 if function in ("min_by", "max_by") else 0
            columns[by] = ex.when(condition, columns[by])
        spec = AggregateSpec(
            function,
            argument if columns else None,
            result,
            arrow_of(type_),
            ignore_nulls=call.ignore_nulls,
            text=str(call.arguments[0]) if call.arguments else None,
            others=tuple(names[1:]) if columns else (),
            parameters=call.constants,
            distinct=call.distinct or (row.distinct and not own.distinct),
            order=tuple(Order(key.descending, key.nulls_first) for key in call.within),
            condition=where,
        )
        shipped = dict(zip(names, columns, strict=False))
        asked = {where: condition} if where is not None and condition is not None else {}
        return shipped | asked, spec, type_


def _prepared(
    call: AggregateCall, row: BuiltinAggregate, own: BuiltinAggregate, given: Sequence[Expr]
) -> list[Expr]:
    """Return the arguments of a call in the form that its accumulator takes."""
    fixed = constants_of(call)
    columns = [
        one
        for one, written in zip(given, call.arguments, strict=True)
        if not any(written is constant for constant in fixed)
    ]
    match own.arguments if row.content_form is not None else row.arguments:
        case Arguments.PRESENT if not call.distinct:
            return _counted(columns)
        case Arguments.CONDITION:
            return [ex.when(columns[0], ex.ONE)]
        case Arguments.SECOND_OF_PAIR:
            return [_beside(columns[1], columns[0])]
        case Arguments.FIRST_OF_PAIR:
            return [_beside(columns[0], columns[1])]
        case Arguments.VALUES_AND_COUNTS:
            return [ex.cast(columns[0], DOUBLE), ex.cast(columns[1], BIGINT)]
        case Arguments.TRUTH:
            return [ex.cast(columns[0], BOOLEAN)]
        case Arguments.DOUBLES:
            return [ex.cast(column, DOUBLE) for column in columns]
        case Arguments.NUMBER | Arguments.SUMMAND as form:
            return _numbers(columns, form is Arguments.SUMMAND)
    return columns


def _beside(value: Expr, other: Expr) -> Expr:
    """Return a number where another value is there too."""
    return ex.when(ex.is_not_null(other), ex.cast(value, DOUBLE))


def _counted(columns: Sequence[Expr]) -> list[Expr]:
    """Return what is counted: every tuple, or those that have all of the values."""
    if not columns or columns[0].sql in ("*", "1"):
        return []
    if len(columns) == 1:
        return [columns[0]]
    return [ex.when(ex.all_hold([ex.is_not_null(column) for column in columns]), ex.ONE)]


def _numbers(columns: Sequence[Expr], exact: bool) -> list[Expr]:
    """Return numbers as doubles, unless they are to be added exactly; intervals as they are."""
    type_ = columns[0].type
    plain = type_.kind is Kind.DAY_TIME_INTERVAL or (exact and type_.is_numeric) or type_ == DOUBLE
    return [columns[0] if plain else ex.cast(columns[0], DOUBLE), *columns[1:]]
