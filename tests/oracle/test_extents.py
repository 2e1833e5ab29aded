"""The three functions of the Window-ID paper, kind by kind: wids inverts extent."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.windows.landmark import Landmark
from oracle.windows.now import Now
from oracle.windows.predicate import Predicate
from oracle.windows.rows import RowSliding
from oracle.windows.session import Session
from oracle.windows.sliding import Sliding
from oracle.windows.tuple_slide import TupleSlide

# A busy machine is no fault of a definition.
UNHURRIED = settings(deadline=None)

point = st.integers(-30, 30) | st.fractions(-30, 30, max_denominator=4)
amount = st.integers(1, 12) | st.fractions(Fraction(1, 4), 12, max_denominator=4)
points = st.lists(point, max_size=12)
booleans = st.tuples(st.booleans(), st.booleans())


def minutes(count: int) -> int:
    """Seconds since 12:00:00, when the paper's queries start."""
    return 60 * count


# ---------------------------------------------------------------- sliding


def test_the_windows_of_q1() -> None:
    """Figure 2: a window is 5 minutes long and ends every minute."""
    q1 = Sliding(size=300, slide=60)
    assert (q1.extent(10).start, q1.extent(10).end) == (minutes(6), minutes(11))
    assert (q1.extent(11).start, q1.extent(11).end) == (minutes(7), minutes(12))
    assert list(q1.wids(minutes(10) + 30)) == [10, 11, 12, 13, 14]


def test_the_first_windows_of_q1_are_partial() -> None:
    """Window extents 0 through 3 are of length 1, 2, 3 and 4 minutes: nothing is before 12:00:00."""
    q1 = Sliding(size=300, slide=60)
    seconds = range(minutes(10))
    lengths = [sum(second in q1.extent(wid) for second in seconds) for wid in range(6)]
    assert lengths == [minutes(n) for n in (1, 2, 3, 4, 5, 5)]


def test_a_tumbling_window_holds_each_point_once() -> None:
    assert all(len(Sliding(7, 7, 2).wids(p)) == 1 for p in range(-20, 20))


@UNHURRIED
@given(amount, amount, point, points)
def test_sliding_wids_inverts_extent(size, slide, origin, stream) -> None:
    sliding = Sliding(size, slide, origin)
    windows = sliding.windows(stream)
    for one in stream:
        assert list(sliding.wids(one)) == [wid for wid in windows if one in sliding.extent(wid)]
        assert one not in sliding.extent(windows.start - 1)
        assert one not in sliding.extent(windows.stop)
        following = sliding.ending_after(one)
        assert sliding.extent(following - 1).end <= one < sliding.extent(following).end


# ---------------------------------------------------------------- rows


def test_q2_and_q4_differ() -> None:
    """The last 4 tuples every 2, of all segments together (Q2) and of each (Q4)."""
    rows = RowSliding(size=4, slide=2)
    segments = ["s6", "s7", "s6", "s6", "s7", "s6"]
    q2 = ["all"] * len(segments)
    assert rows.extent((1, "all"), q2) == [0, 1, 2, 3]
    assert rows.extent((2, "all"), q2) == [2, 3, 4, 5]
    assert rows.extent((1, "s6"), segments) == [0, 2, 3, 5]
    assert rows.extent((0, "s7"), segments) == [1, 4]
    assert rows.windows(q2) == [(0, "all"), (1, "all"), (2, "all"), (3, "all")]
    assert rows.wids(4, q2) == [(2, "all"), (3, "all")]
    assert rows.wids(4, segments) == [(0, "s7"), (1, "s7")]


@UNHURRIED
@given(st.integers(1, 6), st.integers(1, 6), st.lists(st.sampled_from("abc"), max_size=15))
def test_row_wids_inverts_extent(size, slide, partitions) -> None:
    rows = RowSliding(size, slide)
    windows = rows.windows(partitions)
    for position in range(len(partitions)):
        holding = [wid for wid in windows if position in rows.extent(wid, partitions)]
        assert rows.wids(position, partitions) == holding
    assert all(rows.extent(wid, partitions) for wid in windows)


# ---------------------------------------------------------------- slide by tuple


def test_q3_a_window_ends_with_every_tuple() -> None:
    q3 = TupleSlide(size=300)
    arrivals = [0, 100, 300, 301, 100]
    assert q3.windows(arrivals) == [0, 100, 300, 301]
    assert [p for p in arrivals if p in q3.extent(300)] == [100, 300, 100]
    assert q3.wids(0, arrivals) == [0, 100]


def test_q5_slides_by_rank_and_its_variant_by_arrival() -> None:
    arrivals = [50, 10, 40, 20, 30, 60]
    assert TupleSlide(300, every=5).windows(arrivals) == [30]
    assert TupleSlide(300, every=5, by_rank=True).windows(arrivals) == [50]


@UNHURRIED
@given(amount, st.integers(1, 4), st.booleans(), st.lists(st.none() | point, max_size=12))
def test_tuple_slide_wids_inverts_extent(size, every, by_rank, arrivals) -> None:
    slide = TupleSlide(size, every, by_rank)
    for one in arrivals:
        if one is not None:
            holding = [wid for wid in slide.windows(arrivals) if one in slide.extent(wid)]
            assert slide.wids(one, arrivals) == holding


@UNHURRIED
@given(points)
def test_now_wids_inverts_extent(stream) -> None:
    now = Now()
    for one in stream:
        assert now.wids(one) == [wid for wid in now.windows(stream) if one in now.extent(wid)]


# ---------------------------------------------------------------- landmarks


def test_landmarks_with_slide_end_at_its_multiples_and_at_the_upper_bound() -> None:
    band = Landmark(start=5, end=25, slide=10)
    assert [(band.extent(w).start, band.extent(w).end) for w in band.windows([0, 5, 99])] == [
        (5, 10),
        (5, 20),
        (5, 25),
    ]
    assert list(band.wids(12, [5, 99])) == [1, 2]
    assert list(band.wids(25, [5, 99])) == list(band.wids(4, [5, 99])) == []


def test_everything_so_far_has_no_bounds() -> None:
    everything = Landmark()
    assert list(everything.windows([-5, 7])) == [0]
    assert (everything.extent(0).start, everything.extent(0).end) == (None, None)


@UNHURRIED
@given(st.none() | point, st.none() | point, st.none() | amount, points)
def test_landmark_wids_inverts_extent(start, end, slide, stream) -> None:
    landmark = Landmark(start, end, slide)
    windows = landmark.windows(stream)
    for one in stream:
        assert list(landmark.wids(one, stream)) == [wid for wid in windows if one in landmark.extent(wid)]
    ends = [landmark.extent(wid).end for wid in windows]
    assert len(set(ends)) == len(ends)
    assert all(any(one in landmark.extent(wid) for one in stream) for wid in windows)


# ---------------------------------------------------------------- sessions and predicates


def test_a_gap_that_is_as_long_as_allowed_does_not_end_a_session() -> None:
    session = Session(gap=5)
    assert [(e.start, e.end) for e in session.extents([0, 5, 11])] == [(0, 10), (11, 16)]


@UNHURRIED
@given(amount, points)
def test_session_wids_inverts_extent(gap, stream) -> None:
    session = Session(gap)
    windows = session.windows(stream)
    for one in stream:
        holding = [wid for wid in windows if one in session.extent(wid, stream)]
        assert session.wids(one, stream) == holding
        assert len(holding) == 1
    for a in stream:
        for b in stream:
            if abs(a - b) <= gap:
                assert session.wids(a, stream) == session.wids(b, stream)


@UNHURRIED
@given(st.lists(booleans, max_size=12))
def test_predicate_wids_inverts_extent(stream) -> None:
    predicate = Predicate()
    windows = predicate.windows(stream)
    for position, (starts, _) in enumerate(stream):
        holding = [wid for wid in windows if position in predicate.extent(wid, stream)]
        assert predicate.wids(position, stream) == holding
        assert len(holding) <= 1
        # A tuple that could start a window is in one: the one that it starts, or one that was open.
        assert holding or not starts
    for wid in windows:
        episode = predicate.extent(wid, stream)
        ends = [position for position in range(len(stream)) if position in episode and stream[position][1]]
        assert stream[episode.first][0]
        assert ends == ([] if episode.open else [episode.last])
