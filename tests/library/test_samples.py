"""Counts, samples and lists of the best agree with a plain computation over the same tuples."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.types import BIGINT, DOUBLE, INT, STRING
from tests.library.running import active, base, content, often, over_range, over_rows, uncompiled

words = st.sampled_from(["a", "b", "c", "d", "e"])
cuts = st.lists(st.integers(0, 30), max_size=3)


@pytest.fixture(autouse=True)
def _as_python():
    with uncompiled():
        yield


def windows(rows: list, size: int) -> list[list]:
    return [rows[max(0, i - size + 1) : i + 1] for i in range(len(rows))]


# ---------------------------------------------------------------- counts


@often
@given(st.lists(st.one_of(st.none(), words), max_size=30), st.integers(1, 8), cuts)
def test_unique_values_are_counted_once(given: list, size: int, cuts: list[int]) -> None:
    rows = [(value,) for value in given]
    so_far = [[(len(set(given[: i + 1]) - {None}),)] for i in range(len(given))]
    assert base("unique_count", [STRING], rows, cuts) == so_far
    assert over_rows("unique_count", [STRING], rows, size - 1, cuts) == [
        [(len(set(window) - {None}),)] for window in windows(given, size)
    ]


@often
@given(st.lists(words, max_size=30), st.integers(1, 8), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_frequent_items_are_found_where_there_is_room(given: list, size: int, share: float) -> None:
    # With so many slots no two of five words share all four.
    rows = [(value, share, 1000) for value in given]

    def expected(window: list) -> list:
        count = window.count(window[-1])
        return [(window[-1], count)] if count >= share * len(window) else []

    types = [STRING, DOUBLE, BIGINT]
    assert base("frequent_items", types, rows) == [expected(given[: i + 1]) for i in range(len(given))]
    assert over_rows("frequent_items", types, rows, size - 1) == [expected(w) for w in windows(given, size)]


@often
@given(st.lists(st.integers(0, 50), max_size=60))
def test_frequencies_are_never_too_small(given: list) -> None:
    found = base("frequent_items", [INT, DOUBLE, BIGINT], [(value, 0.0, 8) for value in given])
    for i, [(item, frequency)] in enumerate(found):
        assert item == given[i]
        assert given[: i + 1].count(item) <= frequency <= i + 1


@often
@given(st.lists(st.sampled_from([0, 1, 1, None]), max_size=200), st.integers(1, 80), st.integers(1, 10))
def test_ones_are_counted_as_well_as_was_asked_for(given: list, size: int, accuracy: int) -> None:
    found = base("ones_in_last", [INT, BIGINT, INT], [(bit, size, accuracy) for bit in given])
    for [(count,)], window in zip(found, windows(given, size), strict=True):
        exact = window.count(1)
        assert abs(count - exact) <= exact / accuracy


def test_a_window_of_ones_is_counted_well_for_long() -> None:
    found = base("ones_in_last", [INT, BIGINT, INT], [(1, 150, 4)] * 400)
    assert all(abs(count - min(i + 1, 150)) <= min(i + 1, 150) / 4 for i, [(count,)] in enumerate(found))


# ---------------------------------------------------------------- samples


@often
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 9), st.integers(0, 1000)), max_size=30),
    st.integers(0, 4),
    st.integers(1, 12),
    cuts,
)
def test_a_priority_sample_has_the_highest_priorities(
    priorities: list, k: int, size: int, cuts: list[int]
) -> None:
    rows = [(f"v{number}", priority, k) for number, priority in enumerate(priorities)]

    def expected(window: list) -> list:
        # Of equal ones the earlier comes first, and those without a priority are never chosen.
        chosen = sorted((row for row in window if row[1] is not None), key=lambda row: -row[1])
        return [(value,) for value, _, _ in chosen[:k]]

    types = [STRING, BIGINT, INT]
    found = over_rows("priority_sample", types, rows, size - 1, cuts)
    assert found == [expected(window) for window in windows(rows, size)]
    assert content("priority_sample", types, rows) == expected(rows)


@often
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 5)), unique_by=lambda row: row[0], max_size=30),
    st.integers(1, 4),
)
def test_so_it_is_in_a_window_of_time(tuples: list, k: int) -> None:
    times = [sum(gap for _, gap in tuples[: i + 1]) for i in range(len(tuples))]
    rows = [(priority, priority, k) for priority, _ in tuples]
    found = over_range("priority_sample", [INT, BIGINT, INT], rows, times, 6)
    for i, got in enumerate(found):
        window = [rows[j][0] for j in range(i + 1) if times[j] >= times[i] - 6]
        assert got == [(value,) for value in sorted(window, reverse=True)[:k]]


@often
@given(st.integers(1, 60), st.integers(0, 10))
def test_a_reservoir_holds_so_many_values_each_once(count: int, size: int) -> None:
    found = content("reservoir_sample", [INT, BIGINT], [(i, size) for i in range(count)])
    assert len(found) == min(count, size)
    assert len(set(found)) == len(found)
    assert {value for (value,) in found} <= set(range(count))


def test_every_value_has_its_chance_in_a_reservoir() -> None:
    found = content("reservoir_sample", [INT, BIGINT], [(i, 300) for i in range(3000)])
    chosen = Counter(value // 300 for (value,) in found)
    # Of each tenth of the stream there should be about 30.
    assert min(chosen.values()) > 15
    assert max(chosen.values()) < 50


@often
@given(st.integers(1, 300), st.floats(0.05, 1))
def test_shed_tuples_are_made_up_for_by_those_that_stay(count: int, share: float) -> None:
    found = base("load_shed", [DOUBLE], [(share,)] * count)
    kept = [row for rows in found for row in rows]
    assert all(row == (pytest.approx(1 / share),) for row in kept)
    assert abs(len(kept) - share * count) <= 4 * (count * share) ** 0.5 + 4
    assert share < 1 or len(kept) == count


# ---------------------------------------------------------------- the best


@often
@given(
    st.lists(st.tuples(words, st.one_of(st.none(), st.integers(0, 9).map(float))), max_size=30),
    st.integers(0, 4),
    st.integers(1, 10),
    cuts,
)
def test_the_best_are_the_best_of_the_window(tuples: list, k: int, size: int, cuts: list[int]) -> None:
    rows = [(item, score, k) for item, score in tuples]

    def expected(window: list) -> list:
        scored = [row for row in window if row[1] is not None]
        return sorted(scored, key=lambda row: -row[1])[:k]

    types = [STRING, DOUBLE, INT]
    assert over_rows("top_k", types, rows, size - 1, cuts) == [expected(w) for w in windows(tuples, size)]
    assert content("top_k", types, rows) == expected(tuples)


@often
@given(st.lists(st.one_of(st.none(), words), max_size=30), st.integers(1, 6), cuts)
def test_first_and_last_values(given: list, size: int, cuts: list[int]) -> None:
    rows = [(value,) for value in given]

    def last(window: list) -> object:
        return next((value for value in reversed(window) if value is not None), None)

    assert base("first_seen", [STRING], rows, cuts) == [[(given[0],)] for _ in given]
    assert base("last_seen", [STRING], rows, cuts) == [[(last(given[: i + 1]),)] for i in range(len(given))]
    in_windows = windows(given, size)
    assert over_rows("first_seen", [STRING], rows, size - 1, cuts) == [[(w[0],)] for w in in_windows]
    assert over_rows("last_seen", [STRING], rows, size - 1, cuts) == [[(last(w),)] for w in in_windows]


def test_the_first_value_of_what_is_left_is_told_when_one_leaves() -> None:
    found = active("first_seen", [STRING], [("a",), ("b",)], [1, 3], 5)
    assert found == [(1, ("a",)), (3, ("a",)), (6, ("b",))]


@often
@given(st.lists(st.one_of(st.none(), words), max_size=30), st.integers(1, 6), cuts)
def test_texts_are_put_together(given: list, size: int, cuts: list[int]) -> None:
    rows = [(value, ", ") for value in given]

    def expected(window: list) -> str | None:
        return ", ".join(filter(None, window)) or None

    types = [STRING, STRING]
    found = over_rows("concatenated", types, rows, size - 1, cuts)
    assert found == [[(expected(window),)] for window in windows(given, size)]
    assert content("concatenated", types, rows) == ([(expected(given),)] if given else [])
