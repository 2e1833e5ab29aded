"""Algorithms of aggregates in EXPLAIN."""

from collections.abc import Callable
from textwrap import dedent

import pytest

from millstream.catalog.builtin_aggregates import AGGREGATES
from millstream.catalog.functions import FunctionKind, builtin, builtin_names
from millstream.plan.explain.plan_report import explained
from millstream.plan.nodes import Node

Plan = Callable[[str], Node]


def test_explain_names_strategy_and_cost_below_the_operator(plan: Plan) -> None:
    text = explained(plan("SELECT sum(a), median(b), collect_list(b) FROM s [TUMBLE 1 MINUTE] GROUP BY a"))
    assert text == dedent("""
        Project __agg0 AS sum(a), __agg1 AS median(b), __agg2 AS collect_list(b)
        └─ WindowAggregate sum(a) AS __agg0, median(b) AS __agg1, collect_list(b) AS __agg2 GROUP BY s.a
           │    __agg0: difference of running totals, O(1)
           │    __agg1: order statistics, O(log w)
           │    __agg2: recomputed from the content, O(w)
           └─ Windowed [RANGE 1 MINUTE SLIDE 1 MINUTE WATTR t]  -- context free
              └─ StreamScan s from kafka ORDER BY t
    """).strip("\n")


@pytest.mark.parametrize(
    ("call", "way"),
    [
        ("count(*)", "difference of running totals, O(1)"),
        ("avg(CAST(b AS DOUBLE))", "two stacks, O(1)"),
        ("max_by(a, b)", "two stacks, O(1)"),
        ("max_by(a, b, 3)", "recomputed from the content, O(w)"),
        ("count(DISTINCT b)", "order statistics, O(log w)"),
        ("count(DISTINCT a, b)", "recomputed from the content, O(w)"),
        ("max(DISTINCT b)", "two stacks, O(1)"),
        ("sum(DISTINCT b)", "recomputed from the content, O(w)"),
        ("approx_count_distinct(b)", "order statistics, exact, O(log w)"),
    ],
)
def test_what_decides_is_the_function_its_argument_and_distinct(plan: Plan, call: str, way: str) -> None:
    assert f"__agg0: {way}\n" in explained(plan(f"SELECT {call} OVER (ROWS 9 PRECEDING) FROM s"))


def test_where_nothing_leaves_nothing_has_to_be_undone(plan: Plan) -> None:
    over = "OVER (ROWS UNBOUNDED PRECEDING)"
    text = explained(plan(f"SELECT stddev(b) {over}, median(b) {over} FROM s"))
    assert "__agg0: kept up to date, O(1)\n" in text
    assert "__agg1: order statistics, O(log w)\n" in text


def test_only_sketches_and_what_is_no_aggregate_of_values_have_no_strategy() -> None:
    names = {name for name in builtin_names() if _kind(name) is FunctionKind.AGGREGATE}
    sketches = {name for name in names if name.startswith(("hll_", "kll_", "theta_", "tuple_", "bitmap_"))}
    sketches |= {"count_min_sketch", "approx_top_k_accumulate", "approx_top_k_combine"}
    others = {"schema_of_variant_agg", "measure", "grouping", "grouping_id"}
    assert names - AGGREGATES <= sketches | others
    assert names >= AGGREGATES


def _kind(name: str) -> FunctionKind | None:
    known = builtin(name)
    return None if known is None else known.kind
