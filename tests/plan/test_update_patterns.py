"""The classes of results that vary with time, as in Patroumpas and Sellis."""

from collections.abc import Callable
from textwrap import dedent

import pytest

from millstream.plan.explain.plan_report import explained
from millstream.plan.nodes import Node, RelationToStream
from millstream.plan.update_patterns import UpdatePattern, grows, update_pattern

Plan = Callable[[str], Node]

WINDOWS = {
    "sliding": ("RANGE 9 SECONDS", "RANGE 9 SECONDS SLIDE 2 SECONDS", "ROWS 9", "ROWS 9 SLIDE 2", "NOW"),
    "tumbling": ("TUMBLE 9 SECONDS", "RANGE 2 SECONDS SLIDE 9 SECONDS", "TUMBLE 9 ROWS"),
    "partitioned": ("PARTITION BY a ROWS 9",),
    "landmark": (
        "UNBOUNDED",
        "UNBOUNDED SLIDE 2 SECONDS",
        "LANDMARK START AT '2026-01-01'",
        "LANDMARK END AT '2026-01-01'",
    ),
}
OPERATORS = {
    "select": "SELECT * FROM s [{0}] WHERE b > 1",
    "project": "SELECT a, b FROM s [{0}]",
    "union": "SELECT a FROM s [{0}] UNION ALL SELECT a FROM r [{1}]",
    "distinct": "SELECT DISTINCT a FROM s [{0}]",
    "join": "SELECT s.a, d FROM s [{0}] JOIN r [{1}] ON s.a = r.a",
    "aggregate": "SELECT ISTREAM a, sum(b) FROM s [{0}] GROUP BY a",
    "subtract": "SELECT a FROM s [{0}] EXCEPT ALL SELECT a FROM r [{1}]",
}

TABLE_1 = """
            | monotonic               | weakest non-monotonic | weak non-monotonic      | non-monotonic
sliding     |                         | select project union  | distinct join aggregate | subtract
tumbling    |                         |                       | select project union    | subtract
            |                         |                       | distinct join aggregate |
partitioned |                         |                       | select project union    | subtract
            |                         |                       | distinct join aggregate |
landmark    | select project union    |                       |                         | subtract
            | distinct join aggregate |                       |                         |
"""


def table_1() -> list[tuple[str, str, str]]:
    """Window, operator and class."""
    rows = [[cell.strip() for cell in line.split("|")] for line in TABLE_1.strip("\n").splitlines()]
    (_, *classes), *lines = rows
    found, variant = [], ""
    for name, *cells in lines:
        variant = name or variant
        found += [
            (window, operator, expected)
            for expected, cell in zip(classes, cells, strict=True)
            for operator in cell.split()
            for window in WINDOWS[variant]
        ]
    return found


def pattern_of(query: Node) -> UpdatePattern:
    assert isinstance(query, RelationToStream)
    return update_pattern(query.input)


def test_table_1_is_complete() -> None:
    assert len(table_1()) == len(OPERATORS) * sum(map(len, WINDOWS.values()))


@pytest.mark.parametrize(("window", "operator", "expected"), table_1())
def test_table_1(plan: Plan, window: str, operator: str, expected: str) -> None:
    assert str(pattern_of(plan(OPERATORS[operator].format(window, window)))) == expected


@pytest.mark.parametrize("operator", ["union", "join", "subtract"])
@pytest.mark.parametrize("left", WINDOWS)
@pytest.mark.parametrize("right", WINDOWS)
def test_proposition_9_the_stronger_of_two_windows_dominates(
    plan: Plan, operator: str, left: str, right: str
) -> None:
    one, other = WINDOWS[left][0], WINDOWS[right][0]
    patterns = [pattern_of(plan(OPERATORS[operator].format(window, window))) for window in (one, other)]
    assert pattern_of(plan(OPERATORS[operator].format(one, other))) is max(patterns)


GROUPS = "SELECT a, max(b) AS m FROM s [RANGE 9 SECONDS] GROUP BY a"
OTHERS = {
    "SELECT a FROM s [UNBOUNDED] UNION SELECT a FROM r [UNBOUNDED]": UpdatePattern.MONOTONIC,
    "SELECT a FROM s [RANGE 1 SECOND] UNION SELECT a FROM r [NOW]": UpdatePattern.WEAK,
    "SELECT a FROM s [UNBOUNDED] INTERSECT ALL SELECT a FROM r [UNBOUNDED]": UpdatePattern.MONOTONIC,
    "SELECT a FROM s [RANGE 1 SECOND] INTERSECT SELECT a FROM r [UNBOUNDED]": UpdatePattern.WEAK,
    "SELECT s.a FROM s [RANGE 1 SECOND] SEMI JOIN r [NOW] ON s.a = r.a": UpdatePattern.WEAK,
    "SELECT s.a FROM s [UNBOUNDED] ANTI JOIN r [UNBOUNDED] ON s.a = r.a": UpdatePattern.STRICT,
    "SELECT s.a FROM s [UNBOUNDED] LEFT JOIN r [NOW] ON s.a = r.a": UpdatePattern.STRICT,
    "SELECT s.a FROM s [UNBOUNDED] FULL JOIN r [NOW] ON s.a = r.a": UpdatePattern.STRICT,
    "SELECT DISTINCT s.a FROM s [UNBOUNDED] LEFT JOIN r [NOW] ON s.a = r.a": UpdatePattern.STRICT,
    "SELECT DISTINCT s.a FROM s [ROWS 2] JOIN r [UNBOUNDED] ON s.a = r.a": UpdatePattern.WEAK,
    "SELECT name FROM s [ROWS 2] LEFT JOIN k ON s.a = k.a": UpdatePattern.WEAKEST,
    "SELECT name FROM s [UNBOUNDED] JOIN k ON s.a = k.a WHERE b > 1": UpdatePattern.MONOTONIC,
    "SELECT s.a, count(*) FROM s [UNBOUNDED], r [NOW] GROUP BY s.a": UpdatePattern.WEAK,
    "SELECT DISTINCT a FROM (SELECT a FROM s [RANGE 9 SECONDS]) AS q": UpdatePattern.WEAK,
    "SELECT a FROM (SELECT a FROM s [NOW] EXCEPT SELECT a FROM r [NOW]) AS q": UpdatePattern.STRICT,
    # Pairs on a group stay as long as it does; those on its value leave when that is replaced.
    f"SELECT q.a FROM ({GROUPS}) AS q JOIN r [RANGE 9 SECONDS] ON q.a = r.a": UpdatePattern.WEAK,
    f"SELECT q.a FROM ({GROUPS}) AS q JOIN r [RANGE 9 SECONDS] ON q.m = r.a": UpdatePattern.STRICT,
}


@pytest.mark.parametrize("query", OTHERS)
def test_what_the_table_does_not_have(plan: Plan, query: str) -> None:
    assert pattern_of(plan(query)) is OTHERS[query]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ISTREAM {} HAVING a > 1", UpdatePattern.MONOTONIC),
        ("SELECT ISTREAM {} HAVING count(*) < 3", UpdatePattern.STRICT),
        ("SELECT DISTINCT {}", UpdatePattern.STRICT),
        ("SELECT {} UNION ALL SELECT a, a FROM r [UNBOUNDED]", UpdatePattern.MONOTONIC),
        ("SELECT {} UNION SELECT a, a FROM r [UNBOUNDED]", UpdatePattern.STRICT),
        ("SELECT {} INTERSECT SELECT a, a FROM r [UNBOUNDED]", UpdatePattern.STRICT),
    ],
)
def test_values_of_an_aggregate_are_replaced_and_so_is_what_is_made_of_them(
    plan: Plan, query: str, expected: UpdatePattern
) -> None:
    """Its groups stay, over a landmark for ever; those with less than three tuples do not."""
    assert pattern_of(plan(query.format("a, count(*) AS n FROM s [UNBOUNDED] GROUP BY a"))) is expected


def test_explain_shows_the_class_of_every_operator_that_varies(plan: Plan) -> None:
    query = plan(
        "SELECT max(b) FROM s [UNBOUNDED START AT '2026-01-01'], r [RANGE 9 SECONDS] WHERE s.a = r.a"
    )
    assert explained(query) == dedent("""
        RelationToStream ISTREAM
        └─ Project __agg0 AS max(b)  -- weak non-monotonic
           └─ WindowAggregate max(b) AS __agg0  -- weak non-monotonic
              │    __agg0: two stacks, O(1)
              └─ Filter s.a = r.a  -- weak non-monotonic
                 └─ WindowJoin cross  -- weak non-monotonic
                    ├─ Windowed [LANDMARK START AT '2026-01-01' WATTR t]  -- context free, monotonic
                    │  └─ StreamScan s from kafka ORDER BY t
                    └─ Windowed [RANGE 9 SECONDS WATTR u]  -- context free, weakest non-monotonic
                       └─ StreamScan r from kafka ORDER BY u
    """).strip("\n")


def test_windows_that_are_reported_when_they_end_have_no_class(plan: Plan) -> None:
    assert "monotonic" not in explained(plan("SELECT a, count(*) FROM s [TUMBLE 9 SECONDS] GROUP BY a"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a, b FROM s [UNBOUNDED]", True),
        ("SELECT DISTINCT a FROM s [UNBOUNDED]", True),
        ("SELECT ISTREAM a, sum(b) AS n FROM s [UNBOUNDED] GROUP BY a", False),
        ("SELECT a FROM s [RANGE 9 SECONDS]", False),
    ],
)
def test_rows_of_aggregates_are_replaced_though_their_groups_only_grow(
    plan: Plan, query: str, expected: bool
) -> None:
    relation = plan(query)
    assert isinstance(relation, RelationToStream)
    assert grows(relation.input) is expected
