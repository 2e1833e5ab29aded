"""Calls of built-in aggregates in their typed form."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from millstream.analysis.types.implicit_casts import converted
from millstream.catalog.builtin_aggregates import Family, accumulator_functions
from millstream.ir.typed_nodes import Aggregation, Expr
from millstream.types import Type

_IN_RESULT_TYPE = accumulator_functions(Family.MIN_MAX, Family.FIRST_LAST) | {"sum"}
"""Functions that take their argument in the type of the result."""


def written_arguments(call: exp.Expr) -> tuple[list[exp.Expr], bool]:
    """Return the arguments of a call, and whether DISTINCT stands before them."""
    written = list(call.expressions)
    distinct = bool(written) and isinstance(written[0], exp.Distinct)
    return (list(written[0].expressions) if distinct else written), distinct


def built_in(name: str, arguments: Sequence[Expr], result: Type, *, distinct: bool = False) -> Aggregation:
    """Make a call of a function that has an accumulator."""
    given = [converted(argument, result) for argument in arguments[:1]] if name in _IN_RESULT_TYPE else None
    return Aggregation(name, tuple(arguments if given is None else given), result, distinct)
