"""Windows defined by the arrival of tuples: sessions, and START WHEN / END WHEN (semantics, section 6).

Late tuples make no window and are in none.
"""

from __future__ import annotations

from millstream.analysis.queries.resolved_expression import Expr
from millstream.windows.window_spec import PredicateWindow, SessionWindow
from oracle.relations import Record, Report, moment
from oracle.values.expressions import holds
from oracle.values.points import Point, at, is_everything
from oracle.windows.predicate import Predicate
from oracle.windows.session import Session
from oracle.windows.window_reports import Line, Reported

Contents = list[tuple[Report, list[Record]]]


def session(window: SessionWindow, line: Line) -> Reported:
    sessions = Session(line.length(window.gap))
    contents: Contents = []
    for members in line.partitions(record for record in line.relation.records if not record.is_late):
        tuples = line.placed(members)
        places = [place for _, place in tuples]
        for wid, extent in enumerate(sessions.extents(places)):
            if line.has_passed(extent):
                report = Report(wid, line.value(extent.start), line.value(extent.end), wid, _end(extent.end))
                contents.append((report, [record for record, place in tuples if place in extent]))
        for instant in line.emissions(min(places)) if places else ():
            before = [(record, place) for record, place in tuples if place < instant]
            *_, (wid, extent) = enumerate(sessions.extents(place for _, place in before))
            # It is open until its end is exceeded: a tuple at the end itself could still extend it.
            if instant <= _end(extent.end):
                report = Report(wid, line.value(extent.start), line.value(extent.end), wid, instant, False)
                contents.append((report, [record for record, place in before if place in extent]))
    return Reported(contents, line.type, line.up_to_here(with_end=True))


def predicate(window: PredicateWindow, line: Line) -> Reported:
    """Report predicate windows; those completed by the end of the input have the largest timestamp of all."""
    assert isinstance(window.start_when, Expr)
    assert isinstance(window.end_when, Expr)
    starts = holds(window.start_when, line.relation.schema)
    ends = holds(window.end_when, line.relation.schema)
    contents: Contents = []
    ended = is_everything(line.passed)

    def open_and_closed(members: list[Record]) -> list[tuple[int, bool, list[Record]]]:
        episodes = Predicate().extents([(starts(r.values), ends(r.values)) for r in members])
        return [(wid, e.open, members[e.first : e.last + 1]) for wid, e in enumerate(episodes)]

    def report(wid: int, members: list[Record], time: Point | None, complete: bool) -> Report:
        first, last = line.value(moment(members[0])), line.value(moment(members[-1]))
        return Report(wid, first, last, wid, time, complete)

    for members in line.partitions(line.on_time()):
        for wid, is_open, held in open_and_closed(members):
            last = moment(held[-1])
            if ended or (not is_open and at(last) < line.passed):
                contents.append((report(wid, held, line.closing() if is_open else last, True), held))
        for instant in line.emissions(moment(members[0])):
            before = open_and_closed([record for record in members if moment(record) < instant])
            contents += [(report(wid, m, instant, False), m) for wid, is_open, m in before if is_open]
    return Reported(contents, line.type, line.up_to_here(with_end=True))


def _end(point: Point | None) -> Point:
    assert point is not None
    return point
