"""Windows with ends known in advance: sliding and landmark windows, and NOW (semantics, section 6)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.quantity import Duration
from millstream.types import Kind, bound_type
from millstream.windows.window_spec import LandmarkWindow, NowWindow, RangeWindow
from oracle.relations import Record, Report
from oracle.values.expressions import compiled
from oracle.values.points import NOTHING, Point, at, is_everything
from oracle.windows.extent import Extent
from oracle.windows.landmark import Landmark
from oracle.windows.months import SlidingMonths, month_of
from oracle.windows.now import Now
from oracle.windows.sliding import Sliding
from oracle.windows.window_reports import Line, Placed, Reported

Contents = list[tuple[Report, list[Record]]]


def sliding(window: RangeWindow, line: Line) -> Reported:
    assert window.slide is not None
    lag = 0 if window.lag is None else line.written(window.lag)
    origin = line.origin(window.origin) - lag
    later = lag - (line.step if window.stamp_last else 0)
    if isinstance(window.range, Duration) and isinstance(window.slide, Duration) and window.range.months:
        sizes: Sliding = SlidingMonths(window.range.months, window.slide.months, month_of(origin))
    else:
        sizes = Sliding(line.written(window.range), line.written(window.slide), origin, line.rounded)
    tuples = line.placed(line.relation.records)
    if line.type.kind in (Kind.DOUBLE, Kind.FLOAT):
        # Ids of windows that are further from the origin would not fit into a BIGINT.
        far = line.written(window.emit_every or window.slide) * 2**62
        tuples = [(record, place) for record, place in tuples if _distance(place, origin) + sizes.size < far]
    extent_of = _varying(window, line, sizes) if window.cases else sizes.extent
    held: dict[int, list[Placed]] = defaultdict(list)
    for record, place in tuples:
        for wid in sizes.wids(place):
            if place in extent_of(wid):
                held[wid].append((record, place))
    contents: Contents = []
    for wid, members in sorted(held.items()):
        extent = extent_of(wid)
        assert extent.end is not None
        if line.has_passed(extent):
            report = Report(wid, line.value(extent.start), line.value(extent.end), wid, extent.end + later)
            contents.append((report, _content(line, members, extent)))
    every: tuple[Report, ...] = ()
    reached = sizes.ending_after(line.reached[1]) - 1 if line.reached > NOTHING else -math.inf
    if window.emit_empty and contents:
        wids = range(int(contents[0][0].wid), int(max(contents[-1][0].wid, reached)) + 1)
        extents = [(wid, sizes.extent(wid)) for wid in wids]
        every = tuple(
            Report(wid, line.value(extent.start), line.value(extent.end), wid, extent.end + later)
            for wid, extent in extents
            if extent.end is not None
        )
    for instant in line.emissions(min((place for _, place in tuples), default=0), origin) if tuples else ():
        wid = sizes.ending_after(instant)
        extent = sizes.extent(wid)
        if sizes.extent(wid - 1).end != instant:
            bounds = line.value(extent.start), line.value(extent.end)
            report = Report(wid, *bounds, wid, instant + later, False)
            contents.append((report, _content(line, held[wid], replace(extent, end=instant))))
    frontier = line.up_to_here(with_end=window.stamp_last)
    return Reported(contents, line.type, frontier, every=every, reached=reached)


def _varying(window: RangeWindow, line: Line, sizes: Sliding) -> Callable[[int], Extent]:
    """Return the extents of windows whose range is that of the first condition that holds of their end."""
    end = ColumnRef("", "window_end", bound_type(line.type))
    cases = [
        (compiled(when, (end,)) if isinstance(when, Expr) else None, line.written(reach))
        for when, reach in window.cases
    ]

    def extent(wid: int) -> Extent:
        whole = sizes.extent(wid)
        assert whole.end is not None
        values = (line.value(whole.end),)
        reach = next(reach for when, reach in cases if when is None or when(values) is True)
        return Extent(whole.end - reach, whole.end)

    return extent


def _distance(one: Point, other: Point) -> Point:
    return one - other if one > other else other - one


def landmark(window: LandmarkWindow, line: Line) -> Reported:
    tuples = line.placed(line.relation.records)
    slide = None if window.slide is None else line.written(window.slide)
    marks = Landmark(line.instant(window.start), line.end(window), slide, line.rounded)
    start = line.value(marks.start)
    inside = [(record, place) for record, place in tuples if place in marks.whole]
    scheduled = marks.slide is not None or marks.end is not None
    contents: Contents = []
    if inside:
        last = max(place for _, place in inside)
        if line.reached > at(last):
            # No result is older than the progress that was made before it.
            last = line.reached[1]
        if not scheduled and is_everything(line.passed):
            report = Report(0, start, line.value(last), 0, last)
            contents.append((report, [record for record, _ in inside]))
        for wid, end in _ends(marks, line, [place for _, place in tuples]) if scheduled else ():
            report = Report(wid, start, line.value(end), wid, end)
            contents.append((report, _content(line, inside, marks.extent(wid))))
        for instant in line.emissions(min(place for _, place in inside)):
            wid = marks.ending_after(instant)
            scheduled_end = marks.extent(wid).end
            # Without a scheduled end the window ends now, as far as is known.
            end = instant if scheduled_end is None else scheduled_end
            if not scheduled or (instant < end and instant != marks.extent(wid - 1).end):
                report = Report(wid, start, line.value(end), wid, instant, False)
                contents.append((report, _content(line, inside, Extent(marks.start, instant))))
    return Reported(contents, line.type, line.up_to_here(with_end=not scheduled))


def _ends(marks: Landmark, line: Line, places: list[Point]) -> list[tuple[int, Point]]:
    """Return the ends before the punctuation and, after the input, the first after the last tuple."""
    windows = marks.windows(places)
    reached = line.reached
    stop = max(windows.stop, marks.ending_after(reached[1]) + 1 if reached >= at(max(places)) else 0)
    ends = []
    for wid in range(windows.start, stop):
        extent = marks.extent(wid)
        assert extent.end is not None
        if at(extent.end) <= reached or (wid < windows.stop and is_everything(line.passed)):
            ends.append((wid, extent.end))
    return ends


def now(window: NowWindow, line: Line) -> Reported:
    tuples = line.placed(line.relation.records)
    instants = Now()
    contents: Contents = []
    for wid in instants.windows(place for _, place in tuples):
        extent = instants.extent(wid)
        if line.has_passed(extent):
            value = line.value(wid)
            report = Report(wid, value, value, value, wid)
            contents.append((report, _content(line, tuples, extent)))
    return Reported(contents, line.type, line.up_to_here(with_end=True))


def _content(line: Line, members: list[Placed], extent: Extent) -> list[Record]:
    return [record for record, place in members if place in extent and line.counts(record, extent)]
