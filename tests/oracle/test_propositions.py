"""Propositions 1 to 9 of Patroumpas and Sellis, on random streams, by what enters and leaves results.

That a class promises something is checked here; which operator has which class is in the tests of plans.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.lives import Life, Tuple, lives, spells, tuples, until

LOGICAL = ("RANGE 4", "RANGE 5 SLIDE 2", "TUMBLE 3", "NOW")
LANDMARK = ("UNBOUNDED", "UNBOUNDED SLIDE 2", "LANDMARK START AT 2 END AT 9")
PHYSICAL = ("ROWS 2", "ROWS 3 SLIDE 2", "TUMBLE 2 ROWS", "PARTITION BY k ROWS 1")
FIFO = ("RANGE 4", "RANGE 5 SLIDE 2", "NOW", "ROWS 2", "ROWS 3 SLIDE 2")
UNSLID = ("RANGE 4", "NOW", "ROWS 2", "PARTITION BY k ROWS 1", "UNBOUNDED", "LANDMARK START AT 2 END AT 9")
ALL = (*LOGICAL, *LANDMARK, *PHYSICAL)
LEFT, RIGHT = tuples(), tuples(100)

few = settings(max_examples=15, deadline=None)


def in_window(window: str, stream: list[Tuple], name: str = "a") -> dict[int, Life]:
    """The tuples of a window by number."""
    query = f"SELECT id, k FROM {name} [{window}]"
    found = lives(query, stream) if name == "a" else lives(query, [], stream)
    return {life.row[0]: life for life in found}


# ---------------------------------------------------------------- windows


@few
@given(LEFT, st.integers(2, 6), st.data())
def test_proposition_1_successive_states_of_a_sliding_window_share_tuples(
    a: list[Tuple], size: int, data: st.DataObject
) -> None:
    """None at all, where none has come in the time that both states cover."""
    step = data.draw(st.integers(1, size - 1))
    found = in_window(f"RANGE {size} SLIDE {step}", a)
    for before, now in pairwise(range(0, 30, step)):
        shared = {number for number, life in found.items() if life.enters <= before and now < life.leaves}
        assert shared == {one["id"] for one in a if now - size <= one["t"] < before}


@few
@given(LEFT)
def test_proposition_2_a_time_based_window_is_left_in_the_order_of_timestamps(a: list[Tuple]) -> None:
    times = {one["id"]: one["t"] for one in a}
    found = in_window("RANGE 4", a)
    for one, other in product(found, repeat=2):
        assert (times[one] <= times[other]) == (found[one].leaves <= found[other].leaves)
    # With SLIDE several leave at once.
    found = in_window("RANGE 5 SLIDE 2", a)
    for one, other in product(found, repeat=2):
        assert times[one] > times[other] or found[one].leaves <= found[other].leaves


@few
@given(LEFT, st.integers(1, 5))
def test_proposition_3_successive_states_of_a_tumbling_window_share_nothing(
    a: list[Tuple], size: int
) -> None:
    found = in_window(f"TUMBLE {size}", a)
    assert len(found) == len(a)
    assert all(life.leaves == life.enters + size for life in found.values())


@few
@given(LEFT)
@pytest.mark.parametrize("window", LANDMARK)
def test_proposition_4_nothing_leaves_a_landmark_window(window: str, a: list[Tuple]) -> None:
    assert all(life.leaves == inf for life in in_window(window, a).values())


@few
@given(LEFT, st.integers(1, 4))
def test_proposition_5_a_row_window_is_left_in_the_order_of_admission(a: list[Tuple], size: int) -> None:
    """The expiration order of a tuple is its admission order plus n: it goes when that tuple comes."""
    found = in_window(f"ROWS {size}", a)
    for order, one in enumerate(a):
        leaves = a[order + size]["t"] if order + size < len(a) else inf
        # One that others of its own instant push out has never been seen.
        expected = Life((one["id"], one["k"]), one["t"], leaves) if one["t"] < leaves else None
        assert found.get(one["id"]) == expected


@few
@given(LEFT)
@pytest.mark.parametrize("window", LOGICAL)
def test_when_a_tuple_leaves_a_window_of_time_is_known_when_it_enters(window: str, a: list[Tuple]) -> None:
    for number, life in in_window(window, a).items():
        assert in_window(window, *until(life.enters, a))[number] == life


# ---------------------------------------------------------------- neutral operators


@few
@given(LEFT, RIGHT)
@pytest.mark.parametrize("window", ALL)
def test_proposition_6_neutral_operators_follow_their_windows(
    window: str, a: list[Tuple], b: list[Tuple]
) -> None:
    left, right = in_window(window, a).values(), in_window(window, b, "b").values()
    assert lives(f"SELECT id, k FROM a [{window}] WHERE k = 'x'", a) == sorted(
        life for life in left if life.row[1] == "x"
    )
    assert lives(f"SELECT k FROM a [{window}]", a) == sorted(
        Life(life.row[1:], life.enters, life.leaves) for life in left
    )
    assert united(window, window, a, b) == sorted([*left, *right])


def united(one: str, other: str, a: list[Tuple], b: list[Tuple]) -> list[Life]:
    return lives(f"SELECT id, k FROM a [{one}] UNION ALL SELECT id, k FROM b [{other}]", a, b)


@few
@given(LEFT, RIGHT)
@pytest.mark.parametrize("window", FIFO)
def test_what_is_weakest_non_monotonic_is_left_in_the_order_of_entering(
    window: str, a: list[Tuple], b: list[Tuple]
) -> None:
    """In a union each input for itself: row windows of two streams move at different speed."""
    results = united(window, window, a, b)
    for side in (
        [life for life in results if life.row[0] < 100],
        [life for life in results if life.row[0] >= 100],
    ):
        for one, other in product(side, repeat=2):
            assert one.enters >= other.enters or one.leaves <= other.leaves


# ---------------------------------------------------------------- interfering operators


@few
@given(LEFT, RIGHT)
@pytest.mark.parametrize("window", ALL)
def test_proposition_7_a_join_is_left_with_the_first_of_a_pair(
    window: str, a: list[Tuple], b: list[Tuple]
) -> None:
    results = joined(window, window, a, b)
    assert results == pairs(window, window, a, b)
    assert window not in LANDMARK or all(life.leaves == inf for life in results)


@few
@given(LEFT)
@pytest.mark.parametrize("window", ALL)
def test_proposition_7_distinct_values_and_groups_are_left_with_the_last_of_their_tuples(
    window: str, a: list[Tuple]
) -> None:
    """The values of a group are replaced in the meantime. Over landmarks neither ever leaves."""
    expected = spells(Life(life.row[1:], life.enters, life.leaves) for life in in_window(window, a).values())
    assert lives(f"SELECT DISTINCT k FROM a [{window}]", a) == expected
    assert spells(lives(f"SELECT ISTREAM k, count(*) FROM a [{window}] GROUP BY k", a)) == expected
    assert window not in LANDMARK or all(life.leaves == inf for life in expected)


@few
@given(LEFT, RIGHT)
@pytest.mark.parametrize("window", LOGICAL)
def test_when_a_weak_result_leaves_is_known_when_it_enters(
    window: str, a: list[Tuple], b: list[Tuple]
) -> None:
    """What is made of tuples leaves just then; a value may stay longer, never less long."""
    for life in joined(window, window, a, b):
        assert life in joined(window, window, *until(life.enters, a, b))
    distinct = f"SELECT DISTINCT k FROM a [{window}]"
    for life in lives(distinct, a):
        [known] = [
            one
            for one in lives(distinct, *until(life.enters, a))
            if one.enters == life.enters and one.row == life.row
        ]
        assert known.leaves <= life.leaves


def joined(one: str, other: str, a: list[Tuple], b: list[Tuple]) -> list[Life]:
    return lives(f"SELECT a.id, b.id AS i FROM a [{one}] JOIN b [{other}] ON a.k = b.k", a, b)


def pairs(one: str, other: str, a: list[Tuple], b: list[Tuple]) -> list[Life]:
    """Return the pairs of a join by the paper: a pair expires as soon as one of the two does."""
    found = [
        Life((x.row[0], y.row[0]), max(x.enters, y.enters), min(x.leaves, y.leaves))
        for x, y in product(in_window(one, a).values(), in_window(other, b, "b").values())
        if x.row[1] == y.row[1]
    ]
    return sorted(life for life in found if life.enters < life.leaves)


# ---------------------------------------------------------------- inflexible operators


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM a [{0}] EXCEPT ALL SELECT k FROM b [{1}]",
        "SELECT k FROM a [{0}] EXCEPT SELECT k FROM b [{1}]",
        "SELECT a.k FROM a [{0}] ANTI JOIN b [{1}] ON a.k = b.k",
        "SELECT a.k FROM a [{0}] LEFT JOIN b [{1}] ON a.k = b.k WHERE b.k IS NULL",
    ],
)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        *((window, window) for window in ("RANGE 9", "RANGE 9 SLIDE 3", "UNBOUNDED", "ROWS 2")),
        ("PARTITION BY k ROWS 1", "PARTITION BY k ROWS 1"),
        ("TUMBLE 6", "TUMBLE 3"),  # equal ones are left as a whole before anything new is seen
    ],
)
def test_proposition_8_a_tuple_that_comes_later_takes_something_back(
    query: str, left: str, right: str
) -> None:
    a, b = [{"k": "x", "id": 0, "t": 1}], [{"k": "x", "id": 100, "t": 7}]
    [before] = lives(query.format(left, right), a)
    after = lives(query.format(left, right), a, b)[0]
    assert (after.row, after.enters) == (before.row, before.enters)
    assert after.leaves < before.leaves


# ---------------------------------------------------------------- different windows


@few
@given(LEFT, RIGHT)
@pytest.mark.parametrize("one", UNSLID)
@pytest.mark.parametrize("other", UNSLID)
def test_proposition_9_of_different_windows_each_has_its_say(
    one: str, other: str, a: list[Tuple], b: list[Tuple]
) -> None:
    assert joined(one, other, a, b) == pairs(one, other, a, b)
    assert united(one, other, a, b) == sorted(
        [*in_window(one, a).values(), *in_window(other, b, "b").values()]
    )
