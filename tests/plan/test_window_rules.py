"""The rewrites of Patroumpas and Sellis, section 5: plans after each rule, and where it must not fire."""

from collections.abc import Callable
from textwrap import dedent

import pytest

from millstream.plan.explain.plan_report import tree
from millstream.plan.nodes import Filter, Node, StreamScan, StreamUnion, Windowed, WindowJoin
from millstream.plan.optimize import Rule, Stage, optimize
from millstream.plan.rules.order_window_joins import order_window_joins
from millstream.plan.rules.push_condition_to_join_side import push_condition_to_join_side
from millstream.plan.rules.push_filter_below_window import push_filter_below_window
from millstream.plan.rules.push_filter_into_window_join import push_filter_into_window_join
from millstream.plan.rules.union_of_windows import union_of_windows

Plan = Callable[[str], Node]


def after(plan: Node, *rules: Rule) -> Node:
    return optimize(plan, [Stage("test", rules)])


def is_shown(plan: Node, text: str) -> bool:
    return tree(plan) == dedent(text).strip("\n")


# ---------------------------------------------------------------- selection and windows


@pytest.mark.parametrize(
    "window",
    [
        "RANGE 9 SECONDS",
        "RANGE 9 SECONDS SLIDE 2 SECONDS",
        "TUMBLE 9 SECONDS",
        "NOW",
        "UNBOUNDED",
        "UNBOUNDED SLIDE 2 SECONDS",
        "LANDMARK START AT '2026-01-01'",
    ],
)
def test_selection_commutes_with_logical_windows(plan: Plan, window: str) -> None:
    query = after(plan(f"SELECT a FROM s [{window}] WHERE b > 1 AND c = 'x'"), push_filter_below_window)
    [windowed] = [node for node in query.walk() if isinstance(node, Windowed)]
    assert isinstance(windowed.input, Filter)
    assert sum(isinstance(node, Filter) for node in query.walk()) == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM s [ROWS 9] WHERE b > 1",
        "SELECT a FROM s [PARTITION BY a ROWS 9] WHERE a > 1",
        "SELECT a FROM s [TUMBLE 9 ROWS] WHERE b > 1",
        # On the day of the first tuple, whichever that is.
        "SELECT a FROM s [UNBOUNDED START AT '07:00:00'] WHERE b > 1",
        "SELECT a FROM s [RANGE 9 SECONDS] WHERE rand() > 0.5 AND b > rand()",
        "SELECT a FROM s [RANGE 9 SECONDS] WHERE window_end IS NULL",
        # Reported when they end.
        "SELECT count(*) FROM s [TUMBLE 9 SECONDS] WHERE b > 1",
        "SELECT count(*) FROM s [SESSION GAP 9 SECONDS] WHERE b > 1",
    ],
)
def test_a_selection_stays_above_a_window(plan: Plan, query: str) -> None:
    assert after(plan(query), push_filter_below_window) == plan(query)


def test_only_what_concerns_tuples_goes_below_a_window(plan: Plan) -> None:
    query = plan("SELECT ISTREAM a FROM s [NOW] WHERE b > 1 AND wid IS NULL AND a < 7")
    assert is_shown(
        after(query, push_filter_below_window),
        """
        RelationToStream ISTREAM
        └─ Project s.a
           └─ Filter s.wid IS NULL
              └─ Windowed [NOW]
                 └─ Filter s.b > 1 AND s.a < 7
                    └─ StreamScan s from kafka ORDER BY t
        """,
    )


# ---------------------------------------------------------------- selection and joins

RULES = (push_filter_into_window_join, push_condition_to_join_side, push_filter_below_window)


def test_an_inner_join_takes_in_selections(plan: Plan) -> None:
    query = plan(
        "SELECT d FROM s [NOW], r [RANGE 9 SECONDS] WHERE s.a = r.a AND b > 1 AND d > 2 AND rand() < 1"
    )
    assert is_shown(
        after(query, *RULES),
        """
        RelationToStream ISTREAM
        └─ Project r.d
           └─ Filter rand() < 1
              └─ WindowJoin inner ON s.a = r.a
                 ├─ Windowed [NOW]
                 │  └─ Filter s.b > 1
                 │     └─ StreamScan s from kafka ORDER BY t
                 └─ Windowed [RANGE 9 SECONDS WATTR u]
                    └─ Filter r.d > 2
                       └─ StreamScan r from kafka ORDER BY u
        """,
    )


def test_a_selection_on_a_row_window_is_a_condition_of_the_join(plan: Plan) -> None:
    query = plan("SELECT d FROM s [ROWS 9] JOIN r [NOW] ON s.a = r.a AND d > 2 WHERE b > 1")
    assert is_shown(
        after(query, *RULES),
        """
        RelationToStream ISTREAM
        └─ Project r.d
           └─ WindowJoin inner ON s.a = r.a AND s.b > 1
              ├─ Windowed [ROWS 9 SLIDE 1]
              │  └─ StreamScan s from kafka ORDER BY t
              └─ Windowed [NOW]
                 └─ Filter r.d > 2
                    └─ StreamScan r from kafka ORDER BY u
        """,
    )


@pytest.mark.parametrize(
    ("kind", "where", "on"),
    [
        # Which of the streams may be asked before: for a condition in WHERE, and for one in ON.
        ("INNER", "sr", "sr"),
        ("LEFT", "s", "r"),
        ("RIGHT", "r", "s"),
        ("FULL", "", ""),
        ("SEMI", "s", "sr"),
        ("ANTI", "s", "r"),
    ],
)
def test_no_selection_goes_where_nulls_are_invented_or_rows_are_kept(
    plan: Plan, kind: str, where: str, on: str
) -> None:
    windows = f"s [NOW] {kind} JOIN r [NOW] ON s.a = r.a"
    seen = "s" if kind in ("SEMI", "ANTI") else "sr"
    for condition, stream in (("s.b > 1", "s"), ("r.d > 1", "r")):
        query = plan(f"SELECT s.a FROM {windows} AND {condition}")
        assert filtered_streams(after(query, *RULES)) == (stream if stream in on else "")
        if stream in seen:
            query = plan(f"SELECT s.a FROM {windows} WHERE {condition}")
            assert filtered_streams(after(query, *RULES)) == (stream if stream in where else "")


def filtered_streams(plan: Node) -> str:
    filters = (node.input for node in plan.walk() if isinstance(node, Filter))
    return "".join(node.stream.name for node in filters if isinstance(node, StreamScan))


def test_a_selection_sinks_through_several_joins(plan: Plan) -> None:
    query = plan(
        "SELECT s.a FROM s [NOW], r [NOW], s [ROWS 2] n WHERE s.a = r.a AND r.a = n.a AND d > 1 AND n.b > 1"
    )
    assert is_shown(
        after(query, *RULES),
        """
        RelationToStream ISTREAM
        └─ Project s.a
           └─ WindowJoin inner ON r.a = n.a AND n.b > 1
              ├─ WindowJoin inner ON s.a = r.a
              │  ├─ Windowed [NOW]
              │  │  └─ StreamScan s from kafka ORDER BY t
              │  └─ Windowed [NOW]
              │     └─ Filter r.d > 1
              │        └─ StreamScan r from kafka ORDER BY u
              └─ Windowed [ROWS 2 SLIDE 1]
                 └─ StreamScan s AS n from kafka ORDER BY t
        """,
    )


# ---------------------------------------------------------------- the order of joins


def order(plan: Node) -> str:
    joins = [node for node in plan.walk() if isinstance(node, WindowJoin)]
    return " ".join(node.alias for node in joins[0].walk() if isinstance(node, Windowed))


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ("s [UNBOUNDED] AS x, s [RANGE 9 SECONDS] AS y, s [NOW] AS z", "z y x"),
        ("s [RANGE 9 SECONDS] AS x, s [RANGE 1 MINUTE] AS y, s [RANGE 8 SECONDS] AS z", "z x y"),
        ("s [ROWS 9] AS x, s [ROWS 8] AS y, s [PARTITION BY a ROWS 1] AS z", "y x z"),
        ("s [NOW] AS x, s [NOW] AS y, s [NOW] AS z", "x y z"),
        # Two are no matter: each tuple meets the window of the other side.
        ("s [UNBOUNDED] AS x, s [NOW] AS y", "x y"),
    ],
)
def test_small_windows_are_joined_first(plan: Plan, windows: str, expected: str) -> None:
    assert order(after(plan(f"SELECT x.a FROM {windows}"), order_window_joins)) == expected


def test_related_windows_are_joined_before_smaller_ones_that_are_not(plan: Plan) -> None:
    query = plan("""SELECT x.a FROM s [ROWS 3] AS x JOIN s [ROWS 4] AS y ON x.b < y.b
                    JOIN s [ROWS 5] AS z ON x.a = z.a JOIN s [ROWS 9] AS w ON y.a = w.a AND w.b > 1""")
    assert is_shown(
        after(query, order_window_joins),
        """
        RelationToStream ISTREAM
        └─ Project x.a
           └─ WindowJoin inner ON y.a = w.a AND w.b > 1
              ├─ WindowJoin inner ON x.b < y.b
              │  ├─ WindowJoin inner ON x.a = z.a
              │  │  ├─ Windowed [ROWS 3 SLIDE 1]
              │  │  │  └─ StreamScan s AS x from kafka ORDER BY t
              │  │  └─ Windowed [ROWS 5 SLIDE 1]
              │  │     └─ StreamScan s AS z from kafka ORDER BY t
              │  └─ Windowed [ROWS 4 SLIDE 1]
              │     └─ StreamScan s AS y from kafka ORDER BY t
              └─ Windowed [ROWS 9 SLIDE 1]
                 └─ StreamScan s AS w from kafka ORDER BY t
        """,
    )
    assert after(after(query, order_window_joins), order_window_joins) == after(query, order_window_joins)


@pytest.mark.parametrize(
    "joins",
    [
        "LEFT JOIN s [ROWS 8] AS y ON x.a = y.a JOIN s [NOW] AS z ON x.a = z.a",
        "JOIN s [ROWS 8] AS y ON x.a = y.a LEFT JOIN s [NOW] AS z ON x.a = z.a",
        "JOIN s [ROWS 8] AS y ON x.a = y.a SEMI JOIN s [NOW] AS z ON x.a = z.a",
        "JOIN s [ROWS 8] AS y ON x.a > rand() JOIN s [NOW] AS z ON x.a = z.a",
    ],
)
def test_other_joins_stay_in_their_order(plan: Plan, joins: str) -> None:
    query = plan(f"SELECT x.a FROM s [ROWS 9] AS x {joins}")
    assert after(query, order_window_joins) == query


def test_inner_joins_below_others_are_ordered_for_themselves(plan: Plan) -> None:
    query = plan("""SELECT x.a FROM s [ROWS 9] AS x JOIN s [ROWS 8] AS y ON x.a = y.a
                    JOIN s [ROWS 7] AS z ON x.a = z.a LEFT JOIN s [NOW] AS w ON x.a = w.a""")
    assert order(after(query, order_window_joins)) == "z x y w"


# ---------------------------------------------------------------- unions


def test_equal_windows_of_time_are_united_below_one_window(plan: Plan) -> None:
    query = plan("SELECT a, b FROM s [RANGE 9 SECONDS] UNION ALL SELECT a, d FROM r [RANGE 9 SECONDS]")
    assert is_shown(
        after(query, union_of_windows),
        """
        RelationToStream ISTREAM
        └─ Project a, b
           └─ Windowed [RANGE 9 SECONDS]
              └─ StreamUnion ALL, merged by timestamp
                 ├─ Project s.a, s.b
                 │  └─ StreamScan s from kafka ORDER BY t
                 └─ Project r.a, r.d
                    └─ StreamScan r from kafka ORDER BY u
        """,
    )


def test_unions_associate(plan: Plan) -> None:
    query = " UNION ALL ".join(f"SELECT a FROM {stream} [TUMBLE 9 SECONDS]" for stream in "srs")
    found = list(after(plan(query), union_of_windows).walk())
    assert [sum(isinstance(node, kind) for node in found) for kind in (Windowed, StreamUnion)] == [1, 2]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM s [ROWS 9] UNION ALL SELECT a FROM r [ROWS 9]",
        "SELECT a FROM s [PARTITION BY a ROWS 9] UNION ALL SELECT a FROM r [PARTITION BY a ROWS 9]",
        "SELECT a FROM s [RANGE 9 SECONDS] UNION ALL SELECT a FROM r [RANGE 8 SECONDS]",
        "SELECT a FROM s [RANGE 9 SECONDS] UNION ALL SELECT a FROM r [TUMBLE 9 SECONDS]",
        "SELECT a FROM s [RANGE 9 SECONDS] UNION SELECT a FROM r [RANGE 9 SECONDS]",
        "SELECT a FROM s [RANGE 9 SECONDS] EXCEPT ALL SELECT a FROM r [RANGE 9 SECONDS]",
        "SELECT a FROM s [LANDMARK END AT '07:00'] UNION ALL SELECT a FROM r [LANDMARK END AT '07:00']",
        "SELECT a, rand() FROM s [NOW] UNION ALL SELECT a, d FROM r [NOW]",
        "SELECT wid FROM s [UNBOUNDED] UNION ALL SELECT a FROM r [UNBOUNDED]",
        "SELECT a AS wid FROM s [UNBOUNDED] UNION ALL SELECT a FROM r [UNBOUNDED]",
        "SELECT a, a FROM s [UNBOUNDED] UNION ALL SELECT a, d FROM r [UNBOUNDED]",
        "SELECT a FROM m [RANGE 9] UNION ALL SELECT a FROM m [RANGE 9 WATTR a]",
    ],
)
def test_other_unions_stay_as_they_are(plan: Plan, query: str) -> None:
    assert after(plan(query), union_of_windows) == plan(query)
