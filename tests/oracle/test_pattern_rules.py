"""Sequence patterns, sentence by sentence (semantics, section 8)."""

import pytest

from tests.oracle.little import Cells, ask, shown

STREAM = "CREATE STREAM s (k STRING, v INT, t INT) ORDER BY t"


def numbers(*values: int | None) -> str:
    """A stream of one partition: its values, at 1, 2, 3, ..."""
    rows = [f"x | {'' if value is None else value} | {t}" for t, value in enumerate(values, start=1)]
    return "\n".join(["k | v | t", *rows])


def found(select: str, pattern: str, where: str, *values: int | None, ended: bool = True) -> Cells:
    """Return the rows of a pattern on a stream of numbers, the time of each match first."""
    query = f"SELECT {select} FROM s AS ({pattern}){f' WHERE {where}' if where else ''}"
    return shown(ask(f"{STREAM}; {query}", s=numbers(*values), ended=ended))[1:]


def runs(pattern: str, where: str, *values: int | None, ended: bool = True) -> list[str]:
    """Return the first and last tuple of each match; the pattern begins with A and ends with Z."""
    first = "FIRST(A).t" if "*A" in pattern else "A.t"
    rows = found(f"{first}, Z.t", pattern, where, *values, ended=ended)
    assert all(time == end for time, _, end in rows)
    return [f"{start}-{end}" for _, start, end in rows]


# ---------------------------------------------------------------- attempts


def test_tuples_of_a_match_follow_each_other_in_their_partition() -> None:
    result = ask(
        f"{STREAM}; SELECT k, A.t, Z.t FROM s PARTITION BY k AS (A, Z) WHERE A.v = 1 AND Z.v = 2",
        s="""
        k | v | t
        x | 1 | 1
        y | 1 | 2
        x | 2 | 3
        y | 3 | 4
        y | 2 | 5
          | 1 | 6
          | 2 | 7
        """,
    )
    # NULL is a partition too.
    assert shown(result, time=False)[1:] == [("x", "1", "3"), ("", "6", "7")]


def test_partitions_by_several_columns() -> None:
    result = ask(
        """
        CREATE STREAM s (k STRING, g INT, v INT, t INT) ORDER BY t;
        SELECT k, g, A.v, Z.v FROM s PARTITION BY k, g AS (A, Z)
        """,
        s="""
        k | g | v | t
        x | 1 | 1 | 1
        x | 2 | 2 | 2
        y | 1 | 3 | 3
        x | 1 | 4 | 4
        y | 1 | 5 | 5
        """,
    )
    assert shown(result, time=False)[1:] == [("x", "1", "1", "4"), ("y", "1", "3", "5")]


def test_equal_timestamps_keep_the_order_of_arrival() -> None:
    result = ask(
        f"{STREAM}; SELECT A.v, B.v, C.v FROM s AS (A, B, C)",
        s="""
        k | v | t
          | 1 | 5
          | 3 | 6
        ---
          | 2 | 5
        """,
    )
    assert result.values == [(1, 2, 3)]


def test_an_attempt_goes_element_by_element_with_no_gaps() -> None:
    assert runs("A, B, Z", "A.v = 1 AND B.v = 2 AND Z.v = 3", 1, 2, 0, 3, 1, 2, 3) == ["5-7"]


def test_a_failed_attempt_is_followed_by_the_attempt_one_tuple_later() -> None:
    where = "A.v = 1 AND B.v = 1 AND Z.v = 2"
    assert runs("A, B, Z", where, 1, 1, 1, 2) == ["2-4"]


def test_after_a_match_the_next_attempt_starts_behind_it() -> None:
    assert runs("A, B, Z", "A.v = 1 AND B.v = 2 AND Z.v = 1", 1, 2, 1, 2, 1, 1, 2, 1) == ["1-3", "6-8"]


# ---------------------------------------------------------------- stars


def test_a_star_takes_one_or_more() -> None:
    where = "A.v = 0 AND B.v > 0 AND Z.v = 0"
    assert runs("A, *B, Z", where, 0, 0, 1, 0, 2, 3, 0) == ["2-4"]
    assert runs("A, *B, Z", where, 0, 0) == []


def test_a_star_never_gives_tuples_back() -> None:
    assert runs("*A, Z", "A.v > 0 AND Z.v > 5", 1, 7, 0) == []
    assert runs("*A, Z", "A.v > 0 AND Z.v > 5", 1, 7) == []


def test_the_tuple_that_ended_a_star_is_offered_to_the_next_element() -> None:
    assert runs("*A, *B, Z", "A.v < 3 AND B.v < 5 AND Z.v < 7", 1, 2, 3, 4, 5) == ["1-5"]
    assert runs("*A, *B, Z", "A.v < 3 AND B.v < 5 AND Z.v < 7", 1, 2, 5) == []


def test_without_conditions_a_star_takes_everything() -> None:
    assert found("FIRST(A).v, count(*A)", "*A", "", 1, None, 3) == [("3", "1", "3")]


def test_a_trailing_star_is_completed_by_the_tuple_that_ends_it_and_that_starts_the_next_attempt() -> None:
    assert runs("A, *Z", "A.v = 0 AND Z.v > 0", 0, 1, 2, 0, 3, 0) == ["1-3", "4-5"]


def test_a_trailing_star_is_completed_by_the_end_of_the_input() -> None:
    for ended, expected in ((True, ["1-3", "4-5"]), (False, ["1-3"])):
        assert runs("A, *Z", "A.v = 0 AND Z.v > 0", 0, 1, 2, 0, 3, ended=ended) == expected


def test_at_the_end_of_the_input_later_attempts_are_made_too() -> None:
    """The first attempt still waits for what ends its star, and until then no other starts."""
    where = "A.v < 9 AND B.v > A.v AND Z.v <= 4"
    for ended, expected in ((True, ["2-4"]), (False, [])):
        assert runs("A, *B, Z", where, 1, 3, 5, 2, 6, ended=ended) == expected


# ---------------------------------------------------------------- a leading star is maximal on the left


@pytest.mark.parametrize(("values", "expected"), [((1, 1, 0), ["1-3"]), ((1, 1, 1, 0), [])])
def test_a_run_that_is_too_long_has_no_end_that_is_short_enough(
    values: tuple[int, ...], expected: list[str]
) -> None:
    assert runs("*A, Z", "A.v > 0 AND Z.v = 0 AND count(*A) < 3", *values) == expected


def test_a_star_that_does_not_lead_has_no_such_rule() -> None:
    assert runs("A, *B, Z", "B.v > 0 AND Z.v = 0 AND count(*B) < 3", 1, 1, 1, 1, 0) == ["2-5"]


def test_running_aggregates_are_left_out_of_what_the_tuple_before_must_not_satisfy() -> None:
    where = "A.v > 0 AND ccount(A) <= 2 AND Z.v = 0"
    assert runs("*A, Z", where, 1, 1, 0) == ["1-3"]
    # The star could begin one tuple later if it were not for the tuple before.
    assert runs("*A, Z", where, 1, 1, 1, 0) == []
    assert runs("*A, Z", "ccount(A) <= 2 AND Z.v = 0", 5, 6, 7, 0) == []


def test_a_tuple_that_a_match_consumed_does_not_count_as_one_before() -> None:
    where = "A.v > 0 AND ccount(A) <= 2 AND Z.v > 0"
    assert runs("*A, Z", where, 1, 1, 1, 1, 1, 1, 1) == ["1-3", "4-6"]
    assert runs("*A, Z", "A.v > 0 AND ccount(A) <= 2 AND Z.v > 1", 1, 1, 1, 1, 2) == []


def test_previous_of_the_tuple_before_is_the_one_before_that() -> None:
    where = "A.v > A.previous.v AND count(*A) = 2 AND Z.v = 0"
    assert runs("*A, Z", where, 1, 2, 3, 0) == ["2-4"]
    assert runs("*A, Z", where, 1, 2, 3, 4, 0) == []


def test_the_tuple_before_counts_as_the_first_of_its_run() -> None:
    where = "A.v >= FIRST(A).v AND count(*A) = 2 AND Z.v < 0"
    assert runs("*A, Z", where, 5, 6, -1) == ["1-3"]
    assert runs("*A, Z", where, 4, 5, 6, -1) == []
    assert runs("*A, Z", where, None, 5, 6, -1) == ["2-4"]


# ---------------------------------------------------------------- conditions


def test_a_condition_belongs_to_the_rightmost_variable_in_it() -> None:
    assert runs("A, B, Z", "A.v < Z.v AND B.v < 9", 5, 1, 3, 7) == ["2-4"]


def test_of_an_earlier_star_its_last_tuple_is_meant() -> None:
    assert runs("*A, Z", "A.v < 5 AND Z.v > 2 * A.v", 4, 3, 7) == ["1-3"]
    assert runs("*A, Z", "A.v < 5 AND Z.v > 2 * FIRST(A).v", 4, 3, 7) == []


def test_final_conditions_are_tested_when_the_star_is_complete() -> None:
    where = "A.v > 0 AND avg(*A.v) >= 3 AND Z.v <= 0"
    assert runs("*A, Z", where, 1, 5, 0, 1, 2, 0) == ["1-3"]


def test_running_conditions_end_a_star() -> None:
    assert found("count(*A), Z.v", "*A, Z", "csum(A.v) <= 5", 2, 3, 4) == [("3", "2", "4")]
    assert found("count(*A), Z.v", "*A, Z", "cavg(A.v) < 3", 2, 3, 9) == [("3", "2", "9")]
    assert found("count(*A), Z.v", "*A, Z", "cmax(A.v) - cmin(A.v) < 3", 2, 4, 5) == [("3", "2", "5")]


def test_a_running_aggregate_of_an_earlier_star_is_the_final_one() -> None:
    assert runs("*A, Z", "A.v > 0 AND Z.v < -csum(A.v)", 1, 2, -4) == ["1-3"]
    assert runs("*A, Z", "A.v > 0 AND Z.v < -csum(A.v)", 1, 2, -3) == []


def test_a_final_aggregate_beside_the_tuple_is_that_of_the_star_so_far() -> None:
    assert found("count(*A), Z.v", "*A, Z", "A.v < 2 * count(*A)", 1, 3, 5, 9) == [("4", "3", "9")]


def test_previous_of_the_first_tuple_is_null_and_null_fails() -> None:
    assert runs("A, Z", "A.previous.v < 9", 1, 2, 3) == ["2-3"]
    assert runs("A, Z", "A.previous.v IS NULL", 1, 2, 3) == ["1-2"]
    assert runs("A, Z", "A.v > 0", None, 2, 3) == ["2-3"]
    assert runs("A, Z", "NOT A.v > 0", None, 2, 3) == []


@pytest.mark.parametrize("times", range(1, 7))
def test_previous_may_be_repeated(times: int) -> None:
    where = f"Z{'.previous' * times}.v = 1 AND Z.v = 0"
    sevens = (7,) * (times - 1)
    assert runs("A, Z", where, 7, 1, *sevens, 0) == [f"{times + 1}-{times + 2}"]
    assert runs("A, Z", where, 1, 7, *sevens, 0) == []
    assert runs("A, Z", where, *sevens, 0) == []


def test_previous_reaches_into_what_a_match_has_consumed() -> None:
    assert found("A.previous.v, A.v", "A, Z", "", 1, 2, 3, 4) == [("2", "", "1"), ("4", "2", "3")]


def test_previous_stays_in_the_partition() -> None:
    result = ask(
        f"{STREAM}; SELECT k, A.previous.v FROM s PARTITION BY k AS (A)",
        s="""
        k | v | t
        x | 1 | 1
        y | 2 | 2
        x | 3 | 3
        """,
    )
    assert result.values == [("x", None), ("y", None), ("x", 1)]


def test_what_stands_behind_a_false_condition_is_not_computed() -> None:
    assert runs("A, Z", "A.v <> 0 AND (A.v < 0 OR 10 / A.v > 4)", 0, 2, 1) == ["2-3"]
