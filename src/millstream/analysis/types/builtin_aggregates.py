"""Calls of aggregates in their checked form, and by what names kernels know them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from millstream.analysis.types.implicit_casts import converted
from millstream.ir.typed_nodes import Aggregation, Expr
from millstream.types import Type

_IN_RESULT_TYPE = ("sum", "min", "max", "first", "last", "any_value")

SAME = {
    "mean": "avg", "first_value": "first", "last_value": "last", "any_value": "first",
    "bool_and": "min", "every": "min", "bool_or": "max", "any": "max", "some": "max",
    "std": "stddev_samp", "stddev": "stddev_samp", "variance": "var_samp",
    "array_agg": "collect_list", "string_agg": "listagg",
    "median": "percentile", "percentile_cont": "percentile", "approx_percentile": "percentile_approx",
    "approx_count_distinct": "count", "count_if": "count", "regr_count": "count",
    "regr_avgx": "avg", "regr_avgy": "avg",
}  # fmt: skip
"""What kernels call it, where they have another name for it."""

CONSTANTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("percentile", "percentile_cont", "percentile_disc"), (1, 2)),
    **dict.fromkeys(("percentile_approx", "approx_percentile", "approx_top_k"), (1, 3)),
    **dict.fromkeys(("listagg", "string_agg", "histogram_numeric", "mode", "approx_count_distinct"), (1, 2)),
    **dict.fromkeys(("min_by", "max_by"), (2, 3)),
}
"""Which arguments are the same for all tuples: from one to before another."""

IGNORED = frozenset({"mode", "approx_count_distinct"})
"""Functions whose constants only say how exact they must be."""

PAIRED = frozenset({"covar_pop", "covar_samp", "corr", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2"})
DOUBLES = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis"}) | PAIRED
NUMBERS = frozenset({"percentile", "percentile_disc", "histogram_numeric"})
SUMS = frozenset({"sum", "avg", "try_sum", "try_avg"})


def written_arguments(call: exp.Expr) -> tuple[list[exp.Expr], bool]:
    """What a call is given, and whether DISTINCT stands before it."""
    written = list(call.expressions)
    distinct = bool(written) and isinstance(written[0], exp.Distinct)
    return (list(written[0].expressions) if distinct else written), distinct


def built_in(name: str, arguments: Sequence[Expr], result: Type, *, distinct: bool = False) -> Aggregation:
    """A built-in aggregate; those that give back what they are given take it in the type of the result."""
    given = [converted(argument, result) for argument in arguments[:1]] if name in _IN_RESULT_TYPE else None
    return Aggregation(name, tuple(arguments if given is None else given), result, distinct)
