"""Promises of a source partition, and tuples that break them: by hand, and against the oracle."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.progress.disorder_clauses import (
    Clause,
    Heartbeats,
    InOrder,
    OrderedPer,
    Promises,
    Punctuated,
    RowSlack,
)
from millstream.progress.piece import Piece
from millstream.progress.watermark_tracker import Tracker
from millstream.quantity import Duration
from millstream.types import TIMESTAMP
from oracle import disorder_promises as oracle
from oracle.values.points import EVERYTHING, NOTHING, Instant, at

LOWEST = int(np.iinfo(np.int64).min)
HIGHEST = int(np.iinfo(np.int64).max)


def late(clause: Clause, *times: int, streams: str = "", promises: str = "") -> str:
    """The tuples of a partition as L (late) or . (in time)."""
    tracker = Tracker(Promises((clause,)))
    verdict = tracker.show(_piece(list(times), [ord(c) - 97 for c in streams], [c == "!" for c in promises]))
    return "".join("L" if is_late else "." for is_late in verdict.late)


def _piece(times: list[int | None], streams: list[int], promises: list[bool]) -> Piece:
    ends = [t is None for t in times]
    return Piece(
        np.array([0 if t is None else t for t in times], np.int64),
        np.array(streams, np.int64) if len(streams) == len(times) else None,
        np.array(promises, np.bool_) if len(promises) == len(times) else None,
        np.array(ends, np.bool_),
    )


def test_without_a_clause_an_older_tuple_is_late():
    assert late(InOrder(), 1, 3, 2, 3, 4) == "..L.."


def test_slack_allows_that_much_disorder():
    assert late(InOrder(2), 1, 5, 3, 2, 9, 6) == "...L.L"


def test_slack_in_rows_is_about_being_overtaken():
    # When 2 comes, two larger ones (5 and 3) have been there.
    assert late(RowSlack(1), 1, 5, 3, 2, 9, 6) == "...L.."


def test_sub_streams_are_each_in_order():
    assert late(OrderedPer(), 1, 5, 2, 4, 3, streams="ababa") == "...L."


def test_a_new_sub_stream_must_not_be_older_than_what_was_promised():
    assert late(OrderedPer(), 5, 5, 6, 6, 3, streams="ababc") == "....L"


def test_an_idle_sub_stream_is_not_waited_for():
    # At 9 sub-stream a, last seen at 1, is more than 4 behind; so 9 is promised, and 2 is late.
    assert late(OrderedPer(4), 1, 5, 9, 2, streams="abba") == "...L"
    assert late(OrderedPer(), 1, 5, 9, 2, streams="abba") == "...."


def test_promises_are_no_data_and_bind_what_follows():
    assert late(Punctuated(), 5, 4, 4, 3, 7, promises="..!..") == "...L."


def test_promises_of_a_sub_stream_bind_that_sub_stream():
    assert late(Punctuated(per=True), 5, 5, 3, 3, streams="baab", promises=".!..") == "..L."


@pytest.mark.parametrize("cut", range(6))
def test_the_promise_before_the_last_word_is_known_however_the_pieces_are_cut(cut: int) -> None:
    tracker = Tracker(Promises((Punctuated(), Heartbeats())))
    times, promises = [1, 6, 20, None, 30, 7], [False, False, True, True, True, False]
    for piece in (slice(0, cut), slice(cut, None)):
        tracker.show(_piece(times[piece], [], promises[piece]))
    tracker.heartbeat(40)
    assert (tracker.promised, tracker.timed) == (HIGHEST, 20)


def test_a_promise_without_a_time_ends_its_sub_stream():
    tracker = Tracker(Promises((Punctuated(per=True),)))
    verdict = tracker.show(_piece([1, None, 9, 2], [0, 0, 0, 1], [False, True, False, False]))
    assert verdict.late.tolist() == [False, False, True, False]


def test_heartbeats_promise_without_tuples():
    tracker = Tracker(Promises((InOrder(), Heartbeats())))
    tracker.show(_piece([1], [], []))
    tracker.heartbeat(10)
    assert tracker.promised == 10
    assert tracker.show(_piece([9, 10], [], [])).late.tolist() == [True, False]


def test_slack_does_not_wrap_around_at_the_smallest_time():
    tracker = Tracker(Promises((InOrder(10),)))
    assert tracker.show(_piece([LOWEST, LOWEST + 5, LOWEST], [], [])).late.tolist() == [False] * 3


CLAUSES: list[Any] = [
    InOrder(),
    InOrder(3),
    RowSlack(1),
    RowSlack(3),
    OrderedPer(),
    OrderedPer(4),
    Punctuated(),
    Punctuated(per=True),
]


def _oracle(clause: Clause) -> oracle.Rule:
    """The rule of the reference interpreter; a tuple is (time, sub-stream, is a promise)."""
    match clause:
        case InOrder(slack):
            return oracle.Slack(Duration(int(slack)) if slack else None, TIMESTAMP)
        case RowSlack(rows):
            return oracle.SlackRows(rows)
        case OrderedPer(idle):
            return oracle.OrderedPer([1], None if idle is None else Duration(int(idle)), TIMESTAMP)
        case Punctuated(per):
            return oracle.Punctuated(lambda values: bool(values[2]), [1] if per else [])
        case _:
            raise AssertionError(clause)


arrivals = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 3), st.booleans(), st.booleans()), max_size=30
)


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
@given(arrivals=arrivals, cuts=st.lists(st.integers(0, 30), max_size=4))
@settings(max_examples=60, deadline=None)
def test_the_oracle_agrees_however_the_input_is_cut(clause, arrivals, cuts):
    punctuated = isinstance(clause, Punctuated)
    rule = _oracle(clause)
    expected: list[bool] = []
    before: list[Instant] = []
    promise = NOTHING
    for time, stream, is_promise, ends in arrivals:
        values = (time, stream, is_promise)
        before.append(promise)
        if punctuated and is_promise:
            assert isinstance(rule, oracle.Punctuated)
            rule.punctuate(None if ends else time, values)
            expected.append(False)
        else:
            expected.append(at(time) < promise or rule.breaks(time, values))
            rule.see(time, values)
        promise = max(promise, rule.progress())

    tracker = Tracker(Promises((clause,)))
    found: list[bool] = []
    promised: list[int] = []
    bounds = [0, *sorted(min(cut, len(arrivals)) for cut in cuts), len(arrivals)]
    for start, end in itertools.pairwise(bounds):
        part = arrivals[start:end]
        times = [None if punctuated and p and e else t for t, _, p, e in part]
        promises = [p and punctuated for _, _, p, _ in part]
        verdict = tracker.show(_piece(times, [s for _, s, _, _ in part], promises))
        found += verdict.late.tolist()
        promised += verdict.promised.tolist()
    assert found == expected
    assert [_number(p) for p in before] == promised
    assert tracker.promised == _number(promise)


def _number(instant: Instant) -> int:
    if instant == NOTHING:
        return LOWEST
    return HIGHEST if instant == EVERYTHING else int(instant[1])  # type: ignore[arg-type]
