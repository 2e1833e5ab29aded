"""Every kind of bracket window: row, slide-by-tuple, landmark, session and predicate windows."""

from dataclasses import replace

import pyarrow as pa
from checks import results, stream

from millstream.kernels.column_names import BY_KEY, BY_PART, WHOLE
from millstream.kernels.core.kernel import BEGINNING, END, Frontier
from millstream.kernels.specs import AggregateSpec, WindowSpec
from millstream.kernels.window_specs import (
    LandmarkWindows,
    NowWindows,
    RowWindows,
    SessionOrPredicateWindows,
    SlidingWindows,
    TupleSlideWindows,
)
from millstream.kernels.windows.arrival_numbers import ArrivalNumbers
from millstream.kernels.windows.window_aggregate import WindowAggregate

BIGINT, STRING, BOOLEAN = pa.int64(), pa.string(), pa.bool_()
COUNT = AggregateSpec("count", None, "n", BIGINT)
SUM = AggregateSpec("sum", "v", "total", BIGINT)


def end(newest):
    return replace(END, newest=newest)


def kernel(placing, *, group_by=("g",), edges=BIGINT, wid=BIGINT):
    return WindowAggregate(WindowSpec(placing, edges, group_by, (COUNT, SUM), wid))


BIDS = stream(
    """
    time  key  g  v
    1     1    a  1
    2     2    b  2
    4     1    a  4
    5     1    a  8
    9     2    b  16
    """,
    g=STRING,
)
COLUMNS = "time wid window_start window_end g n total"


def test_q2_rows_of_the_whole_stream_are_divided_by_group_by():
    """ROWS 3 SLIDE 2: windows end after the 2nd, 4th, ... tuple of all; the last ones at the end."""
    assert results(kernel(RowWindows(3, 2)), (BIDS, end(9)), columns=COLUMNS) == [
        (2, 0, -1, 2, "a", 1, 1),
        (2, 0, -1, 2, "b", 1, 2),
        (5, 1, 1, 4, "a", 2, 12),
        (5, 1, 1, 4, "b", 1, 2),
        (9, 2, 3, 6, "a", 1, 8),
        (9, 2, 3, 6, "b", 1, 16),
    ]


def test_q4_rows_of_each_partition():
    found = [
        (4, 0, -1, 2, "a", 2, 5),
        (9, 0, -1, 2, "b", 2, 18),
        (9, 1, 1, 4, "a", 2, 12),
    ]
    assert results(kernel(RowWindows(3, 2, per=BY_KEY)), (BIDS, end(9)), columns=COLUMNS) == found
    by_arrival = RowWindows(3, 2, per=BY_KEY, by_arrival=True)
    every = [*found, (9, 1, 1, 4, "b", 1, 16)]
    assert results(kernel(by_arrival), (BIDS, end(9)), columns=COLUMNS) == every


def test_a_partition_may_have_several_groups():
    tuples = stream(
        "time key part g v\n 1 1 7 a 1\n 2 2 7 b 2\n 3 3 8 a 4\n 4 1 7 a 8\n 5 3 8 a 16", g=STRING
    )
    tuples = tuples.__class__(
        tuples.columns.rename_columns(["__ms_key", "__ms_part", "g", "v"]),
        tuples.time,
        tuples.origin,
        tuples.number,
    )
    assert results(kernel(RowWindows(2, 2, per=BY_PART)), (tuples, end(5)), columns="time wid g total") == [
        (2, 0, "a", 1),
        (2, 0, "b", 2),
        (5, 0, "a", 20),
        (5, 1, "a", 8),
    ], "window 1 of partition 7 is completed by the end"


def test_rows_with_partial_results():
    out = results(
        kernel(RowWindows(4, 4, emit=2), group_by=()),
        (keyless(BIDS), end(9)),
        columns="time wid window_end complete n",
    )
    assert out == [(2, 0, 4, False, 2), (5, 0, 4, True, 4), (9, 1, 8, True, 1)]


def keyless(tuples):
    columns = tuples.columns.drop_columns(["__ms_key"])
    return tuples.__class__(columns, tuples.time, tuples.origin, tuples.number)


def test_frequently_emitting_windows_report_the_window_that_ends_next():
    placing = SlidingWindows(6, 6, emit=2)
    columns = "time window_start window_end complete total"
    assert results(kernel(placing, group_by=()), (keyless(BIDS), Frontier(9, 0)), columns=columns) == [
        (2, 0, 6, False, 1),
        (4, 0, 6, False, 3),
        (6, 0, 6, True, 15),
    ]
    both = kernel(placing, group_by=())
    results(both, (keyless(BIDS), Frontier(9, 0)), columns=columns)
    nothing = keyless(BIDS).take(BIDS.time < 0)
    assert results(both, (nothing, end(9)), columns=columns) == [(12, 6, 12, True, 16)]


def test_emission_that_does_not_go_into_the_slide():
    placing = SlidingWindows(6, 6, emit=4)
    out = results(
        kernel(placing, group_by=()),
        (keyless(BIDS), Frontier(14, 0)),
        columns="time window_end complete total",
    )
    assert out == [(4, 6, False, 3), (6, 6, True, 15), (12, 12, True, 16)]


def test_every_tuple_ends_a_window_at_its_own_value():
    """RANGE 4 RATTR time SLIDE 1 ROW: (w-4, w] for every value w."""
    placing = TupleSlideWindows(4, 1, by_rank=True)
    assert results(
        kernel(placing, group_by=()), (keyless(BIDS), end(9)), columns="time wid window_start n total"
    ) == [
        (1, 1, -3, 1, 1),
        (2, 2, -2, 2, 3),
        (4, 4, 0, 3, 7),
        (5, 5, 1, 3, 14),
        (9, 9, 5, 1, 16),
    ]


def test_every_second_tuple_by_rank_and_equal_values_are_one_window():
    tuples = stream("time v\n 1 1\n 2 2\n 2 4\n 2 8\n 3 16\n 3 32")
    placing = TupleSlideWindows(2, 2, by_rank=True)
    aggregate = kernel(placing, group_by=())
    assert results(aggregate, (tuples, Frontier(3, 0)), columns="wid total") == [(2, 15)]
    assert results(aggregate, (tuples.take(tuples.time < 0), end(3)), columns="wid total") == [(3, 62)]


def test_every_second_tuple_by_arrival():
    arrived = stream("time v number\n 3 1 0\n 1 2 1\n 2 4 2\n 5 8 3")
    marked = ArrivalNumbers(2, WHOLE).process(arrived, BEGINNING)
    placing = TupleSlideWindows(2, 2, by_rank=False)
    assert results(kernel(placing, group_by=()), (marked, end(5)), columns="wid total") == [(1, 2), (5, 8)]


def test_a_window_by_tuples_waits_for_punctuation_beyond_it():
    placing = TupleSlideWindows(4, 1, by_rank=True)
    aggregate, nothing = kernel(placing, group_by=()), keyless(BIDS).take(BIDS.time < 0)
    assert results(aggregate, (keyless(BIDS), Frontier(4, 0)), columns="wid") == [(1,), (2,)]
    assert results(aggregate, (nothing, Frontier(9, 5)), columns="wid") == [(4,), (5,)]
    assert results(aggregate, (nothing, Frontier(10, 0)), columns="wid") == [(9,)]


def test_now_is_every_instant():
    tuples = stream("time v\n 1 1\n 1 2\n 4 4")
    aggregate = kernel(NowWindows(), group_by=())
    assert results(aggregate, (tuples, Frontier(4, 0)), columns="time window_start window_end total") == [
        (1, 1, 1, 3)
    ]
    assert results(aggregate, (tuples.take(tuples.time < 0), end(4)), columns="time total") == [(4, 4)]


def test_a_landmark_with_a_slide_grows():
    """From 2 on, every 3: [2, 3), [2, 6), [2, 9), and [2, 12), the first end after the last tuple."""
    placing = LandmarkWindows(start=2, slide=3)
    assert results(kernel(placing), (BIDS, end(9)), columns="time wid window_start g total") == [
        (3, 0, 2, "b", 2),
        (6, 1, 2, "a", 12),
        (6, 1, 2, "b", 2),
        (9, 2, 2, "a", 12),
        (9, 2, 2, "b", 2),
        (12, 3, 2, "a", 12),
        (12, 3, 2, "b", 18),
    ]


def test_a_landmark_with_an_end():
    band = LandmarkWindows(start=2, end=5)
    assert results(kernel(band), (BIDS, Frontier(5, 0)), columns="time window_end g total") == [
        (5, 5, "a", 4),
        (5, 5, "b", 2),
    ]
    upper = LandmarkWindows(end=5, slide=2)
    assert results(
        kernel(upper, group_by=()), (keyless(BIDS), Frontier(7, 0)), columns="time window_start wid total"
    ) == [
        (2, None, 0, 1),
        (4, None, 1, 3),
        (5, None, 2, 7),
    ]


def test_everything_so_far_ends_with_the_input():
    aggregate = kernel(LandmarkWindows())
    assert results(aggregate, (BIDS, Frontier(9, 0)), columns="time") == []
    nothing = BIDS.take(BIDS.time < 0)
    assert results(aggregate, (nothing, end(9)), columns="time window_start window_end g total") == [
        (9, None, 9, "a", 13),
        (9, None, 9, "b", 18),
    ]


def test_everything_so_far_with_partial_results():
    aggregate = kernel(LandmarkWindows(emit=4), group_by=())
    columns = "time window_end complete total"
    assert results(aggregate, (keyless(BIDS), Frontier(9, 0)), columns=columns) == [
        (4, 4, False, 3),
        (8, 8, False, 15),
    ]
    nothing = keyless(BIDS).take(BIDS.time < 0)
    assert results(aggregate, (nothing, end(9)), columns=columns) == [(9, 9, True, 31)]


def test_sessions_of_the_whole_stream():
    aggregate = kernel(SessionOrPredicateWindows(gap=2))
    assert results(aggregate, (BIDS, Frontier(9, 0)), columns=COLUMNS) == [
        (7, 0, 1, 7, "a", 3, 13),
        (7, 0, 1, 7, "b", 1, 2),
    ]
    nothing = BIDS.take(BIDS.time < 0)
    assert results(aggregate, (nothing, Frontier(11, 0)), columns="time") == []
    assert results(aggregate, (nothing, Frontier(12, 0)), columns="time wid g total") == [(11, 1, "b", 16)]


def test_sessions_of_each_partition():
    out = results(
        kernel(SessionOrPredicateWindows(gap=2, per=BY_KEY)),
        (BIDS, end(9)),
        columns="time wid window_start g total",
    )
    assert out == [(3, 0, 1, "a", 1), (4, 0, 2, "b", 2), (7, 1, 4, "a", 12), (11, 1, 9, "b", 16)]


def test_sessions_with_partial_results():
    out = results(
        kernel(SessionOrPredicateWindows(gap=3, emit=2), group_by=()),
        (keyless(BIDS), Frontier(9, 0)),
        columns="time window_end complete total",
    )
    assert out == [(2, 4, False, 1), (4, 5, False, 3), (6, 8, False, 15), (8, 8, False, 15), (8, 8, True, 15)]


def test_what_only_the_end_lets_through_makes_no_partial_results():
    out = results(
        kernel(SessionOrPredicateWindows(gap=3, emit=2), group_by=()),
        (keyless(BIDS), end(9)),
        columns="time window_end complete total",
    )
    assert out == [(8, 8, True, 15), (12, 12, True, 16)]


def test_windows_from_a_tuple_to_another():
    tuples = stream(
        """
        time  v   __ms_starts  __ms_ends
        1     1   0            1
        2     2   1            0
        3     4   1            0
        4     8   0            1
        5     16  0            0
        6     32  1            1
        7     64  1            0
        8     128 0            0
        """
    )
    flags = {name: tuples.columns[name].cast(pa.bool_()) for name in ("__ms_starts", "__ms_ends")}
    columns = tuples.columns
    for name, flag in flags.items():
        columns = columns.set_column(columns.column_names.index(name), name, flag)
    tuples = tuples.__class__(columns, tuples.time, tuples.origin, tuples.number)
    aggregate = kernel(SessionOrPredicateWindows(), group_by=())
    shown = "time wid window_start window_end total"
    assert results(aggregate, (tuples, Frontier(8, 0)), columns=shown) == [(4, 0, 2, 4, 14), (6, 1, 6, 6, 32)]
    assert results(aggregate, (tuples.take(tuples.time < 0), end(8)), columns=shown) == [(8, 2, 7, 8, 192)]
