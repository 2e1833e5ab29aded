"""Matches of a search: as defined, for any division into batches, and after loss of state."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from millstream.codegen.patterns.pattern_compiler import compile_pattern
from millstream.ir.pattern import Pattern
from millstream.kernels.core.kernel import Frontier
from millstream.kernels.patterns.pattern_match import PatternError, PatternMatch
from millstream.program.program import Program
from millstream.types import BIGINT, STRING
from tests.codegen.patterns import random_patterns
from tests.codegen.patterns.forms import Patterns, Term, shown
from tests.codegen.patterns.running import by_partition, defined, searched, spec_of, tuples_of, uncompiled
from tests.inference.test_ops import PAPER, TEXT

often = settings(max_examples=60, deadline=None)


def prices(text: str) -> list[dict[str, Any]]:
    return [{"v": None if word == "-" else int(word), "w": i} for i, word in enumerate(text.split())]


any_patterns = st.one_of(random_patterns.patterns(), random_patterns.related_patterns())


@given(any_patterns, st.integers(0, 2**32))
@often
def test_the_search_finds_what_the_definition_says(pattern: Pattern, seed: int) -> None:
    """However the stream is cut, wherever the state is lost, and whatever is known of conditions."""
    note(shown(pattern))
    chance = random.Random(seed)
    programs = [compile_pattern(pattern, ops=ops) for ops in (True, False)]
    with uncompiled():
        for _ in range(3):
            rows = random_patterns.stream(chance)
            expected = defined(pattern, rows)
            for program in programs:
                cuts = [chance.randrange(len(rows)) for _ in range(chance.randrange(4))]
                found = searched(program, rows, pattern.fields, cuts, lost_at=[0, 2])
                assert by_partition(found) == expected


@given(random_patterns.patterns(), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_matches_come_in_the_same_order_however_the_stream_is_cut(pattern: Pattern, seed: int) -> None:
    note(shown(pattern))
    chance = random.Random(seed)
    program, rows = compile_pattern(pattern), random_patterns.stream(chance, 20)
    cuts = [chance.randrange(len(rows)) for _ in range(4)]
    with uncompiled():
        whole = searched(program, rows, pattern.fields)
        assert searched(program, rows, pattern.fields, cuts, range(5)) == whole
        assert searched(program, rows, pattern.fields, range(len(rows))) == whole


@given(random_patterns.failing_patterns(), st.integers(0, 2**32))
@often
def test_what_cannot_be_computed_matters_only_where_the_definition_asks_for_it(
    pattern: Pattern, seed: int
) -> None:
    note(shown(pattern))
    chance = random.Random(seed)
    program, clever = (compile_pattern(pattern, ops=ops) for ops in (False, True))
    for length in (3, 5, 8, 12, 20):
        rows = [row for row in random_patterns.stream(chance, length) if row["key"] == 0]
        cuts = [chance.randrange(len(rows) + 1) for _ in range(2)]
        expected = _defined_or_failure(pattern, rows)
        assert _matches_or_failure(program, pattern, rows, cuts) == expected
        # Attempts that cannot succeed are not made, and so do not fail.
        assert expected in ("failure", _matches_or_failure(clever, pattern, rows, cuts))


def _matches_or_failure(program: Program, pattern: Pattern, rows: list[Any], cuts: list[int]) -> Any:
    try:
        with uncompiled():
            return by_partition(searched(program, rows, pattern.fields, cuts, lost_at=[0]))
    except PatternError:
        return "failure"


def _defined_or_failure(pattern: Pattern, rows: list[Any]) -> Any:
    try:
        return defined(pattern, rows)
    except ZeroDivisionError:
        return "failure"


def test_a_tuple_inside_a_match_may_be_one_with_which_no_attempt_could_begin() -> None:
    made = Patterns("X *Y Z", v=BIGINT, w=BIGINT)
    x, y, z = made.variables()
    pattern = made.made([x.w / x.v >= 0.0, y.v != 1, z.v == 1], [x.w, z.w])
    with uncompiled():
        assert searched(pattern, prices("3 0 2 0 1 2"), pattern.fields, cuts=[2]) == [(0, (4, (0, 4)))]
        plain = compile_pattern(pattern, ops=False)
        with pytest.raises(PatternError, match=r"division by zero in X\.w / X\.v >= 0"):
            searched(plain, prices("3 1 0 2 - 2"), pattern.fields, cuts=[3, 4])
        # An attempt from 0 on could only fail with the NULL, as the one from 1 on does: it is not made.
        assert searched(pattern, prices("3 1 0 2 - 2"), pattern.fields, cuts=[3, 4]) == []


def test_that_an_attempt_could_not_go_on_is_known_after_a_loss() -> None:
    """The one from 3 on divides by zero at 2. Only when the one from 9 on fails does that matter."""
    made = Patterns("X *Y Z", v=BIGINT, w=BIGINT)
    x, y, z = made.variables()
    pattern = made.made([y.v < x.v, y.w / (x.v - 3) > -100.0, z.v > 20], [x.w])
    with uncompiled(), pytest.raises(PatternError, match="division by zero"):
        searched(pattern, prices("9 3 2 15"), pattern.fields, cuts=[2, 3], lost_at=range(3))


# ---------------------------------------------------------------- the paper's examples


def clicks() -> tuple[Pattern, list[dict[str, Any]]]:
    made = Patterns("X Y Z", page=BIGINT, kind=STRING)
    x, y, z = made.variables()
    pattern = made.made([x.kind == "a", y.kind == "d", z.kind == "p"], [y.page, z.page])
    kinds = list("adpaadpdpada")
    return pattern, [{"page": i, "kind": kind} for i, kind in enumerate(kinds)]


def test_an_advertisement_a_description_and_a_purchase_in_a_row() -> None:
    pattern, rows = clicks()
    with uncompiled():
        assert searched(pattern, rows, pattern.fields) == [(0, (2, (1, 2))), (0, (6, (5, 6)))]


def double_bottom(least: int) -> Pattern:
    """Four runs, falling and rising in turn, of at least so many tuples each."""
    made = Patterns("*W *X *Y *Z", v=BIGINT, w=BIGINT)
    w, x, y, z = made.variables()
    falling = [w.v <= w.previous.v, y.v <= y.previous.v]
    rising = [x.v >= x.previous.v, z.v >= z.previous.v]
    long = [made.measure("count", variable) >= least for variable in (w, x, y, z)]
    return made.made([*falling, *rising, *long], [w.first.w, x.first.w, y.first.w, z.first.w, z.last.w])


DOUBLE_BOTTOM = "9 8 7 8 9 8 6 7 9 5 4 6 7 6 8 9"


@pytest.mark.parametrize("in_python", [True, False])
def test_a_double_bottom(in_python: bool) -> None:
    """From the top 9 down to 7, up to 9, down to 6, up to 9. The next one begins after it."""
    rows = prices(DOUBLE_BOTTOM)
    pattern = double_bottom(2)
    expected = [(0, (8, (1, 3, 5, 7, 8)))]
    assert defined(pattern, rows) == {0: [match for _, match in expected]}
    if not in_python:
        assert searched(pattern, rows, pattern.fields, cuts=[4, 9]) == expected
        return
    with uncompiled():
        for cut in range(len(rows)):
            assert searched(pattern, rows, pattern.fields, cuts=[cut], lost_at=[0]) == expected


# ---------------------------------------------------------------- questions


def questions(pattern: Pattern, rows: list[dict[str, Any]], *, ops: bool = True) -> int:
    """Return the number of evaluated conditions of elements."""
    with uncompiled():
        kernel = PatternMatch(spec_of(compile_pattern(pattern, ops=ops, counted=True)))
        kernel.process(tuples_of(pattern.fields, rows), Frontier(len(rows), -1))
        return kernel.asked


def test_of_the_papers_text_is_asked_as_little_as_its_search_asks() -> None:
    """``tests/inference/test_ops.py`` has the paper's search, and the naive one, which asks 48 times."""
    made = Patterns("A B C D E F G H I J", kind=STRING)
    variables = made.variables()
    pattern = made.made([v.kind == kind for v, kind in zip(variables, PAPER, strict=True)], [])
    rows = [{"kind": letter} for letter in TEXT]
    assert (questions(pattern, rows), questions(pattern, rows, ops=False)) == (29, 43)


def test_what_follows_from_an_answer_is_not_asked() -> None:
    """The second tuple is offered to Y, and then it may be an X, which is above 5."""
    made = Patterns("X Y Z", v=BIGINT, w=BIGINT)
    x, y, z = made.variables()

    def of_the_second(condition: Term, value: str) -> int:
        pattern = made.made([x.v > 5, condition, z.w < 0], [x.w])
        return questions(pattern, prices(f"9 {value}")) - questions(pattern, prices("9"))

    assert [of_the_second(y.v > 3, value) for value in "24-"] == [1, 2, 1]  # not above 3, so not above 5
    assert [of_the_second(y.v > 7, value) for value in "97-"] == [1, 2, 2]  # above 7, so above 5
    assert [of_the_second(y.v < 1, value) for value in "09-"] == [1, 2, 2]  # below 1, so not above 5
    assert [of_the_second(y.w > 3, value) for value in "09-"] == [2, 2, 2]


# ---------------------------------------------------------------- rules


def test_conditions_may_multiply() -> None:
    """What multiplies has a name in generated source, which nothing else may have there."""
    made = Patterns("X Y", v=BIGINT, w=BIGINT)
    x, y = made.variables()
    pattern = made.made([y.v == x.v * 3], [x.w, y.w * 2])
    with uncompiled():
        assert searched(pattern, prices("1 4 12 5"), pattern.fields) == [(0, (2, (1, 4)))]


def test_an_attempt_that_cannot_succeed_is_not_begun() -> None:
    """Y takes 1; if Z refuses what comes then, it is above 3, and cannot be the Y of an attempt from 1 on."""
    made = Patterns("X Y Z", v=BIGINT, w=BIGINT)
    x, y, z = made.variables()
    pattern = made.made([x.v > 0, y.v <= 1, z.v <= 3], [x.w, z.w])
    with uncompiled():
        for ops, attempts in ((True, 1), (False, 2)):
            kernel = PatternMatch(spec_of(compile_pattern(pattern, ops=ops)))
            kernel.process(tuples_of(pattern.fields, prices("5 1")), Frontier(0, -1))
            assert kernel.rows == 1 + attempts
        assert searched(pattern, prices("5 1 7 1 0"), pattern.fields) == [(0, (4, (2, 4)))]


def test_an_attempt_that_is_complete_waits_for_an_older_one() -> None:
    """X = 9 has an open star of smaller ones; X = 3 with 2 and 5 is complete before it is known to fail."""
    made = Patterns("X *Y Z", v=BIGINT, w=BIGINT)
    x, y, z = made.variables()
    pattern = made.made([y.v < x.v, z.v > x.v, z.v < 20], [x.v, z.v])
    fails, matches = prices("9 3 2 5 4 25 1"), prices("9 3 2 5 4 15 1")
    with uncompiled():
        for lost_at in ([], range(7)):
            assert searched(pattern, fails, pattern.fields, range(1, 7), lost_at) == [(0, (3, (3, 5)))]
            assert searched(pattern, matches, pattern.fields, range(1, 7), lost_at) == [(0, (5, (9, 15)))]


def test_a_match_may_begin_inside_a_star_though_not_with_its_first_tuple() -> None:
    """The rise 6 6 7 is too long. It does not begin with a fall, but 6 6 is one, as prices may stay."""
    made = Patterns("*A *B C", v=BIGINT, w=BIGINT)
    a, b, c = made.variables()
    short = made.measure("count", b) < 2
    pattern = made.made([a.v <= a.previous.v, b.v >= b.previous.v, short, c.v == 1], [a.first.w, c.w])
    with uncompiled():
        assert searched(pattern, prices("5 4 6 6 7 1"), pattern.fields) == [(0, (5, (3, 5)))]


def test_an_attempt_in_the_same_star_as_an_older_one_is_kept_where_a_later_condition_tells_them_apart() -> (
    None
):
    """6 is not above 9, with which the first attempt began, but above 5, with which the second one did."""
    made = Patterns("X *Y Z", v=BIGINT, w=BIGINT)
    x, y, z = made.variables()
    falling = y.v < y.previous.v
    apart = made.made([falling, z.v > x.v], [x.v, z.v])
    by_first = made.made([falling, z.v > y.first.v], [x.v, z.v])
    by_count = made.made([falling, z.v > y.v, made.measure("count", y) == 1], [x.v, z.v])
    with uncompiled():
        assert searched(apart, prices("9 5 3 6"), apart.fields) == [(0, (3, (5, 6)))]
        assert searched(by_first, prices("9 5 3 4"), by_first.fields) == [(0, (3, (5, 4)))]
        assert searched(by_count, prices("9 5 3 4"), by_count.fields) == [(0, (3, (5, 4)))]


def test_a_count_that_is_too_small_or_too_large_rejects_the_whole_run() -> None:
    made = Patterns("*A B", v=BIGINT, w=BIGINT)
    a, b = made.variables()
    count = made.measure("count", a)
    pattern = made.made([a.v != 0, b.v == 0, count < 4, count > 1], [a.first.w, count])
    rows = prices("1 0 1 1 0 1 1 1 1 1 0 1 1 1 0")
    with uncompiled():
        assert searched(pattern, rows, pattern.fields) == [(0, (4, (2, 2))), (0, (14, (11, 3)))]


def test_the_end_of_the_input_completes_a_trailing_star() -> None:
    made = Patterns("X *Y", v=BIGINT, w=BIGINT)
    x, y = made.variables()
    pattern = made.made([x.v > 5, y.v < y.previous.v, y.last.v < 3], [x.v, y.last.v])
    with uncompiled():
        assert searched(pattern, prices("9 4 2 7 6 1"), pattern.fields) == [
            (0, (2, (9, 2))),
            (0, (5, (7, 1))),
        ]
        assert searched(pattern, prices("9 4 2 7 6 4"), pattern.fields) == [(0, (2, (9, 2)))]


def test_a_tuple_that_a_match_has_taken_does_not_belong_to_the_run_after_it() -> None:
    """The leading star is maximal on the left, but what is gone is gone."""
    made = Patterns("*A", v=BIGINT, w=BIGINT)
    (a,) = made.variables()
    pattern = made.made([a.v > 0, made.measure("count", a, running=True) <= 2], [a.first.w, a.w])
    with uncompiled():
        found = searched(pattern, prices("1 1 1 1 1 -1 1"), pattern.fields)
    assert found == [(0, (1, (0, 1))), (0, (3, (2, 3))), (0, (4, (4, 4))), (0, (6, (6, 6)))]


def test_inside_a_run_of_the_leading_star_nothing_begins() -> None:
    made = Patterns("*A B", v=BIGINT, w=BIGINT)
    a, b = made.variables()
    pattern = made.made([a.v > 0, b.v < 0], [a.first.w, b.w])
    with uncompiled():
        found = searched(pattern, prices("1 3 1 -1 1 1 0 1 -2"), pattern.fields)
    assert found == [(0, (3, (0, 3))), (0, (8, (7, 8)))]


def test_state_is_written_where_no_tuple_has_had_a_text_yet() -> None:
    made = Patterns("X Y", v=BIGINT, word=STRING)
    x, y = made.variables()
    pattern = made.made([x.v > 0, y.v > 0], [y.word])
    rows = [{"v": 1, "word": None}, {"v": 2, "word": None}]
    with uncompiled():
        assert searched(pattern, rows, pattern.fields, cuts=[1], lost_at=[0]) == [(0, (1, (None,)))]
