"""Aggregates of stars: what works over a window works in a pattern, and gives what the oracle says."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pytest

from oracle import Arrivals, Row, answer
from tests.codegen.patterns.scripts import Rows, answered
from tests.oracle.test_pattern_results import AGGREGATES

STREAM = (
    "CREATE STREAM s (v INT, w INT, d DOUBLE, b BOOLEAN, word STRING, c DECIMAL(10, 2), t INT) ORDER BY t"
)


def stream(seed: int, length: int = 60) -> Rows:
    """A star ends where t can be divided by 7; NULLs now and then."""
    chance = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    return [
        {
            "v": maybe(chance.randint(-3, 9)),
            "w": maybe(chance.randint(0, 4)),
            "d": maybe(round(chance.gauss(5, 3), 3)),
            "b": maybe(chance.random() < 0.7),
            "word": maybe(chance.choice(["pear", "fig", "apple"])),
            "c": maybe(Decimal(chance.randint(-500, 500)).scaleb(-2)),
            "t": t,
        }
        for t in range(1, length + 1)
    ]


def by_definition(script: str, rows: Rows) -> list[tuple[Any, ...]]:
    return answer(script, {"s": Arrivals([[Row(row) for row in rows]])}).values


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-9, abs=1e-12) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and bool(one == other)


def check(query: str, *, compiling: bool = False) -> None:
    script = f"{AGGREGATES} {STREAM}; {query}"
    for seed in range(2):
        rows = stream(seed)
        expected = by_definition(script, rows)
        assert expected
        returned = answered(script, rows, cuts=[10, 25], compiling=compiling)
        assert alike(returned, expected), f"{returned}\n{expected}"


CALLS = [
    "mean(*A.v)", "try_sum(*A.v)", "try_avg(*A.c)", "sum(*A.c)", "avg(*A.c)", "variance(*A.d)",
    "var_pop(*A.v)", "stddev(*A.d)", "std(*A.v)", "stddev_pop(*A.d)", "skewness(*A.d)", "kurtosis(*A.d)",
    "covar_pop(*A.v, *A.d)", "covar_samp(*A.v, *A.d)", "corr(*A.v, *A.d)", "regr_count(*A.v, *A.d)",
    "regr_avgx(*A.v, *A.d)", "regr_avgy(*A.v, *A.d)", "regr_sxx(*A.v, *A.d)", "regr_syy(*A.v, *A.d)",
    "regr_sxy(*A.v, *A.d)", "regr_slope(*A.v, *A.d)", "regr_intercept(*A.v, *A.d)", "regr_r2(*A.v, *A.d)",
    "min_by(*A.word, *A.d)", "max_by(*A.word, *A.d)", "min(*A.word)", "bool_and(*A.b)", "every(*A.b)",
    "bool_or(*A.b)", "some(*A.b)", "count_if(*A.v > 3)", "bit_and(*A.v)", "bit_or(*A.v)", "bit_xor(*A.v)",
    "median(*A.v)", "percentile(*A.d, 0.9)", "percentile(*A.d, array(0.25, 0.5))",
    "percentile_approx(*A.v, 0.5)", "mode(*A.w)", "approx_count_distinct(*A.w)", "count(DISTINCT *A.w)",
    "count(DISTINCT *A.w, *A.b)", "sum(DISTINCT *A.w)", "max(DISTINCT *A.w)", "collect_list(*A.v)",
    "array_agg(*A.word)", "collect_set(*A.w)", "listagg(*A.word)", "listagg(*A.word, ', ')",
    "string_agg(*A.word, '|')", "any_value(*A.v)", "first_value(*A.v)", "last_value(*A.word)",
    "first(*A.v, true)", "last_value(*A.v, true)", "extent(*A.t).most", "extent(*A.t).least", "mysum(*A.v)",
    "ends(*A.v).low", "collect_list(*A.previous.v)", "sum(*A.v * A.w)", "total(*A.t - A.w)",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_any_aggregate_of_windows_is_final_with_a_star(call: str) -> None:
    check(f"SELECT {call} AS x, Z.t FROM s AS (*A, Z) WHERE A.t % 7 <> 0 AND Z.t > 0")


FILTERS = ["A.w > 2", "A.v < A.previous.v", "A.t > 50 AND upper(A.word) <> 'FIG'"]


def filtered(call: str, condition: str) -> str:
    """The call with a FILTER, which stands before the name of a column."""
    end = call.index(")", call.rindex("*A")) + 1
    end = len(call) if "." not in call[end:] else call.rindex(".")
    return f"{call[:end]} FILTER (WHERE {condition}){call[end:]}"


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("condition", FILTERS)
def test_with_a_filter_only_some_tuples_count(condition: str, first: int) -> None:
    """Also none of a star, and the first that counts is not always the first of the star."""
    calls = [filtered(call, condition) for call in ["count(*A)", *CALLS][first::6]]
    selected = ", ".join(f"{call} AS x{i}" for i, call in enumerate(calls))
    check(f"SELECT {selected}, Z.t FROM s AS (*A, Z) WHERE A.t % 7 <> 0 AND Z.t > 0")


def test_a_tuple_that_does_not_count_is_not_computed_with() -> None:
    for call in ("sum(*A.d / A.w)", "collect_list(*A.d / A.w)", "decay(*A.d / A.w)"):
        query = f"SELECT {filtered(call, 'A.w <> 0')} AS x FROM s AS (*A, Z)"
        check(f"{query} WHERE A.t % 7 <> 0 AND Z.t > 0")
    moving = "(avg(A.d / A.w) FILTER (WHERE A.w > 0) OVER (ROWS 3 PRECEDING) < 5) IS NOT FALSE"
    check(f"SELECT count(*A) AS n, Z.t FROM s AS (*A, Z) WHERE A.t % 7 <> 0 AND {moving} AND Z.t > 0")


SORTED = [
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY *A.v)",
    "percentile_cont(0.2) WITHIN GROUP (ORDER BY *A.d DESC)",
    "percentile_cont(array(0.25, 0.5)) WITHIN GROUP (ORDER BY *A.d)",
    "percentile_disc(0.3) WITHIN GROUP (ORDER BY *A.v + A.w)",
    "percentile_disc(0.3) WITHIN GROUP (ORDER BY *A.v DESC) FILTER (WHERE A.w > 1)",
    "mode() WITHIN GROUP (ORDER BY *A.w)",
    "mode() WITHIN GROUP (ORDER BY *A.w DESC)",
    "listagg(*A.word, '-') WITHIN GROUP (ORDER BY *A.v DESC, *A.t)",
    "listagg(*A.word) WITHIN GROUP (ORDER BY A.d NULLS LAST) FILTER (WHERE A.v > 0)",
    "string_agg(*A.word, ', ') WITHIN GROUP (ORDER BY *A.word)",
]


@pytest.mark.parametrize("call", SORTED)
def test_within_group_orders_the_tuples_of_a_star(call: str) -> None:
    check(f"SELECT {call} AS x, Z.t FROM s AS (*A, Z) WHERE A.t % 7 <> 0 AND Z.t > 0")


@pytest.mark.parametrize(
    "call",
    [
        "first(*A.v) IGNORE NULLS",
        "last_value(*A.v) RESPECT NULLS",
        "any_value(*A.v) FILTER (WHERE A.w > 1) IGNORE NULLS",
    ],
)
def test_nulls_may_be_ignored(call: str) -> None:
    check(f"SELECT {call} AS x, Z.t FROM s AS (*A, Z) WHERE A.t % 7 <> 0 AND Z.t > 0")


COMPILED = [
    "kurtosis(*A.d)", "corr(*A.v, *A.d)", "max_by(*A.b, *A.v)", "bit_xor(*A.v)", "last_value(*A.v, true)",
    "count_if(*A.v > 3)", "extent(*A.t).most", "count(*A) FILTER (WHERE A.w > 2)",
    "avg(*A.d / A.w) FILTER (WHERE A.w <> 0)", "extent(*A.t) FILTER (WHERE A.v > 3).most",
]  # fmt: skip


@pytest.mark.parametrize(
    "asked", [COMPILED[::3], pytest.param(COMPILED, marks=pytest.mark.soak)], ids=["some", "all"]
)
def test_what_needs_few_numbers_is_compiled(asked: list[str]) -> None:
    calls = ", ".join(f"{call} AS x{i}" for i, call in enumerate(asked))
    check(f"SELECT {calls} FROM s AS (*A, Z) WHERE A.t % 7 <> 0 AND Z.t > 0", compiling=True)


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("max_by(*A.v, *A.t, 2)", [3, 2]),
        ("percentile(*A.v, 0.5, *A.w)", 3.0),
        ("histogram_numeric(*A.d, 2)", [{"x": 1.0, "y": 2.0}, {"x": 9.0, "y": 1.0}]),
        ("approx_top_k(*A.word, 1)", [{"item": "fig", "count": 2}]),
        ("total(DISTINCT *A.w)", 8),
        ("extent(*A.t)", {"least": 1, "most": 3}),
        ("ends(*A.v)", {"low": 1, "high": 3}),
    ],
)
def test_what_the_oracle_does_not_know(call: str, result: object) -> None:
    rows = [
        {"v": v, "w": w, "d": d, "word": word, "t": t, "b": None, "c": None}
        for t, (v, w, d, word) in enumerate([(1, 1, 1.0, "fig"), (2, 1, 1.0, "pear"), (3, 7, 9.0, "fig")], 1)
    ]
    script = f"{AGGREGATES} {STREAM}; SELECT {call} AS x FROM s AS (*A)"
    assert answered(script, rows, cuts=[2]) == [(result,)]


RUNNING = [
    "stddev(A.d) OVER (ROWS 3 PRECEDING) < 4", "corr(A.v, A.d) OVER (ROWS UNBOUNDED PRECEDING) > -0.9",
    "median(A.v) OVER (ROWS 2 PRECEDING) > 0", "median(A.v) OVER (ROWS UNBOUNDED PRECEDING) > 1",
    "count(DISTINCT A.w) OVER (ROWS 4 PRECEDING) < 4",
    "collect_list(A.v) OVER (ROWS 3 PRECEDING) IS NOT NULL", "max_by(A.v, A.d) OVER (ROWS 2 PRECEDING) < 8",
    "bool_or(A.b) OVER (ROWS 2 PRECEDING)", "bit_or(A.w) OVER (ROWS 1 PRECEDING) < 7",
    "first_value(A.v, true) OVER (ROWS 2 PRECEDING) < 9",
    "last_value(A.v, true) OVER (ROWS 2 PRECEDING) < 9", "mysum(A.v) OVER (ROWS 1 PRECEDING) < 12",
    "extent(A.v) OVER (ROWS 1 PRECEDING).most < 9", "decay(A.d) < 9", "A.t > total(*A.w) - 20",
    "A.v < median(*A.v) + 5", "moving(A.v) OVER (ROWS 1 PRECEDING) < 15",
    "total(A.t) OVER (ROWS 1 PRECEDING) > 0",
    "ccount(A) FILTER (WHERE A.v > 3) < 3", "csum(A.v) FILTER (WHERE A.w <> 1) < 12",
    "decay(A.d) FILTER (WHERE A.v > 0) < 7", "A.t > total(*A.w) FILTER (WHERE A.v > 2) - 20",
    "avg(A.v) FILTER (WHERE A.w > 1) OVER (ROWS 3 PRECEDING) < 5",
    "median(A.v) FILTER (WHERE A.w > 1) OVER (ROWS UNBOUNDED PRECEDING) < 6",
    "total(A.t) FILTER (WHERE A.v < 5) OVER (ROWS 2 PRECEDING) % 2 = 0",
    "moving(A.v) FILTER (WHERE A.w > 0) OVER (ROWS 2 PRECEDING) < 15",
    "mysum(A.v) FILTER (WHERE A.w > 0) OVER (ROWS 2 PRECEDING) < 15",
    "total(DISTINCT A.w) OVER (ROWS 3 PRECEDING) < 7", "A.v < sum(DISTINCT *A.w) FILTER (WHERE A.v > 1) + 5",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY A.v) OVER (ROWS 3 PRECEDING) < 7",
    "A.v < percentile_cont(0.9) WITHIN GROUP (ORDER BY *A.v) + 1",
]  # fmt: skip


@pytest.mark.parametrize("condition", RUNNING)
def test_any_aggregate_of_windows_moves_inside_a_star(condition: str) -> None:
    where = f"A.t % 7 <> 0 AND ({condition}) IS NOT FALSE AND Z.t > 0"
    check(f"SELECT FIRST(A).t AS a, count(*A) AS n, Z.t FROM s AS (*A, Z) WHERE {where}")


def test_columns_of_the_partition_are_those_of_the_tuple_in_an_argument() -> None:
    rows = [{**row, "w": 2, "v": v} for row, v in zip(stream(0, 3), (3, 4, 0), strict=True)]
    query = "SELECT sum(*A.v - w) AS x, Z.t FROM s PARTITION BY w AS (*A, Z) WHERE A.v > 0 AND Z.v = 0"
    assert answered(f"{STREAM}; {query}", rows) == [(3, 3)]
