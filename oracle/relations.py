"""Relations between operators: records with hidden columns, and promises about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.types import Type
from oracle.errors import NotInterpreted
from oracle.values.expressions import column_key
from oracle.values.points import (
    EVERYTHING,
    NOTHING,
    Instant,
    Point,
    at,
    before_last_word,
    is_everything,
    last_word,
    to_point,
)
from oracle.values.values import Value

Attribute = tuple[str, str] | None
"""A column by relation and name in lower case; None is the timestamp, selected or not."""
TIMESTAMP_ITSELF: Attribute = None

Frontier = tuple[Instant, tuple[float, ...]]
"""The point up to which a stream is final, and the origin up to which the records at that point are.

It is the minimum over (promise, origin) of the source partitions: records of an origin that are still to come
have at least the point that it promised, and so they stand after every record up to the minimum.
"""
BEGINNING: Frontier = (NOTHING, ())
END: Frontier = (EVERYTHING, ())


def slowest(frontiers: Iterable[Frontier]) -> Frontier:
    """Return the common progress: that of the slowest partition that has not promised everything.

    When all have, any of them may have been the last, and so the furthest promise before it counts.
    """
    given = list(frontiers)
    waited_for = [frontier for frontier in given if not is_everything(frontier[0])]
    return min(waited_for) if waited_for else max(given)


@dataclass(frozen=True)
class Report:
    """A report of a window: when it is complete, or (EMIT EVERY) its state before that.

    ``start``, ``end`` and ``shown`` are the columns window_start, window_end and wid; ``time`` is the
    timestamp of the result, None if the stream is latent. ``count`` distinguishes reports of one window and
    time.
    """

    wid: Point
    start: Value
    end: Value
    shown: Value
    time: Point | None
    complete: bool = True
    count: int = 0

    @property
    def place(self) -> tuple[Any, ...]:
        """Its place among reports of the same time."""
        return (self.wid, self.complete, self.count)


@dataclass(frozen=True)
class Record:
    """A tuple of a stream, or a row of a table.

    ``order`` breaks ties of ``time``: (source, source partition, offset) for a tuple of a source, (source,
    place of the report, group key) for the result of a window, followed by the number of the table's row for
    the result of a join. ``time`` is None for a row of a table and for a latent tuple, which may have a
    ``stamp`` instead. ``promised`` is set for a late tuple of a GENEROUS stream: the promises of its source
    partition on its arrival, by attribute. ``window`` is the report of a window that contains the record.
    """

    values: tuple[Value, ...]
    time: Point | None
    order: tuple[Any, ...]
    stamp: Point | None = None
    promised: Mapping[Attribute, Instant] | None = None
    window: Report | None = None

    @property
    def is_late(self) -> bool:
        return self.promised is not None


@dataclass(frozen=True)
class Windows:
    """Window of a stream: timestamps of results, their finality, PATTR, bounds."""

    type: Type
    frontier: Frontier
    partition_by: tuple[ColumnRef, ...]
    bounds: tuple[ColumnRef, ...]
    latent: bool = False
    every: tuple[Report, ...] = ()
    """Reports of all windows, also without tuples, if these are reported, too."""
    reached: float | Point = -math.inf
    """The last of them that the promises before the end of the input have reached."""


@dataclass(frozen=True)
class Relation:
    """Records in no particular order; ``time_type`` is None for a table."""

    schema: tuple[ColumnRef, ...]
    records: Sequence[Record]
    time_type: Type | None = None
    latent: bool = False
    ended: bool = True
    frontiers: Mapping[Attribute, Frontier] = field(default_factory=dict)
    windows: Windows | None = None

    def frontier(self, attribute: Attribute) -> Frontier:
        """Return the frontier of an attribute; without a promise, only the end of the input is final."""
        return END if self.ended else self.frontiers.get(attribute, BEGINNING)

    def before_end(self) -> Relation:
        """Return the relation with the progress before the input ended, or before its last promise."""
        frontiers = {a: (before_last_word(promise), rest) for a, (promise, rest) in self.frontiers.items()}
        return replace(self, ended=False, frontiers=frontiers)

    def changed(self, records: Iterable[Record], schema: Sequence[ColumnRef] | None = None) -> Relation:
        """Return other records with the same promises."""
        return replace(self, records=tuple(records), schema=self.schema if schema is None else tuple(schema))

    def renamed(self, change: Callable[[Attribute], Attribute]) -> Relation:
        """Rename attributes; one without a new name loses its promises."""

        def changed(promises: Mapping[Attribute, Any]) -> dict[Attribute, Any]:
            named = {change(old): value for old, value in promises.items() if old is not TIMESTAMP_ITSELF}
            named.pop(TIMESTAMP_ITSELF, None)
            if TIMESTAMP_ITSELF in promises:
                named[TIMESTAMP_ITSELF] = promises[TIMESTAMP_ITSELF]
            return named

        records = [
            record if record.promised is None else replace(record, promised=changed(record.promised))
            for record in self.records
        ]
        return replace(self, records=tuple(records), frontiers=changed(self.frontiers))

    def promising(self, kept: Iterable[ColumnRef]) -> Relation:
        """Keep the promises on the timestamp and these columns only."""
        attributes = {TIMESTAMP_ITSELF, *map(attribute_of, kept)}
        return replace(self, frontiers={a: f for a, f in self.frontiers.items() if a in attributes})

    def held_back(self, waiting: Sequence[Record]) -> Relation:
        """Reduce the promises to those that hold for tuples that may still become results."""
        frontiers = dict(self.frontiers)
        for attribute, (promise, _) in self.frontiers.items():
            instant = before_last_word(promise)
            position = next((i for i, c in enumerate(self.schema) if attribute_of(c) == attribute), None)
            points = [
                moment(record)
                if position is None
                else to_point(record.values[position], self.schema[position].type)
                for record in waiting
            ]
            least = min((at(point) for point in points if point is not None), default=instant)
            if least < instant:
                frontiers[attribute] = (last_word(least) if is_everything(promise) else least, ())
        return replace(self, frontiers=frontiers)

    def column(self, name: str) -> int:
        """Return the position of a column."""
        return next(i for i, c in enumerate(self.schema) if c.name.lower() == name.lower())


def attribute_of(column: ColumnRef) -> Attribute:
    return column_key(column)


def moment(record: Record) -> Point:
    """Return the timestamp of a record; that of a latent tuple is the recorded one."""
    point = record.time if record.time is not None else record.stamp
    if point is None:
        raise NotInterpreted("the timestamp of a latent tuple that has no recorded stamp")
    return point


def in_order(relation: Relation) -> list[Record]:
    """Return the records of a stream in its order, late ones among the others."""
    if relation.latent and any(record.stamp is None for record in relation.records):
        return sorted(relation.records, key=lambda record: record.order)
    if relation.time_type is None:
        return list(relation.records)
    return sorted(relation.records, key=lambda record: (moment(record), record.order))


def is_final(record: Record, relation: Relation) -> bool:
    """Return whether no record that is still to come can stand before this one."""
    if relation.latent:
        return True
    return (at(moment(record)), record.order[:2]) <= relation.frontier(TIMESTAMP_ITSELF)
