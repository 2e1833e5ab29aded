"""Properties of bracket windows, by which analysis, plan, kernels and Spark decide: one owner for each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from millstream.quantity import Duration
from millstream.windows.window_spec import (
    LandmarkWindow,
    NowWindow,
    PredicateWindow,
    RangeWindow,
    RowWindow,
    SessionWindow,
    TupleSlideWindow,
    Window,
)

_TIME_OF_DAY = re.compile(r"'\s*\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?\s*'")


class Partitioning(Enum):
    """The partitions in which a window counts its tuples."""

    WHOLE = "the whole stream"
    BY_KEY = "the groups of GROUP BY"
    BY_PART = "partitions of its own, which groups cut across"


class Context(Enum):
    """Class of a window by the tuples that tell the windows of a tuple (Window-ID paper, section 4)."""

    FREE = "context free"
    """The tuple itself."""
    BACKWARD = "forward-context free"
    """Also tuples before it, which are counted."""
    FORWARD = "forward-context aware"
    """Also tuples after it, but their range is known."""
    UNBOUNDED = "forward-context unbounded"
    """Also tuples after it, anywhere in the stream."""


def context(window: Window) -> Context:
    """Return the class of a window by the tuples on which the windows of a tuple depend."""
    match window:
        case TupleSlideWindow(by_rank=by_rank, every=every):
            return Context.UNBOUNDED if by_rank and every.count > 1 else Context.FORWARD
        case RowWindow(by_arrival=True, partition_by=()):
            return Context.FREE  # row_num is an attribute of the tuple
        case _:
            return Context.BACKWARD if is_contextual(window) else Context.FREE


def is_contextual(window: Window) -> bool:
    """Whether the windows of a tuple depend on other tuples of the stream.

    Then a condition on tuples may not be asked before the window. Of landmark windows, those depend on the
    first tuple that have a time of day as a bound.
    """
    if isinstance(window, LandmarkWindow):
        return any(map(is_time_of_day, (window.start, window.end)))
    return isinstance(window, RowWindow | TupleSlideWindow | SessionWindow | PredicateWindow)


def is_time_of_day(constant: str | None) -> bool:
    """Whether a bound, as it is written, is a time without a date: it is on the day of the first tuple.

    >>> is_time_of_day("'9:30'"), is_time_of_day("'2026-01-31 09:30:00'"), is_time_of_day("42")
    (True, False, False)
    """
    return constant is not None and _TIME_OF_DAY.fullmatch(constant) is not None


def is_of_time(window: Window) -> bool:
    """Whether instants alone decide how long a tuple stays in the window."""
    return isinstance(window, RangeWindow | LandmarkWindow | NowWindow)


def counts_arrivals(window: Window) -> bool:
    """Whether tuples are counted in order of arrival: those count too that are in no window."""
    match window:
        case RowWindow(by_arrival=by_arrival):
            return by_arrival
        case TupleSlideWindow(by_rank=by_rank):
            return not by_rank
        case _:
            return False


def slides(window: Window) -> bool:
    """Whether the content of a window changes only every so often."""
    match window:
        case RangeWindow(slide=slide) | LandmarkWindow(slide=slide):
            return slide is not None
        case RowWindow(slide=slide):
            return slide.count > 1
        case _:
            return False


def is_stamped_apart(window: Window) -> bool:
    """Whether reports have other timestamps than the ends of their windows."""
    if isinstance(window, RangeWindow) and (window.lag is not None or window.stamp_last):
        return True
    return isinstance(window, RowWindow) or window.emit_every is not None


def is_of_months(window: Window) -> bool:
    """Whether a window is measured in months of the calendar, which differ in length."""
    return isinstance(window, RangeWindow) and isinstance(window.range, Duration) and window.range.months > 0


def has_ends(window: Window) -> bool:
    """Whether windows are reported when they end; RANGE without SLIDE moves all the time."""
    return not (isinstance(window, RangeWindow) and window.slide is None)


def has_bounds(window: Window) -> bool:
    """Whether instants that are written down bound the window."""
    return isinstance(window, LandmarkWindow) and (window.start is not None or window.end is not None)


def ends_with_the_input(window: Window) -> bool:
    """Whether windows that only the end of the input completes end with the newest tuple of the stream."""
    return isinstance(window, RowWindow | PredicateWindow | LandmarkWindow)


def empties(window: Window) -> bool:
    """Whether every tuple leaves the window some time, even if no other tuple comes."""
    return isinstance(window, RangeWindow | NowWindow)


def partitioning(window: Window, group_by: Iterable[str]) -> Partitioning:
    """The partitions of a window's tuples where its results are grouped by these columns."""
    if not is_contextual(window) or not window.partition_by:
        return Partitioning.WHOLE
    groups = {name.lower() for name in group_by}
    is_finer = groups <= {name.lower() for name in window.partition_by}
    return Partitioning.BY_KEY if is_finer else Partitioning.BY_PART
