"""Windows over a stream (semantics, section 6).

A windowed stream has each tuple once for every report of a window that counts it: when the window is
complete, and with EMIT EVERY before that. Aggregation then groups by report as by any column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.plan import nodes
from millstream.plan.time_attributes import arrives, timestamps
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
from oracle.errors import NotInterpreted
from oracle.relations import Record, Relation, Windows, moment
from oracle.values.points import within
from oracle.windows.scheduled_windows import landmark, now, sliding
from oracle.windows.session_or_predicate import predicate, session
from oracle.windows.tuple_counting import rows, tuple_slide
from oracle.windows.window_reports import Line, Reported

_KINDS: dict[type[Window], Callable[[Any, Line], Reported]] = {
    RangeWindow: sliding,
    RowWindow: rows,
    TupleSlideWindow: tuple_slide,
    NowWindow: now,
    LandmarkWindow: landmark,
    SessionWindow: session,
    PredicateWindow: predicate,
}

_IN_ORDER_OF_ARRIVAL = (
    nodes.StreamScan,
    nodes.TableScan,
    nodes.Rename,
    nodes.Filter,
    nodes.Project,
    nodes.TableJoin,
)
"""Operators that preserve the order of arrival."""


def windowed(node: nodes.Windowed, relation: Relation) -> Relation:
    """Return each tuple once for every report of a window that counts it."""
    window = node.window
    _refuse(window, node)
    line = Line(window, relation)
    reported = _KINDS[type(window)](window, line)
    relation, in_order = _ordered(node, line)
    records: list[Record] = []
    for exact, members in reported.contents:
        time = None if exact.time is None else within(exact.time, reported.time_type)
        report = replace(exact, time=time)
        added = (report.start, report.end, report.shown, *((report.complete,) if window.emit_every else ()))
        records += [replace(in_order(r), values=(*r.values, *added), window=report) for r in members]
    schema = (*relation.schema, *node.bounds)
    partition_by = tuple(relation.schema[relation.column(name)] for name in window.partition_by)
    windows = Windows(
        reported.time_type,
        reported.frontier,
        partition_by,
        node.bounds,
        reported.latent,
        reported.every,
        reported.reached,
    )
    return replace(relation, schema=schema, records=records, windows=windows)


def _ordered(node: nodes.Windowed, line: Line) -> tuple[Relation, Callable[[Record], Record]]:
    """Return the order of a window's content: by its attribute; ties keep the order of the stream.

    Tuples that pass unchanged are in order of arrival, as the rows of a table are.
    """
    if line.position is None or node.input.schema[line.position] in timestamps(node.input):
        return line.relation, lambda record: record
    as_read = arrives(node.input) or not node.streaming

    def placed(record: Record) -> Record:
        order = record.order if as_read else (moment(record), *record.order)
        return replace(record, time=line.place(record), order=order)

    return replace(line.relation, time_type=line.type, latent=False), placed


def _refuse(window: Window, node: nodes.Windowed) -> None:
    arrivals = isinstance(window, RowWindow) and window.by_arrival
    arrivals |= isinstance(window, TupleSlideWindow) and not window.by_rank and window.every.count > 1
    if arrivals and not all(isinstance(below, _IN_ORDER_OF_ARRIVAL) for below in node.input.walk()):
        raise NotInterpreted("row_num of what does not arrive but is computed")
