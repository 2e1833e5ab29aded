"""Lines that arrive at the streams of a demo.

Nothing here reads a clock. Times are seconds since the beginning of the demo, and the sender chooses the
instant of that beginning. Equal seeds give equal lines.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

GARBAGE = "HTTP/1.1 502 Bad Gateway"


class Arrival(NamedTuple):
    """A line that arrives at a stream, ``at`` seconds after the beginning."""

    at: float
    stream: str
    line: str


Event = Callable[[float], Arrival | None]
"""Function of its own time that gives the line to send, if there is one, and plans further events."""


@dataclass
class Agenda:
    """Events to come, in a heap."""

    start: datetime
    chance: random.Random
    _events: list[tuple[float, int, Event]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def plan(self, at: float, event: Event) -> None:
        """Let an event happen at some time."""
        # The number keeps events of one time in the order in which they were planned.
        heapq.heappush(self._events, (at, next(self._numbers), event))

    def send(self, at: float, stream: str, line: str, bad: float = 0.0) -> None:
        """Let a line arrive; with probability ``bad`` it is damaged."""
        text = damaged(line, self.chance) if self.chance.random() < bad else line
        self.plan(at, lambda now: Arrival(now, stream, text))

    def stamp(self, at: float) -> str:
        """Return a time as the sources write it, which is that of UTC."""
        moment = self.start + timedelta(seconds=at)
        return moment.replace(tzinfo=None).isoformat(timespec="milliseconds")

    def arrivals(self) -> Iterator[Arrival]:
        """Let events happen in order; those before the beginning send nothing."""
        while True:
            at, _, event = heapq.heappop(self._events)
            arrival = event(at)
            if arrival is not None and at >= 0:
                yield arrival


def damaged(line: str, chance: random.Random) -> str:
    """Return a line as a faulty sender or a broken connection would deliver it.

    >>> damaged("17,20.5,b1,2026-05-04", random.Random(1))
    '17,20.5'
    """
    return chance.choice([line[: len(line) // 3], line.replace("1", "l").replace("0", "O"), GARBAGE])


def skewed(chance: random.Random, count: int) -> int:
    """Return a number below ``count``; small numbers are far more frequent."""
    return int(count * chance.random() ** 2.5)
