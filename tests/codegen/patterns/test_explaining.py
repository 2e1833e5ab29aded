"""EXPLAIN PATTERN: how a pattern is searched for, as text and as a graph."""

from __future__ import annotations

import re
from inspect import cleandoc

import pytest

from millstream.inference.condition_text import ConditionText
from millstream.plan.builder import build
from millstream.plan.explain.explain_pattern import explained_patterns
from millstream.plan.optimize import optimize
from tests.analysis.test_patterns import DOUBLE_BOTTOM, JAMS, VISITED, analyse
from tests.inference.test_implications import searched


def explained(text: str, mode: str = "PATTERN") -> str:
    return explained_patterns(optimize(build(analyse(text))), mode)


def part(text: str, title: str) -> str:
    """A part of an explanation, by its first words."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(title))
    inside = []
    for line in lines[first + 1 :]:
        if not line.startswith("  "):
            break
        inside.append(line.removeprefix("  "))
    return "\n".join(inside)


@pytest.mark.parametrize(
    "condition",
    [
        "A.n > 1 AND A.name = 'it''s'",
        "(A.n > 1 OR A.n < -1)",
        "(A.n > 1 AND A.m > 1 OR A.sold)",
        "NOT A.sold",
        "NOT (A.n > 1 OR A.sold)",
        "A.n IS NOT NULL",
        "(A.n + A.m) * 2 - (A.n - A.m) > 0",
        "A.price > 1.5 * A.previous.previous.price",
        "A.cost < 12.50",
        "A.name IN ('a', 'b')",
        "A.t > A.previous.t + INTERVAL 5 SECONDS",
        "ccount(A) FILTER (WHERE A.price > 3) < 6 AND A.price > 1",
        "A.price > FIRST(A).price AND ccount(A) <= 6 AND avg(A.price) OVER (ROWS 4 PRECEDING) > 1",
        "CASE WHEN A.n > 1 THEN A.m ELSE 0 END = 1",
        "abs(A.n) = 1",
    ],
)
def test_conditions_are_shown_as_they_were_written(condition: str) -> None:
    form = searched("*A, B", condition)
    assert ConditionText(form).conditions(form.elements[0].per_tuple) == condition


def test_final_conditions_have_their_stars() -> None:
    condition = (
        "count(*A) > 1 AND percentile(*A.price, 0.5) > 2 AND LAST(A).n > FIRST(A).n"
        " AND percentile_disc(0.5) WITHIN GROUP (ORDER BY *A.n DESC) FILTER (WHERE A.price > 3) > 1"
        " AND listagg(*A.name, '-') WITHIN GROUP (ORDER BY *A.price) > 'a'"
    )
    form = searched("*A, B", condition)
    assert ConditionText(form).conditions(form.elements[0].final) == condition


def test_a_query_without_a_pattern_says_so() -> None:
    assert explained("SELECT speed FROM speed") == "this query has no sequence pattern"


def test_what_cannot_be_run_yet_is_said() -> None:
    text = explained("SELECT X.speed FROM speed AS (X) WHERE X.speed IN (SELECT most FROM stations)")
    assert text.startswith(
        "speed AS (X)\ncannot be searched for yet: in 'X.speed IN (SELECT most FROM stations)', IN"
    )


def test_jams() -> None:
    assert explained(JAMS) == cleandoc("""
        speed PARTITION BY stationId AS (X, *Y)
        elements
          X   one tuple   X.speed > 50
          *Y  each tuple  Y.speed < Y.previous.speed AND ccount(Y) <= 6
              complete    LAST(Y).speed < 0.3 * X.speed
        automaton
          start  ->  X      X takes the tuple
          X      ->  Y      Y takes the tuple
          Y      ->  Y      Y takes the tuple
          Y      ->  match  a tuple that Y does not take, or the end of the input
        implications (1 holds, 0 fails, ? unknown)
          taken by     X  Y
                    X  1  ?
                    Y  ?  ?
          refused by     X  Y
                      X  0  ?
                      Y  ?  ?
        after a failure
          at           shift  next  the next attempt starts  and asks
          X            1      1     after the tuple          X
          Y            1      1     at the tuple             X
          Y, complete  1      1     at the first tuple of Y  X
        kept
          while X is asked  no tuples
          while Y grows     tuples from the first of Y on
          of X: X.speed, X.stationId
          of Y: ccount(Y), LAST(Y).speed, LAST(Y).speedTime
        asked of matches
          X.stationId = A.stationId
    """)


def test_a_strict_double_bottom_goes_on_with_its_second_fall() -> None:
    text = explained(DOUBLE_BOTTOM.replace("price <= ", "price < "))
    assert re.split(r"\s{2,}", part(text, "after a failure").splitlines()[-1])[-2:] == [
        "at the first tuple of Y",
        "whether W is as wanted, which is complete",
    ]


def test_graphs_show_what_is_taken_and_where_a_failure_leads() -> None:
    assert explained(VISITED, "PATTERN DOT") == cleandoc("""
        digraph pattern {
          rankdir=LR;
          start [shape=point];
          e0 [shape=circle, label="*A"];
          e1 [shape=circle, label="B"];
          match [shape=doublecircle];
          start -> e0 [label="A.PageType <> 'd'"];
          e0 -> e0 [label="A.PageType <> 'd'"];
          e0 -> e1 [label="complete: count(*A) < 20, then B.PageType = 'd'"];
          e1 -> match [label=""];
          start -> start [label="not A", style=dotted];
          e0 -> start [label="not A, complete", style=dotted];
          e0 -> start [label="not B", style=dotted];
        }
    """)
    drawn = explained(VISITED, "PATTERN MERMAID").splitlines()
    assert drawn[0] == "flowchart LR"
    assert "  start -->|\"A.PageType #lt;#gt; 'd'\"| e0" in drawn
    assert '  e0 -.->|"not B"| start' in drawn


def test_columns_computed_before_the_search_are_named() -> None:
    text = explained("SELECT X.t FROM nested AS (X) WHERE array_contains(X.tags, 'a')")
    assert part(text, "computed") == "__computed0 is array_contains(nested.tags, 'a')"
    assert part(text, "elements") == "X  one tuple  X.__computed0"
