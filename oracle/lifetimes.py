"""Lifetimes of tuples in windows that have a state at each instant.

At an instant T a window without SLIDE holds the tuples with T - R < a <= T: a tuple enters at its place and
leaves R later. With SLIDE S the state during [kS, (k+1)S) is the extent of section 6 that ends at kS. A
landmark window keeps its tuples, also after its end (Patroumpas and Sellis, section 3).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from millstream.windows.window_spec import LandmarkWindow, NowWindow, RangeWindow, RowWindow, Window
from oracle.errors import NotInterpreted
from oracle.relations import Record, in_order, moment
from oracle.values.points import NOTHING, Instant, Point, at, before_last_word, following, leaving
from oracle.windows.window_reports import Line


class Slides(ABC):
    """The instants at which a window slides."""

    @abstractmethod
    def following(self, point: Point) -> Point | None:
        """Return the first slide at or after a point."""

    def between(self, first: Point, last: Point) -> Iterator[Point]:
        """Yield the slides from one point to another, both included."""
        slide = self.following(first)
        while slide is not None and slide <= last:
            yield slide
            slide = self.after(slide)

    @abstractmethod
    def after(self, point: Point) -> Point | None:
        """Return the first slide after a point."""


@dataclass(frozen=True)
class Multiples(Slides):
    """Periodic slides from an origin; those of a landmark window lie within its bounds, and at its end."""

    step: Point
    origin: Point = 0
    start: Point | None = None
    end: Point | None = None

    def following(self, point: Point) -> Point | None:
        return self._bounded(math.ceil(Fraction(point - self.origin) / self.step), point)

    def after(self, point: Point) -> Point | None:
        if self.end is not None and point >= self.end:
            return None
        return self._bounded(math.floor(Fraction(point - self.origin) / self.step) + 1, point)

    def _bounded(self, number: int, point: Point) -> Point | None:
        if self.end is not None and point > self.end:
            return None
        slide = self.origin + number * self.step
        if self.start is not None and slide <= self.start:
            slide = self.origin + (math.floor(Fraction(self.start - self.origin) / self.step) + 1) * self.step
        return slide if self.end is None else min(slide, self.end)


@dataclass(frozen=True)
class Listed(Slides):
    """Slides at instants of tuples."""

    instants: tuple[Point, ...]

    def following(self, point: Point) -> Point | None:
        return min((instant for instant in self.instants if instant >= point), default=None)

    def after(self, point: Point) -> Point | None:
        return min((instant for instant in self.instants if instant > point), default=None)


@dataclass(frozen=True)
class Lifetime:
    """A tuple in a window: from the instant of its entry to that of its exit, if any."""

    record: Record
    enters: Point
    leaves: Point | None

    def holds(self, instant: Point) -> bool:
        return self.enters <= instant and (self.leaves is None or instant < self.leaves)


@dataclass(frozen=True)
class Varying:
    """A windowed stream as it varies: lifetimes, slides, and the instant up to which they are final."""

    tuples: tuple[Lifetime, ...]
    final: Instant
    """Everything before this instant is final."""
    reached: Instant
    """Progress without the end of the input; the last promise of a partition counts."""
    slides: Slides | None = None

    def state(self, instant: Point) -> list[Record]:
        return [lifetime.record for lifetime in self.tuples if lifetime.holds(instant)]

    def changes(self) -> set[Point]:
        ends = (lifetime.leaves for lifetime in self.tuples)
        return {lifetime.enters for lifetime in self.tuples} | {end for end in ends if end is not None}


def varying(window: Window, line: Line) -> Varying:
    """Return a window over a stream as it varies with time."""
    rule = _KINDS.get(type(window))
    if rule is None:
        raise NotInterpreted(f"the state of the window {window} at an instant")
    if window.emit_every is not None:
        raise NotInterpreted("partial results of what is maintained at every instant")
    return rule(window, line)


def _range(window: RangeWindow, line: Line) -> Varying:
    size = line.length(window.range)
    tuples = line.placed(_on_time(line))
    if window.slide is None:
        lived = [Lifetime(record, place, leaving(place + size, line.type)) for record, place in tuples]
        return Varying(tuple(lived), line.passed, line.promised)
    slides = Multiples(line.length(window.slide), line.instant(window.origin) or 0)
    lived = [Lifetime(r, _known(slides.after(place)), slides.after(place + size)) for r, place in tuples]
    return Varying(_alive(lived), _with_end(line.passed), _with_end(line.promised), slides)


def _landmark(window: LandmarkWindow, line: Line) -> Varying:
    start, end = line.instant(window.start), line.end(window)
    tuples = [
        (record, place)
        for record, place in line.placed(_on_time(line))
        if (start is None or start <= place) and (end is None or place < end)
    ]
    if window.slide is None:
        lived = tuple(Lifetime(record, place, None) for record, place in tuples)
        return Varying(lived, line.passed, line.promised)
    slides = Multiples(line.length(window.slide), 0, start, end)
    lived = tuple(Lifetime(record, _known(slides.after(place)), None) for record, place in tuples)
    return Varying(lived, _with_end(line.passed), _with_end(line.promised), slides)


def _now(window: NowWindow, line: Line) -> Varying:
    lag = 0 if window.lag is None else line.length(window.lag)
    tuples = [(record, place + lag) for record, place in line.placed(_on_time(line))]
    lived = [
        Lifetime(record, place, leaving(following(place, line.type), line.type)) for record, place in tuples
    ]
    return Varying(tuple(lived), line.passed, line.promised)


def _rows(window: RowWindow, line: Line) -> Varying:
    """Return the latest tuples of each partition, after every ``slide`` of them.

    Latent tuples without a recorded time have unknown instants in their order: they are numbered here.
    """
    if window.by_arrival:
        raise NotInterpreted("the state of a window that counts arrivals at an instant")
    size, step = window.range.count, window.slide.count
    lived: list[Lifetime] = []
    instants: set[Point] = set()
    stream = line.on_time()
    unstamped = line.relation.latent and any(record.stamp is None for record in stream)
    numbers: dict[int, Point] = {id(record): number for number, record in enumerate(stream)}
    for partition in line.partitions(stream):
        times = [numbers[id(record)] if unstamped else moment(record) for record in partition]

        def slide_of(count: int, times: list[Point] = times) -> Point | None:
            """Return the instant of the first slide with at least so many tuples."""
            at_slide = -(-count // step) * step
            return times[at_slide - 1] if at_slide <= len(times) else None

        for i, record in enumerate(partition):
            enters, leaves = slide_of(i + 1), slide_of(i + 1 + size)
            if enters is not None:
                lived.append(Lifetime(record, enters, leaves))
        instants |= {times[i] for i in range(step - 1, len(times), step)}
    slides = Listed(tuple(instants)) if step > 1 else None
    return Varying(_alive(lived), line.passed, line.promised, slides)


_KINDS: dict[type[Window], Callable[[Any, Line], Varying]] = {
    RangeWindow: _range,
    LandmarkWindow: _landmark,
    NowWindow: _now,
    RowWindow: _rows,
}


def _on_time(line: Line) -> list[Record]:
    """Return tuples in the order of the stream, for aggregates that depend on it."""
    return [record for record in in_order(line.relation) if not record.is_late]


def _alive(lived: list[Lifetime]) -> tuple[Lifetime, ...]:
    """Drop lifetimes that end before any instant of evaluation."""
    return tuple(one for one in lived if one.leaves is None or one.enters < one.leaves)


def _known(slide: Point | None) -> Point:
    assert slide is not None, "there is a slide behind everything that is inside of the bounds"
    return slide


def _with_end(promise: Instant) -> Instant:
    """Return the instant after which a half-open extent is final."""
    if before_last_word(promise) == NOTHING:
        return promise
    return (promise[0], promise[1] + Fraction(1, 10**12))


def is_final_at(instant: Point, final: Instant) -> bool:
    return at(instant) < final
