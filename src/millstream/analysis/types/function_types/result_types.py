"""Result types of calls of built-in functions."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types.function_types import aggregate_types, collections, scalars, temporal
from millstream.analysis.types.function_types.function_call import Call, Rule
from millstream.analysis.types.function_types.signatures import Mismatch, concrete, match
from millstream.catalog.functions import UNKNOWN_RESULT, BuiltinFunction
from millstream.errors import AnalysisError
from millstream.types import UNKNOWN, Type

_RULES: dict[str, Rule] = aggregate_types.RULES | scalars.RULES | temporal.RULES | collections.RULES


def result_type(function: BuiltinFunction, call: Call) -> Type:
    """Check the arguments of a call and tell the type of its result."""
    if function.result == UNKNOWN_RESULT:
        return UNKNOWN
    if any(argument.is_star or isinstance(argument, exp.Kwarg) for argument in call.arguments):
        # Only Spark knows how many arguments these are, or which.
        return concrete(function.result) or UNKNOWN
    _check_arity(function, call)
    try:
        matched = match(function, call.types)
    except Mismatch as mismatch:
        raise _wrong_argument(function, call, mismatch) from None
    if function.result.startswith("@"):
        return _RULES[function.result[1:]](replace(call, types=matched.types))
    return matched.result(function.result)


def _check_arity(function: BuiltinFunction, call: Call) -> None:
    given = len(call.types)
    if given < function.min_args or (function.max_args is not None and given > function.max_args):
        call.fail(f"'{function.name}' takes {function.arity}, not {given}")


def _wrong_argument(function: BuiltinFunction, call: Call, mismatch: Mismatch) -> AnalysisError:
    which = f"argument {mismatch.index + 1}" if len(call.types) > 1 else "the argument"
    return error_at(
        call.arguments[mismatch.index],
        f"{which} of '{function.name}' must be {mismatch.wanted}, but this is {call.types[mismatch.index]}",
    )
