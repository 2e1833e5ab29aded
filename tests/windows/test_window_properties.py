"""Properties of windows that several layers decide by."""

import pytest

from millstream.quantity import Duration, Rows
from millstream.windows.window_properties import (
    Context,
    Partitioning,
    context,
    counts_arrivals,
    is_contextual,
    is_time_of_day,
    partitioning,
)
from millstream.windows.window_spec import (
    LandmarkWindow,
    NowWindow,
    PredicateWindow,
    RangeWindow,
    RowWindow,
    SessionWindow,
    TupleSlideWindow,
)


@pytest.mark.parametrize("constant", ["'09:30'", "'9:30:00'", "'9:5'", "' 23:59:59.999 '"])
def test_a_time_without_a_date_is_a_time_of_day(constant):
    assert is_time_of_day(constant)


@pytest.mark.parametrize(
    "constant", [None, "42", "'2026-01-31 09:30'", "CAST('2026-01-31' AS TIMESTAMP)", "'09:30 Z'"]
)
def test_other_constants_are_no_time_of_day(constant):
    assert not is_time_of_day(constant)


@pytest.mark.parametrize(
    ("window", "contextual"),
    [
        (RangeWindow(), False),
        (NowWindow(), False),
        (LandmarkWindow(start="'2026-01-31 09:30'"), False),
        (LandmarkWindow(end="'09:30'"), True),
        (RowWindow(), True),
        (TupleSlideWindow(), True),
        (SessionWindow(), True),
        (PredicateWindow(), True),
    ],
)
def test_windows_that_depend_on_other_tuples_are_contextual(window, contextual):
    assert is_contextual(window) is contextual


def test_windows_that_count_by_order_of_arrival():
    assert counts_arrivals(RowWindow(by_arrival=True))
    assert not counts_arrivals(RowWindow())
    assert counts_arrivals(TupleSlideWindow())
    assert not counts_arrivals(TupleSlideWindow(by_rank=True))
    assert not counts_arrivals(RangeWindow(range=Duration(1)))


def test_partitions_are_groups_if_groups_are_not_finer():
    assert partitioning(RowWindow(range=Rows(2)), ["k"]) is Partitioning.WHOLE
    window = RowWindow(range=Rows(2), partition_by=("K",))
    assert partitioning(window, ["k"]) is Partitioning.BY_KEY
    assert partitioning(window, []) is Partitioning.BY_KEY
    assert partitioning(window, ["k", "other"]) is Partitioning.BY_PART
    assert partitioning(RangeWindow(partition_by=("k",)), ["k"]) is Partitioning.WHOLE


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (RangeWindow(), Context.FREE),
        (LandmarkWindow(start="'2026-01-01'"), Context.FREE),
        (LandmarkWindow(start="'09:30'"), Context.BACKWARD),
        (RowWindow(by_arrival=True), Context.FREE),
        (RowWindow(by_arrival=True, partition_by=("k",)), Context.BACKWARD),
        (RowWindow(), Context.BACKWARD),
        (SessionWindow(), Context.BACKWARD),
        (TupleSlideWindow(), Context.FORWARD),
        (TupleSlideWindow(every=Rows(3)), Context.FORWARD),
        (TupleSlideWindow(every=Rows(3), by_rank=True), Context.UNBOUNDED),
    ],
)
def test_the_context_of_windows_is_that_of_the_window_id_paper(window, expected):
    assert context(window) is expected
