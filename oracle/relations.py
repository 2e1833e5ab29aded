"""What flows between operators: records with what travels along unseen, and what is promised about them."""

from __future__ import annotations

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
"""How far a stream is final: up to this point, and of the records at the point up to this origin.

It is the minimum over (promise, origin) of the source partitions: those records of an origin that are still
to come have at least the point that it promised, and so they stand behind every record up to the minimum.
"""
BEGINNING: Frontier = (NOTHING, ())
END: Frontier = (EVERYTHING, ())


def slowest(frontiers: Iterable[Frontier]) -> Frontier:
    """Common progress of all: that of the slowest which has not said its last word.

    When all have, any of them may have been the last, and so the furthest promise before it counts.
    """
    given = list(frontiers)
    waited_for = [frontier for frontier in given if not is_everything(frontier[0])]
    return min(waited_for) if waited_for else max(given)


@dataclass(frozen=True)
class Report:
    """A window as it is reported: when it is complete, or (EMIT EVERY) as it stands at some moment before.

    ``start``, ``end`` and ``shown`` are what window_start, window_end and wid show; ``time`` is the stamp of
    the result, None where the stream is latent. ``count`` tells reports of one window and time apart.
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
        """Its place among those of the same time."""
        return (self.wid, self.complete, self.count)


@dataclass(frozen=True)
class Record:
    """A tuple of a stream, or a row of a table.

    ``order`` breaks ties of ``time``: (source, source partition, offset) for what was read, (source, place of
    the report, group key) for the result of a window, followed by the number of the table's row for the
    result of a join.
    ``time`` is None for a row of a table and for a latent tuple, which may have a ``stamp`` instead.
    ``promised`` is given for a late tuple of a GENEROUS stream: what its own source partition had promised
    when it came, on each attribute that it promises anything about. ``window`` is the report of a window in
    which the record is seen.
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
    """Window of a stream: stamps of results, up to where they are final, PATTR, bounds."""

    type: Type
    frontier: Frontier
    partition_by: tuple[ColumnRef, ...]
    bounds: tuple[ColumnRef, ...]
    latent: bool = False


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
        """How far an attribute is final; where nothing is promised, only the end of the input makes it so."""
        return END if self.ended else self.frontiers.get(attribute, BEGINNING)

    def before_end(self) -> Relation:
        """Progress before the input ended, or before its last word."""
        frontiers = {a: (before_last_word(promise), rest) for a, (promise, rest) in self.frontiers.items()}
        return replace(self, ended=False, frontiers=frontiers)

    def changed(self, records: Iterable[Record], schema: Sequence[ColumnRef] | None = None) -> Relation:
        """Other records with the same promises about them."""
        return replace(self, records=tuple(records), schema=self.schema if schema is None else tuple(schema))

    def renamed(self, change: Callable[[Attribute], Attribute]) -> Relation:
        """The same with attributes under new names; one that has none is no longer promised anything."""

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
        """The same with promises about the timestamp and these columns only."""
        attributes = {TIMESTAMP_ITSELF, *map(attribute_of, kept)}
        return replace(self, frontiers={a: f for a, f in self.frontiers.items() if a in attributes})

    def held_back(self, waiting: Sequence[Record]) -> Relation:
        """The same, promising no more than tuples allow that may still become results."""
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
        """The position of a column."""
        return next(i for i, c in enumerate(self.schema) if c.name.lower() == name.lower())


def attribute_of(column: ColumnRef) -> Attribute:
    return column_key(column)


def moment(record: Record) -> Point:
    """The timestamp that an operator needs; of a latent tuple the one that was recorded when it needed it."""
    point = record.time if record.time is not None else record.stamp
    if point is None:
        raise NotInterpreted("the timestamp of a latent tuple that has no recorded stamp")
    return point


def in_order(relation: Relation) -> list[Record]:
    """The records of a stream in its order, late ones among the others."""
    if relation.latent and any(record.stamp is None for record in relation.records):
        return sorted(relation.records, key=lambda record: record.order)
    if relation.time_type is None:
        return list(relation.records)
    return sorted(relation.records, key=lambda record: (moment(record), record.order))


def is_final(record: Record, relation: Relation) -> bool:
    """Whether nothing that is still to come can stand before this record."""
    if relation.latent:
        return True
    return (at(moment(record)), record.order[:2]) <= relation.frontier(TIMESTAMP_ITSELF)
