"""Each rule: a plan before, the same plan after, and the cases where it must not fire."""

from collections.abc import Callable
from textwrap import dedent

import pytest

from millstream.plan.explain.plan_report import tree
from millstream.plan.nodes import Filter, Node, OverAggregate, Windowed
from millstream.plan.optimize import STAGES, Stage, optimize, trace
from millstream.plan.rules.first_rows_of_partitions import first_rows_of_partitions
from millstream.plan.rules.merge_filters import merge_filters
from millstream.plan.rules.merge_projects import merge_projects
from millstream.plan.rules.push_filter_below_project import push_filter_below_project
from millstream.plan.rules.push_filter_below_rename import push_filter_below_rename
from millstream.plan.rules.push_filter_into_join import push_filter_into_join
from millstream.types import BIGINT

Plan = Callable[[str], Node]


def after(plan: Node, *rules: Callable[[Node], Node]) -> str:
    return tree(optimize(plan, [Stage("test", rules)]))


def shown(text: str) -> str:
    return dedent(text).strip("\n")


def test_push_filter_below_rename(plan: Plan) -> None:
    query = plan("SELECT a FROM doubled d WHERE d.bb > 3")
    assert after(query, push_filter_below_rename) == shown("""
        Project d.a
        └─ Rename AS d
           └─ Filter bb > 3
              └─ Project s.a, s.b * 2 AS bb, s.t
                 └─ Filter s.a > 0
                    └─ StreamScan s from kafka ORDER BY t
    """)


def test_push_filter_below_project(plan: Plan) -> None:
    query = plan("SELECT a FROM doubled d WHERE d.bb > 3")
    assert after(query, push_filter_below_rename, push_filter_below_project) == shown("""
        Project d.a
        └─ Rename AS d
           └─ Project s.a, s.b * 2 AS bb, s.t
              └─ Filter (s.b * 2) > 3
                 └─ Filter s.a > 0
                    └─ StreamScan s from kafka ORDER BY t
    """)


def test_a_filter_on_chance_stays_where_it_is(plan: Plan) -> None:
    query = plan("SELECT x FROM (SELECT rand() AS x, a FROM s) q WHERE x > 0.5 AND a > 1")
    assert after(query, push_filter_below_rename, push_filter_below_project, merge_filters) == shown("""
        Project q.x
        └─ Rename AS q
           └─ Filter x > 0.5
              └─ Project rand() AS x, s.a
                 └─ Filter s.a > 1
                    └─ StreamScan s from kafka ORDER BY t
    """)


def test_merge_filters_keeps_what_was_tested_first_first(plan: Plan) -> None:
    query = plan("SELECT a FROM doubled d WHERE d.a < 9 OR d.a = 11")
    rules = (push_filter_below_rename, push_filter_below_project, merge_filters)
    assert "Filter s.a > 0 AND (s.a < 9 OR s.a = 11)" in after(query, *rules)


def test_push_filter_into_join(plan: Plan) -> None:
    query = plan("SELECT name FROM s JOIN k ON s.a = k.a WHERE b > 1 AND name <> 'x' AND b > length(name)")
    assert after(query, push_filter_into_join) == shown("""
        Project k.name
        └─ TableJoin inner ON s.a = k.a AND s.b > length(k.name)
           ├─ Filter s.b > 1
           │  └─ StreamScan s from kafka ORDER BY t
           └─ Filter k.name <> 'x'
              └─ TableScan k from csv 'k.csv'
    """)


def test_a_condition_on_the_invented_side_of_an_outer_join_stays_above(plan: Plan) -> None:
    query = plan("SELECT name FROM s LEFT JOIN k ON s.a = k.a WHERE name IS NULL AND b > 1")
    assert after(query, push_filter_into_join) == shown("""
        Project k.name
        └─ Filter k.name IS NULL
           └─ TableJoin left ON s.a = k.a
              ├─ Filter s.b > 1
              │  └─ StreamScan s from kafka ORDER BY t
              └─ TableScan k from csv 'k.csv'
    """)


def test_merge_projects(plan: Plan) -> None:
    query = plan("SELECT bb + 1 AS x FROM (SELECT b * 2 AS bb FROM s) q")
    assert after(query, merge_projects) == shown("""
        Project (s.b * 2)+1 AS x
        └─ StreamScan s from kafka ORDER BY t
    """).replace(")+1", ") + 1")


def test_merge_projects_does_no_work_twice(plan: Plan) -> None:
    query = plan("SELECT bb + bb AS x FROM (SELECT b * 2 AS bb FROM s) q")
    assert optimize(query, [Stage("test", (merge_projects,))]) == query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM doubled d WHERE d.bb > 3",
        "SELECT a, name FROM doubled JOIN k USING (a) WHERE bb > 1",
        "SELECT a, count(*) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND] GROUP BY a HAVING count(*) > 2",
    ],
)
def test_rules_come_to_an_end_and_can_be_traced(plan: Plan, query: str) -> None:
    before = plan(query)
    steps = list(trace(before))
    best = optimize(before)
    assert best == (steps[-1].plan if steps else before)
    assert optimize(best) == best
    assert {step.stage for step in steps} <= {stage.name for stage in STAGES}
    assert [c.name for c in best.schema] == [c.name for c in before.schema]


@pytest.mark.parametrize(
    "window",
    [
        "ROWS 10",
        "RANGE 10 ROWS SLIDE 2 ROWS WATTR row_num PATTR a",
        "RANGE 1 MINUTE RATTR t SLIDE 2 ROWS SATTR row_num",
        "SESSION GAP 5 SECONDS",
        "START WHEN a > 1 END WHEN a < 0",
        "TUMBLE 5 SECONDS",
    ],
)
def test_a_filter_stays_above_a_window(plan: Plan, window: str) -> None:
    """Which tuples are counted, make a session or start a window is not for WHERE to say."""
    query = plan(f"SELECT count(*) FROM doubled [{window}] JOIN k ON doubled.a = k.a WHERE bb > 1")
    nodes = list(optimize(query).walk())
    [window_at] = [i for i, node in enumerate(nodes) if isinstance(node, Windowed)]
    filters = [i for i, node in enumerate(nodes) if isinstance(node, Filter) and "bb" in str(node.conditions)]
    assert filters
    assert max(filters) < window_at


def test_the_bounds_of_a_window_have_one_type_in_analysis_and_plan(plan: Plan) -> None:
    for window in ("NOW", "UNBOUNDED", "SESSION GAP 5", "START WHEN a > 1 END WHEN a < 0", "ROWS 3"):
        # The timestamp travels along unselected.
        query = plan(f"SELECT window_start, window_end, wid, count(*) AS n FROM (SELECT a FROM n) [{window}]")
        # It is a SMALLINT, but windows may begin before and end behind all of these.
        edge = wid = BIGINT
        [node] = [node for node in query.walk() if isinstance(node, Windowed)]
        assert [c.type for c in query.schema] == [edge, edge, wid, BIGINT]
        assert [c.type for c in node.schema[-3:]] == [edge, edge, wid]
    query = plan("SELECT wid, count(*) AS n FROM n [RANGE 5 RATTR i SLIDE 1 ROW SATTR row_num]")
    [node] = [node for node in query.walk() if isinstance(node, Windowed)]
    assert query.schema[0].type == node.schema[-1].type == BIGINT


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("n <= 3", 3),
        ("n < 3", 2),
        ("n = 1", 1),
        ("3 >= n", 3),
        ("3 > n", 2),
        ("(n BETWEEN 2 AND 5)", 5),
        ("n <= 3 AND a > 1", 3),
        ("n >= 3", None),
        ("n <= b", None),
        ("n <= 3 OR a > 1", None),
        ("n <> 3", None),
    ],
)
def test_first_rows_of_partitions(plan: Plan, condition: str, most: int | None) -> None:
    numbered = "SELECT a, b, row_number() OVER (PARTITION BY a) AS n FROM s"
    query = optimize(plan(f"SELECT a FROM ({numbered}) WHERE {condition}"))
    kept = [node.first for node in query.walk() if isinstance(node, OverAggregate)]
    assert [first and first[1] for first in kept] == [most]
    rule = Stage("test", (first_rows_of_partitions,))
    assert tree(optimize(query, [rule])) == tree(query)
