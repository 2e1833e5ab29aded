"""EXPLAIN PATTERN: how a pattern is searched for, as text and as a graph."""

from __future__ import annotations

import pytest
from tests.analysis.test_patterns import (
    analyse,
)
from tests.pattern.test_implications import searched

from millstream.pattern.texts import Texts
from millstream.plan.builder import build
from millstream.plan.explain_patterns import explained_patterns
from millstream.plan.optimize import optimize


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
        "A.price > FIRST(A).price AND ccount(A) <= 6 AND avg(A.price) OVER (ROWS 4 PRECEDING) > 1",
        "CASE WHEN A.n > 1 THEN A.m ELSE 0 END = 1",
        "abs(A.n) = 1",
    ],
)
def test_conditions_are_shown_as_they_were_written(condition: str) -> None:
    form = searched("*A, B", condition)
    assert Texts(form).conditions(form.elements[0].per_tuple) == condition


def test_final_conditions_have_their_stars() -> None:
    condition = "count(*A) > 1 AND percentile(*A.price, 0.5) > 2 AND LAST(A).n > FIRST(A).n"
    form = searched("*A, B", condition)
    assert Texts(form).conditions(form.elements[0].final) == condition


def test_a_query_without_a_pattern_says_so() -> None:
    assert explained("SELECT speed FROM speed") == "this query has no sequence pattern"


def test_what_cannot_be_run_yet_is_said() -> None:
    text = explained("SELECT X.speed FROM speed AS (X) WHERE X.speed IN (SELECT most FROM stations)")
    assert text.startswith(
        "speed AS (X)\ncannot be searched for yet: in 'X.speed IN (SELECT most FROM stations)', IN"
    )
