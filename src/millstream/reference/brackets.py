"""Windows over a stream and their aggregates (semantics, section 3).

The three functions of the Window-ID paper for RANGE and SLIDE on one attribute: ``windows`` are all integers,
``extent`` says what a window holds, ``wids`` is its inverse. A windowed stream is each tuple once for every
complete window that it counts in; aggregation then groups by window like by any other column.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from millstream.analysis.expressions import ColumnRef, of_column
from millstream.plan.nodes import WindowAggregate, Windowed
from millstream.reference.aggregates import aggregation
from millstream.reference.errors import NotInterpreted
from millstream.reference.expressions import column_key, compiled, constant
from millstream.reference.points import NOTHING, Instant, Point, at, from_point, length, to_point
from millstream.reference.relations import (
    TIMESTAMP_ITSELF,
    Attribute,
    Record,
    Relation,
    Windows,
    attribute_of,
    in_order,
    moment,
)
from millstream.reference.values import Value, order_key, same_key
from millstream.types import BIGINT, Type
from millstream.windows.spec import RangeWindow, Window

WINDOW_COLUMNS = ("window_start", "window_end", "wid")


@dataclass(frozen=True)
class Sliding:
    """RANGE R SLIDE S on an attribute, aligned at an origin; exact numbers all."""

    range: Point
    slide: Point
    origin: Point = 0

    def extent(self, wid: int) -> tuple[Point, Point]:
        """From where (included) to where (excluded) a window reaches.

        >>> Sliding(300, 60).extent(10)
        (360, 660)
        """
        end = self.origin + (wid + 1) * self.slide
        return end - self.range, end

    def wids(self, point: Point) -> list[int]:
        """The windows that hold a point; none, if it falls between windows that do not overlap.

        >>> Sliding(300, 60).wids(600), Sliding(10, 60).wids(600)
        ([10, 11, 12, 13, 14], [])
        """
        wid = int((point - self.origin) // self.slide)
        found = []
        while self.extent(wid)[0] <= point:
            found.append(wid)
            wid += 1
        return found


def windowed(node: Windowed, relation: Relation) -> Relation:
    """Each tuple once for every complete window that it counts in."""
    window = _known_kind(node.window)
    for column in relation.schema:
        if column.name.lower() in WINDOW_COLUMNS:
            raise NotInterpreted(f"a window on a stream that has a column '{column.name}' itself")
    position, type_ = _attribute(window, relation)
    assert window.slide is not None
    sizes = Sliding(length(window.range, type_), length(window.slide, type_), _origin(window, type_))
    attribute = TIMESTAMP_ITSELF if position is None else attribute_of(relation.schema[position])
    passed, _ = relation.frontier(attribute)
    records = []
    for record in relation.records:
        point = moment(record) if position is None else to_point(record.values[position], type_)
        for wid in _windows_of(record, point, sizes, attribute, passed):
            start, end = sizes.extent(wid)
            edges = from_point(start, type_), from_point(end, type_), wid
            records.append(replace(record, values=(*record.values, *edges), window=(wid, end)))
    columns = zip(WINDOW_COLUMNS, (type_, type_, BIGINT), strict=True)
    schema = (*relation.schema, *(ColumnRef(node.alias, name, t) for name, t in columns))
    return replace(
        relation, schema=schema, records=records, windows=Windows(type_, passed, window.partition_by)
    )


def _known_kind(window: Window) -> RangeWindow:
    if not isinstance(window, RangeWindow):
        raise NotInterpreted(f"the window {window}")
    if window.slide is None:
        raise NotInterpreted(f"the window {window}, which moves with every instant")
    if window.emit_every is not None:
        raise NotInterpreted("EMIT EVERY")
    return window


def _attribute(window: Window, relation: Relation) -> tuple[int | None, Type]:
    """Where the attribute stands, or None for the timestamp itself, which need not be selected."""
    if window.attribute is not None:
        position = relation.column(window.attribute)
        return position, relation.schema[position].type
    if relation.time_type is None:
        raise NotInterpreted("a window on a table that names no attribute")
    return None, relation.time_type


def _origin(window: RangeWindow, type_: Type) -> Point:
    if window.origin is None:
        return 0
    point = to_point(constant(window.origin, type_), type_)
    if point is None:
        raise NotInterpreted(f"ORIGIN {window.origin}")
    return point


def _windows_of(
    record: Record, point: Point | None, sizes: Sliding, attribute: Attribute, passed: Instant
) -> Iterator[int]:
    """The complete windows that a record counts in; a late one only where its own source had not passed."""
    if point is None:
        return
    promised = NOTHING if record.promised is None else record.promised.get(attribute, NOTHING)
    for wid in sizes.wids(point):
        _, end = sizes.extent(wid)
        if promised < at(end) <= passed:
            yield wid


# ---------------------------------------------------------------- aggregation


def window_aggregate(node: WindowAggregate, content: Relation, source: int) -> Relation:
    """A row for each window and group that holds a tuple, stamped with the end of the window."""
    columns = [column_key(column) for column in content.schema]
    keys = [key.expr.column or ColumnRef("", key.name, key.expr.type) for key in node.group_by]
    functions = [compiled(key.expr, content.schema) for key in node.group_by]
    carried: list[ColumnRef] = []
    if content.windows is not None:
        # PATTR of a window that does not count rows is GROUP BY.
        names = {name.lower() for name in content.windows.partition_by}
        for column in content.schema:
            if column.name.lower() in names:
                keys.append(column)
                functions.append(compiled(of_column(column), content.schema))
        carried = [c for c in content.schema if c.name in WINDOW_COLUMNS]
    calls = [aggregation(call, content.schema) for call in node.aggregates]

    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in in_order(content):
        groups[record.window, same_key(f(record.values) for f in functions)].append(record)
    if content.windows is None and not keys and not groups:
        # A whole table is one group, empty or not.
        groups[None, ()] = []

    records = []
    for (window, _), members in groups.items():
        values = [_plain(f(members[0].values)) for f in functions]
        row = dict(zip(map(column_key, keys), values, strict=True))
        if members:
            row = dict(zip(columns, members[0].values, strict=True)) | row
        results = [call.of(members) for call in calls]
        wid, end = window or (0, None)
        order = (source, wid, *map(order_key, values))
        kept = [row[column_key(column)] for column in (*keys, *carried)]
        records.append(Record((*kept, *results), end, order))
    schema = (*keys, *carried, *(call.result for call in node.aggregates))
    return _stamped(content, schema, records)


def _stamped(content: Relation, schema: tuple[ColumnRef, ...], records: list[Record]) -> Relation:
    if content.windows is None:
        return Relation(schema, records)
    # Every window that ends up to there is out, and none that ends later can be before it.
    frontier = (content.windows.passed, (math.inf,))
    ends: list[Attribute] = [attribute_of(c) for c in schema if c.name == "window_end"]
    return Relation(
        schema,
        records,
        time_type=content.windows.type,
        ended=content.ended,
        frontiers=dict.fromkeys((TIMESTAMP_ITSELF, *ends), frontier),
    )


def _plain(value: Value) -> Value:
    """Of the two zeros that group together the plain one stands for both."""
    return 0.0 if isinstance(value, float) and value == 0 else value
