"""Built-in aggregates of stars in their checked form: compiled, or computed from all values at once.

Arguments are prepared as for windows (``spark.planning.aggregate_columns``), so that few functions are left:
count_if is a count of what is not NULL, bool_and the smallest boolean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from millstream.analysis.types.builtin_aggregates import (
    CONSTANTS,
    DOUBLES,
    IGNORED,
    NUMBERS,
    SAME,
    SUMS,
    built_in,
)
from millstream.analysis.types.implicit_casts import converted
from millstream.codegen.udas.compiled_aggregates import ACCUMULATORS
from millstream.errors import AnalysisError
from millstream.ir.typed_nodes import Aggregation, Call, Case, Constant, Expr
from millstream.program.content_aggregate import ContentAggregate, Direction
from millstream.syntax.spans import span_of
from millstream.types import BIGINT, BOOLEAN, DOUBLE, INT, Kind, Type

_EDGES = ("first", "last")
_OF_TRUTHS = ("bool_and", "every", "bool_or", "any", "some")
_SHARES = ("percentile", "percentile_disc", "percentile_approx")
_ANY_NUMBER = frozenset({"min", "max", *_EDGES, "min_by", "max_by", "bit_and", "bit_or"})
"""To which it makes no difference how often a value is there."""

_CONTENTS = (
    DOUBLES
    | NUMBERS
    | SUMS
    | {"count", "min_by", "max_by", "bit_xor", "regr_sxx", "regr_syy", "mode"}
    | {"percentile_approx", "percentile_of_counts", "histogram_numeric", "approx_top_k"}
    | {"collect_list", "collect_set", "collect_union", "listagg", "vector_sum", "vector_avg"}
)


def is_known(name: str) -> bool:
    """Whether there is such an aggregate of stars. Sketches in formats of Spark's own are none."""
    function = SAME.get(name, name)
    return function in ACCUMULATORS or function in _CONTENTS


def split_arguments(name: str, written: Sequence[exp.Expr]) -> tuple[list[exp.Expr], list[Any], bool]:
    """What is computed of each tuple, what is the same for all, and whether NULLs are left out."""
    function = SAME.get(name, name)
    if function in _EDGES:
        return list(written[:1]), [], any(_constant(flag, name) for flag in written[1:])
    first, last = CONSTANTS.get(name, (0, 0))
    constants = [] if name in IGNORED else [_constant(node, name) for node in written[first:last]]
    return [*written[:first], *written[last:]], constants, function == "collect_list"


def of_star(
    name: str,
    arguments: Sequence[Expr],
    constants: Sequence[Any],
    result: Type,
    *,
    distinct: bool,
    ignore_nulls: bool,
    order: tuple[Direction, ...] = (),
) -> Aggregation:
    """An aggregate of the tuples of a star."""
    function = SAME.get(name, name)
    distinct = (distinct or name == "approx_count_distinct") and function not in _ANY_NUMBER
    if name == "percentile" and len(arguments) == 2:
        function = "percentile_of_counts"
    given = _prepared(name, function, tuple(arguments))
    parameters = _parameters(name, function, constants)
    if function in _EDGES and ignore_nulls:
        function = f"{function}_known"
    is_interval = result.kind is Kind.DAY_TIME_INTERVAL and function in SUMS
    if function in ACCUMULATORS and not (distinct or parameters or is_interval):
        return built_in(function, given, result)
    return ContentAggregate(
        function, given, result, distinct, parameters=parameters, ignore_nulls=ignore_nulls, order=order
    )


def _prepared(name: str, function: str, arguments: tuple[Expr, ...]) -> tuple[Expr, ...]:
    match name:
        case "count_if":
            return (Case(((converted(arguments[0], BOOLEAN), Constant(1, INT)),), None, INT),)
        case "regr_avgx" | "regr_sxx":
            return (_beside(arguments[1], arguments[0]),)
        case "regr_avgy" | "regr_syy":
            return (_beside(arguments[0], arguments[1]),)
        case "percentile" if function == "percentile_of_counts":
            return converted(arguments[0], DOUBLE), converted(arguments[1], BIGINT)
    if name in _OF_TRUTHS:
        return (converted(arguments[0], BOOLEAN),)
    if function in DOUBLES:
        return tuple(converted(argument, DOUBLE) for argument in arguments)
    first = arguments[0].type if arguments else INT
    exact = function in SUMS and first.is_numeric
    if function in NUMBERS | SUMS and not exact and first.kind is not Kind.DAY_TIME_INTERVAL:
        return (converted(arguments[0], DOUBLE), *arguments[1:])
    return arguments


def _beside(value: Expr, other: Expr) -> Expr:
    """A value as a double, NULL where the other one is."""
    there = Call("not", (Call("isnull", (other,), BOOLEAN),), BOOLEAN)
    return Case(((there, converted(value, DOUBLE)),), None, DOUBLE)


def _parameters(name: str, function: str, constants: Sequence[Any]) -> tuple[Any, ...]:
    if name == "median":
        return (0.5,)
    if function in _SHARES or function == "percentile_of_counts":
        return _shares(constants[0])
    if function == "listagg":
        return tuple(constants) or ("",)
    if function == "approx_top_k":
        return tuple(constants[:1]) or (5,)
    return tuple(constants)


def _shares(given: Any) -> tuple[float, ...]:
    shares = tuple(float(share) for share in (given if isinstance(given, list) else [given]))
    if not all(0 <= share <= 1 for share in shares):
        raise AnalysisError("a percentage lies between 0 and 1", hint="the median is 0.5")
    return shares


def _constant(node: exp.Expr, name: str) -> Any:
    """The value of an argument that is the same for all tuples."""
    match node.unnest():
        case exp.Literal() as literal:
            return literal.name if literal.is_string else float(literal.name)
        case exp.Boolean() as truth:
            return bool(truth.this)
        case exp.Neg(this=inner):
            return -_constant(inner, name)
        case exp.Array() as array:
            return [_constant(element, name) for element in array.expressions]
        case exp.Anonymous() as call if call.name.lower() == "array":
            return [_constant(element, name) for element in call.expressions]
    raise AnalysisError(
        f"'{node.sql()}' in '{name}' is no constant", span=span_of(node), hint="write a number or a text"
    )
