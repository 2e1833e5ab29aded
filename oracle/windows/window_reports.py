"""Reports of windows, and the attribute, tuples and progress that all kinds of windows need."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from millstream.quantity import Quantity
from millstream.types import Type, bound_type
from millstream.windows.window_spec import LandmarkWindow, Window
from oracle.errors import NotInterpreted
from oracle.relations import (
    BEGINNING,
    TIMESTAMP_ITSELF,
    Frontier,
    Record,
    Relation,
    Report,
    attribute_of,
    in_order,
    is_final,
    moment,
)
from oracle.values.expressions import constant
from oracle.values.points import (
    NOTHING,
    Instant,
    Point,
    at,
    before_last_word,
    following,
    from_point,
    is_everything,
    length,
    rounding,
    to_point,
    within,
    written,
)
from oracle.values.values import same_key
from oracle.windows.extent import Extent, Rounding, first_above

Partition = tuple[Any, ...]
Placed = tuple[Record, Point]
"""A record and its place on the window's attribute."""

_TIME_OF_DAY = re.compile(r"'(\d{1,2}:\d{1,2}(:\d{1,2}(\.\d+)?)?)'")


@dataclass(frozen=True)
class Reported:
    """All reports of the windows of a stream, each with its content, and their frontier."""

    contents: list[tuple[Report, list[Record]]]
    time_type: Type
    frontier: Frontier
    latent: bool = False
    every: tuple[Report, ...] = ()
    reached: float | Point = -math.inf


@dataclass(frozen=True)
class Line:
    """The attribute of a window; it may be the timestamp, which need not be selected."""

    window: Window
    relation: Relation

    # ------------------------------------------------------------ the attribute

    @property
    def position(self) -> int | None:
        """The position of the attribute, or None for the timestamp itself."""
        return None if self.window.attribute is None else self.relation.column(self.window.attribute)

    @property
    def type(self) -> Type:
        if self.position is not None:
            return self.relation.schema[self.position].type
        if self.relation.time_type is None:
            raise NotInterpreted("a window on a table that names no attribute")
        return self.relation.time_type

    def place(self, record: Record) -> Point | None:
        if self.position is None:
            return moment(record)
        return to_point(record.values[self.position], self.type)

    def placed(self, records: Iterable[Record]) -> list[Placed]:
        """Return the records that have a place; NULL is in no window."""
        return [(record, place) for record in records if (place := self.place(record)) is not None]

    def length(self, quantity: Quantity) -> Point:
        return length(quantity, self.type)

    def written(self, quantity: Quantity) -> Point:
        """Return an amount for windows on a grid."""
        return written(quantity, self.type)

    @property
    def rounded(self) -> Rounding:
        """Conversion of bounds of windows on a grid to values of the attribute."""
        return rounding(self.type)

    def value(self, point: Point | None) -> Any:
        """Return a bound as a value of its type."""
        return None if point is None else from_point(within(point, self.type), bound_type(self.type))

    def origin(self, text: str | None) -> Point:
        """Return the origin of a grid."""
        if text is not None and self.type.is_numeric:
            return Fraction(Decimal(text.replace(" ", "")))
        return self.instant(text) or 0

    def instant(self, text: str | None) -> Point | None:
        """Return a constant; a time of day is on the day of the first tuple."""
        if text is None:
            return None
        if self.type.is_numeric:
            return self.rounded(self.origin(text))
        time = _TIME_OF_DAY.fullmatch(text)
        if time is not None and self.type.is_time:
            tuples = self.placed(record for record in self.relation.records if not record.is_late)
            first = min((place for _, place in tuples), default=0)
            day = from_point(first - first % 86_400_000_000, Type(self.type.kind))
            text = f"'{day:%Y-%m-%d} {time[1]}'"
        point = to_point(constant(text, self.type), self.type)
        if point is None:
            raise NotInterpreted(f"a window that is aligned at {text}")
        return point

    def end(self, window: LandmarkWindow) -> Point | None:
        """Return the end of a landmark window: the instant after one that is included."""
        end = self.instant(window.end)
        return following(end, self.type) if end is not None and window.inclusive else end

    @property
    def step(self) -> Point:
        """The distance between two instants."""
        return following(0, self.type)

    # ------------------------------------------------------------ tuples

    def on_time(self) -> list[Record]:
        """Return the tuples on time, in the order of the stream, as far as they are final."""
        relation = self.relation
        return [r for r in in_order(relation) if not r.is_late and is_final(r, relation)]

    def by_arrival(self) -> list[Record]:
        """Return the tuples on time, in order of arrival, as far as no earlier arrival is possible.

        Arrivals are counted through one source partition after the other.
        """
        records = sorted((r for r in self.relation.records if not r.is_late), key=lambda r: r.order)
        if self.relation.ended or not records:
            return records
        return [record for record in records if record.order[:2] == (records[0].order[0], 0)]

    def partitions(self, records: Iterable[Record]) -> list[list[Record]]:
        """Return records by PATTR, each partition in order."""
        positions = [self.relation.column(name) for name in self.window.partition_by]
        found: dict[Partition, list[Record]] = defaultdict(list)
        for record in records:
            found[same_key(record.values[i] for i in positions)].append(record)
        return list(found.values())

    # ------------------------------------------------------------ progress

    @property
    def passed(self) -> Instant:
        """The present promise; everything, once the input has ended."""
        return self._frontier()[0]

    @property
    def reached(self) -> Instant:
        """The promise at the end of the input, or at its last promise of everything."""
        return before_last_word(self.promised)

    @property
    def promised(self) -> Instant:
        """The promises of the input itself, including its last; the rows of a table come in order."""
        if self.relation.time_type is None:
            places = [place for _, place in self.placed(self.relation.records)]
            return at(max(places)) if places else NOTHING
        attribute = TIMESTAMP_ITSELF if self.position is None else self._attribute()
        return self.relation.frontiers.get(attribute, BEGINNING)[0]

    def closing(self) -> Point | None:
        """The timestamp of windows completed by the end: the largest of all, or the promise before it.

        Only some latent tuples have one.
        """
        if self.relation.latent:
            return None
        newest = max(moment(record) for record in self.relation.records if not record.is_late)
        return newest if self.reached == NOTHING else max(newest, self.reached[1])

    def has_passed(self, extent: Extent) -> bool:
        """Return whether a window is over: its end is reached, or exceeded if the window includes it."""
        return _has_passed(self.passed, extent)

    def counts(self, record: Record, extent: Extent) -> bool:
        """Return whether a window counts a record; a late one only if its source had not passed the end."""
        if record.promised is None:
            return True
        attribute = TIMESTAMP_ITSELF if self.position is None else self._attribute()
        return not _has_passed(record.promised.get(attribute, NOTHING), extent)

    def emissions(self, first: Point, origin: Point = 0) -> Iterator[Point]:
        """Yield the multiples of EMIT EVERY after a point, up to the promises before the end."""
        every = self.window.emit_every
        if every is None:
            return
        step = self.written(every)

        def instant(number: int) -> Point:
            return self.rounded(origin + number * step)

        count = first_above(first, instant, math.floor((first - origin) / step))
        while at(instant(count)) <= self.reached:
            yield instant(count)
            count += 1

    def up_to_here(self, *, with_end: bool) -> Frontier:
        """Return the frontier of results with the timestamps of windows' ends, before the input ends."""
        # Half-open windows that end at the promise are final; closed ones may not be.
        return (self.promised, () if with_end else (math.inf,))

    def _frontier(self) -> Frontier:
        return self.relation.frontier(TIMESTAMP_ITSELF if self.position is None else self._attribute())

    def _attribute(self) -> tuple[str, str] | None:
        assert self.position is not None
        return attribute_of(self.relation.schema[self.position])


def _has_passed(promise: Instant, extent: Extent) -> bool:
    if extent.end is None:
        return is_everything(promise)
    return promise > at(extent.end) if extent.with_end else promise >= at(extent.end)
