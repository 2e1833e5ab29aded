"""How the aggregates of windows are computed, in words and with what a result costs.

``w`` stands for what a window holds: tuples, or panes where tuples are counted in panes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.types.builtin_aggregates import CONSTANTS
from millstream.types import Kind


@dataclass(frozen=True)
class Strategy:
    way: str
    cost: str

    def __str__(self) -> str:
        return f"{self.way}, {self.cost}"


RUNNING = Strategy("kept up to date", "O(1)")
DIFFERENCE = Strategy("difference of running totals", "O(1)")
STACKS = Strategy("two stacks", "O(1)")
ORDER = Strategy("order statistics", "O(log w)")
EXACT = Strategy("order statistics, exact", "O(log w)")
RECOMPUTED = Strategy("recomputed from the content", "O(w)")

_ADDED = ("count", "count_if", "regr_count", "sum", "avg", "mean", "try_sum", "try_avg")
_MERGED = (
    *("min", "max", "first", "last", "first_value", "last_value", "any_value", "min_by", "max_by"),
    *("bool_and", "every", "bool_or", "any", "some", "bit_and", "bit_or", "bit_xor"),
    *(
        "stddev",
        "std",
        "stddev_samp",
        "stddev_pop",
        "variance",
        "var_samp",
        "var_pop",
        "skewness",
        "kurtosis",
    ),
    *("corr", "covar_samp", "covar_pop", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy"),
    *("regr_slope", "regr_intercept", "regr_r2"),
)
_ORDERED = ("median", "percentile", "percentile_cont", "percentile_disc", "mode")
_APPROXIMATED = ("percentile_approx", "approx_percentile", "approx_count_distinct")
_LISTED = (
    *("collect_list", "array_agg", "collect_set", "listagg", "string_agg", "histogram_numeric"),
    *("collect_union", "approx_top_k", "vector_sum", "vector_avg"),
)
_SAME_IF_DISTINCT = frozenset(
    {
        *("min", "max", "first", "last", "first_value", "last_value", "any_value", "min_by", "max_by"),
        *("bool_and", "every", "bool_or", "any", "some", "bit_and", "bit_or", "approx_count_distinct"),
    }
)
"""To which it makes no difference how often a value is there."""

_BY_NAME: dict[str, Strategy] = {
    **dict.fromkeys(_ADDED, DIFFERENCE),
    **dict.fromkeys(_MERGED, STACKS),
    **dict.fromkeys(_ORDERED, ORDER),
    **dict.fromkeys(_APPROXIMATED, EXACT),
    **dict.fromkeys(_LISTED, RECOMPUTED),
}

AGGREGATES = frozenset(_BY_NAME)
"""The built-in aggregates that windows know. The others make sketches in formats of Spark's own."""


def constants(call: AggregateCall) -> tuple[Expr, ...]:
    """The arguments of a call that must be constants."""
    first, last = CONSTANTS.get(call.name.lower(), (0, 0))
    unsorted = (
        call.arguments[: len(call.arguments) - len(call.within)] if _is_listed(call) else call.arguments
    )
    return unsorted[first:last]


def _is_listed(call: AggregateCall) -> bool:
    return call.name.lower() in ("listagg", "string_agg")


def strategy(call: AggregateCall, *, unbounded: bool = False) -> Strategy | None:
    """How a call is computed, None if it is unknown here; ``unbounded`` if nothing ever leaves the window.

    Of the user's aggregates that is so over windows of a stream; over windows of their own, versions say it.
    """
    name = call.name.lower()
    if call.user is not None:
        return RECOMPUTED
    if name not in _BY_NAME:
        return None
    chosen = _BY_NAME[name]
    if call.distinct and name not in _SAME_IF_DISTINCT:
        chosen = ORDER if name == "count" and len(call.arguments) == 1 else RECOMPUTED
    elif (name in ("min_by", "max_by") and len(call.arguments) == 3) or (
        name == "percentile" and len(call.arguments) == 3
    ):
        chosen = RECOMPUTED
    elif chosen is DIFFERENCE and _adds_doubles(call):
        # What was added to a double cannot be taken away again without a trace.
        chosen = STACKS
    return RUNNING if unbounded and chosen in (DIFFERENCE, STACKS) else chosen


def _adds_doubles(call: AggregateCall) -> bool:
    adds = call.name.lower() in ("sum", "avg", "mean", "try_sum", "try_avg") and call.arguments
    return bool(adds) and call.arguments[0].type.kind in (Kind.FLOAT, Kind.DOUBLE, Kind.STRING)


def notes(calls: Iterable[tuple[AggregateCall, bool]]) -> list[str]:
    """A line for each call, with whether its window is unbounded."""
    lines = []
    for call, unbounded in calls:
        chosen = strategy(call, unbounded=unbounded)
        if chosen is not None:
            lines.append(f"{call.result}: {chosen}")
    return lines
