"""Calls of aggregates in their checked form, in bodies and in patterns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from millstream.analysis.conversions import converted
from millstream.types import Type
from millstream.uda.checked import Aggregation, Expr

_IN_RESULT_TYPE = ("sum", "min", "max", "first", "last", "any_value")


def written_arguments(call: exp.Expr) -> tuple[list[exp.Expr], bool]:
    """What a call is given, and whether DISTINCT stands before it."""
    written = list(call.expressions)
    distinct = bool(written) and isinstance(written[0], exp.Distinct)
    return (list(written[0].expressions) if distinct else written), distinct


def built_in(name: str, arguments: Sequence[Expr], result: Type, *, distinct: bool = False) -> Aggregation:
    """A built-in aggregate; those that give back what they are given take it in the type of the result."""
    given = [converted(argument, result) for argument in arguments[:1]] if name in _IN_RESULT_TYPE else None
    return Aggregation(name, tuple(arguments if given is None else given), result, distinct)
