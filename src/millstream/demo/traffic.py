"""A simulated motorway: cars pass a sensor in each section, jams form and dissolve, sensors fall silent."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from millstream.demo.arrivals import Agenda, Arrival

TRAFFIC = "Traffic"
PLACES = ("Harbour", "Bridge", "Tunnel", "Stadium", "Airport", "Forest")

LATE_REPORT = 2.5
"""Seconds that a late report takes to arrive, at least; others take a third of a second at most."""

_CARS_PER_SECOND = 8.0
"""Cars in one section."""
_BAD, _LATE = 0.004, 0.004
_JAM = (4.0, 8.0)
"""Shortest and longest jam in seconds; between two jams of a section there is three times as much."""
_SILENT_SECTION = len(PLACES)
_SILENCE = (6.0, 5.0)
"""Seconds that the last sensor reports, and that it is silent, in turns."""
_BRAKING = 0.7
"""Factor by which speeds fall from car to car when a jam begins."""


def sections() -> list[tuple[object, ...]]:
    """Return the rows of the table of sections, with a header."""
    rows = [(i + 1, place, 80 if i % 2 else 100) for i, place in enumerate(PLACES)]
    return [("section", "place", "speed_limit"), *rows]


def traffic(start: datetime, seed: int = 2005) -> Iterator[Arrival]:
    """Yield the lines that arrive from the sensors, without end, beginning at ``start``."""
    agenda = Agenda(start, random.Random(seed))
    cars = itertools.count(1)
    for number in range(1, len(PLACES) + 1):
        section = _Section(agenda, number, cars)
        agenda.plan(agenda.chance.random(), section.report)
        agenda.plan(agenda.chance.uniform(0, 10), section.begin_jam)
    return agenda.arrivals()


@dataclass
class _Section:
    agenda: Agenda
    number: int
    cars: Iterator[int]
    in_jam: bool = False
    speed: float = 90.0

    def begin_jam(self, at: float) -> None:
        self.in_jam = True
        self.agenda.plan(at + self.agenda.chance.uniform(*_JAM), self._end_jam)

    def _end_jam(self, at: float) -> None:
        self.in_jam = False
        self.agenda.plan(at + 3 * self.agenda.chance.uniform(*_JAM), self.begin_jam)

    def report(self, at: float) -> None:
        chance = self.agenda.chance
        if not self.in_jam:
            self.speed = max(10.0, chance.gauss(90, 15))
        elif self.speed > 25:
            self.speed *= _BRAKING * chance.uniform(0.9, 1.1)
        else:
            self.speed = chance.uniform(5, 25)
        self.agenda.plan(at + chance.expovariate(_CARS_PER_SECOND), self.report)
        if self.number == _SILENT_SECTION and at % sum(_SILENCE) > _SILENCE[0]:
            return
        line = f"{self.number},{next(self.cars)},{self.speed:.1f},{self.agenda.stamp(at)}"
        is_late = chance.random() < _LATE
        delay = chance.uniform(LATE_REPORT, 2 * LATE_REPORT) if is_late else chance.uniform(0, 0.3)
        self.agenda.send(at + delay, TRAFFIC, line, _BAD)
