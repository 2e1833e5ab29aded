"""Windows that count tuples: row windows, and windows that slide by tuples (semantics, section 6)."""

from __future__ import annotations

import itertools

from millstream.quantity import Rows
from millstream.types import TIMESTAMP
from millstream.windows.window_spec import RowWindow, TupleSlideWindow
from oracle.relations import BEGINNING, Record, Report, moment
from oracle.values.points import Point, is_everything
from oracle.windows.rows import RowSliding
from oracle.windows.tuple_slide import TupleSlide
from oracle.windows.window_reports import Line, Reported


def rows(window: RowWindow, line: Line) -> Reported:
    """Report row windows; a result has the largest timestamp of its partition up to its last tuple.

    The end of the input completes the window that ends next: the latest tuples do not become fewer. Windows
    that count arrivals are the Window-ID paper's, and all that have a tuple are completed. Their results have
    the largest timestamp of the whole stream, as no result may be older than a promise.
    """
    relation = line.relation
    sizes = RowSliding(window.range.count, window.slide.count)
    ended = is_everything(line.passed)
    contents: list[tuple[Report, list[Record]]] = []
    for members in line.partitions(line.by_arrival() if window.by_arrival else line.on_time()):
        times: list[Point | None] = [None] * len(members)
        if not relation.latent and relation.time_type is not None:
            times = [*itertools.accumulate(map(moment, members), max)]
        for wid, _ in sizes.windows([()] * len(members)):
            ranks = sizes.ranks(wid)
            is_next = ranks.stop - window.slide.count < len(members)
            if ranks.stop <= len(members) or (ended and (is_next or window.by_arrival)):
                time = times[ranks.stop - 1] if ranks.stop <= len(members) else line.closing()
                report = Report(wid, ranks.start, ranks.stop, wid, time)
                contents.append((report, members[max(ranks.start, 0) : ranks.stop]))
        for count in _emissions(window, len(members)):
            wid = sizes.on_ranks.ending_after(count)
            ranks = sizes.ranks(wid)
            report = Report(wid, ranks.start, ranks.stop, wid, times[count - 1], False, count)
            contents.append((report, members[max(ranks.start, 0) : count]))
    time_type = relation.time_type or TIMESTAMP
    frontier = BEGINNING if relation.latent else line.up_to_here(with_end=True)
    return Reported(contents, time_type, frontier, relation.latent)


def _emissions(window: RowWindow, count: int) -> list[int]:
    """Return the numbers of tuples of a partition after which the next window is reported early."""
    if window.emit_every is None:
        return []
    assert isinstance(window.emit_every, Rows)
    every = window.emit_every.count
    return [n for n in range(every, count + 1, every) if n % window.slide.count]


def tuple_slide(window: TupleSlideWindow, line: Line) -> Reported:
    sizes = TupleSlide(line.length(window.range), window.every.count, window.by_rank)
    contents = []
    # Ranks are those of all present tuples: below the promise no others come.
    arrived = sorted(line.relation.records, key=lambda record: record.order)
    counted = {id(r) for r in (arrived if window.by_rank or window.every.count == 1 else line.by_arrival())}
    for members in line.partitions(arrived):
        stream = [line.place(r) for r in members if id(r) in counted and not r.is_late]
        tuples = [(r, place) for r, place in line.placed(members) if not r.is_late]
        for wid in sizes.windows(stream):
            extent = sizes.extent(wid)
            if line.has_passed(extent):
                value = line.value(wid)
                report = Report(wid, line.value(extent.start), value, value, wid)
                held = [r for r, place in tuples if place in extent and line.counts(r, extent)]
                contents.append((report, held))
    return Reported(contents, line.type, line.up_to_here(with_end=True))
