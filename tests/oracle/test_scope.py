"""Scope functions (Patroumpas and Sellis, section 3): the paper's cases and propositions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.windows.scope import (
    count_scope,
    landmark_scope,
    now_scope,
    partitioned_scope,
    sliding_scope,
    tumbling_scope,
)
from oracle.windows.sliding import Sliding

# A busy machine is no fault of a definition.
UNHURRIED = settings(deadline=None)

instant = st.integers(0, 30)
size = st.integers(1, 8)
times = st.lists(instant, max_size=15).map(sorted)


def state(scope: tuple[int, int] | None, stream: list[int]) -> list[int]:
    """The positions of the tuples whose timestamps are in scope."""
    return [i for i, time in enumerate(stream) if scope is not None and scope[0] <= time <= scope[1]]


def test_the_papers_first_query_every_minute_the_last_hour() -> None:
    """Of Q1 the window state is: 60 * floor(t/60) - 3600 < A <= 60 * floor(t/60)."""
    for now in (3600, 3659, 3660, 7325):
        scope = sliding_scope(0, 3600, 60, now)
        assert scope == (60 * (now // 60) - 3600 + 1, 60 * (now // 60))


def test_a_sliding_window_is_half_filled_at_the_beginning() -> None:
    assert [sliding_scope(10, 4, 1, now) for now in range(9, 16)] == [
        None,
        (10, 10),
        (10, 11),
        (10, 12),
        (10, 13),
        (11, 14),
        (12, 15),
    ]


def test_now_is_the_current_instant() -> None:
    assert now_scope(7) == (7, 7)


def test_a_lower_bounded_landmark_grows_for_ever() -> None:
    assert [landmark_scope(0, 3, None, now) for now in (2, 3, 9)] == [None, (3, 3), (3, 9)]


def test_an_upper_bounded_landmark_is_frozen_once_its_bound_is_reached() -> None:
    assert [landmark_scope(0, None, 3, now) for now in (2, 3, 9)] == [(0, 2), (0, 3), (0, 3)]


@UNHURRIED
@given(instant, size, size, instant)
def test_between_steps_nothing_moves(applied, extent, step, now) -> None:
    """The recursive branch of the definition."""
    if now > applied and (now - applied) % step:
        assert sliding_scope(applied, extent, step, now) == sliding_scope(applied, extent, step, now - 1)


@UNHURRIED
@given(size, size, instant)
def test_scope_at_a_step_is_the_extent_that_ends_there(extent, step, now) -> None:
    """What the scope shows at an instant, the Window-ID paper's extent has once the instant is over."""
    scope = sliding_scope(0, extent, step, step * now)
    [wid] = [
        w
        for w in Sliding(extent, step, 1).wids(step * now)
        if Sliding(extent, step, 1).extent(w).end == step * now + 1
    ]
    held = [second for second in range(step * now + 9) if second in Sliding(extent, step, 1).extent(wid)]
    assert scope == (held[0], held[-1])


@UNHURRIED
@given(times, size, size, instant)
def test_proposition_2_what_comes_first_goes_first(stream, extent, step, now) -> None:
    shown = state(sliding_scope(0, extent, step, now), stream)
    assert shown == list(range(shown[0], shown[-1] + 1)) if shown else True


@UNHURRIED
@given(times, size, st.integers(0, 5))
def test_proposition_3_states_of_a_tumbling_window_share_nothing(stream, extent, k) -> None:
    before = state(tumbling_scope(0, extent, k * extent), stream)
    after = state(tumbling_scope(0, extent, (k + 1) * extent), stream)
    assert not set(before) & set(after)


@UNHURRIED
@given(times, instant, instant, st.integers(0, 5))
def test_proposition_4_a_landmark_only_grows(stream, lower, now, later) -> None:
    assert set(state(landmark_scope(0, lower, None, now), stream)) <= set(
        state(landmark_scope(0, lower, None, now + later), stream)
    )


@UNHURRIED
@given(times, size, instant)
def test_a_count_based_window_is_a_partitioned_one_with_one_partition(stream, n, now) -> None:
    shown = list(count_scope(n, stream, now))
    assert shown == partitioned_scope(n, stream, ["all"] * len(stream), now)
    arrived = [i for i, time in enumerate(stream) if time <= now]
    assert shown == arrived[-n:]
