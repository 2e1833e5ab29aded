"""An auction site that is not there: everything that happens on it, in order of arrival.

Nothing here looks at a clock. Times are seconds since the site was first looked at; whoever plays the events
says which moment that was. The same seed gives the same events.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

OPEN, BID, CLOSED = "OpenAuction", "Bid", "ClosedAuction"

LATEST = 3.0
"""Seconds that the opening of an auction may be on its way to us; nothing else takes longer."""
SHORTEST, LONGEST = 6.0, 20.0
"""Seconds that an auction lasts."""

_HISTORY = 2 * LONGEST
"""Seconds before the first look: auctions are under way then."""
_OPENED_PER_SECOND = 8.0
_DELAYED = 0.3
_RUSH = 0.2
"""The last part of an auction, when half of its bids are made."""
_BAD_OPENINGS, _BAD_BIDS = 0.05, 0.005
_SHOW_PIECES = 9.0
"""Seconds between the items that everybody wants."""
_MOST_BIDS = 400
_BIDDERS = 500

_FIRST = ("Ada", "Bo", "Chen", "Dina", "Emil", "Fatou", "Greta", "Hugo", "Ines", "Jun", "Kofi", "Lena")
_LAST = ("Abreu", "Berg", "Costa", "Dahl", "Evans", "Fuchs", "Gupta", "Horn", "Ito", "Jensen")
_CITIES = ("Lisbon", "Oslo", "Kyoto", "Accra", "Lima", "Turin", "Boston", "Delhi", "Vienna", "Cork")


class Seller(NamedTuple):
    """A row of the table of sellers."""

    id: str
    name: str
    city: str


class Arrival(NamedTuple):
    """A line that arrives at a stream, so many seconds after the first look."""

    at: float
    stream: str
    line: str


def sellers(count: int = 60) -> list[Seller]:
    """The sellers of the site, the busiest one first.

    >>> sellers()[0]
    Seller(id='s01', name='Ada Abreu', city='Lisbon')
    """
    return [
        Seller(
            f"s{i + 1:02}",
            f"{_FIRST[i % len(_FIRST)]} {_LAST[i % len(_LAST)]}",
            _CITIES[i * 3 % len(_CITIES)],
        )
        for i in range(count)
    ]


def auction(start: datetime, seed: int = 2006) -> Iterator[Arrival]:
    """What arrives from the site, without end. ``start`` is the moment of the first look."""
    return _Site(start, random.Random(seed)).arrivals()


@dataclass
class _Item:
    id: int
    price: float
    step: float
    bidder: str = ""


@dataclass
class _Site:
    """The site as a heap of things to come, each a function of its time."""

    start: datetime
    chance: random.Random
    _agenda: list[tuple[float, int, Callable[[float], Arrival | None]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _items: Iterator[int] = field(default_factory=lambda: itertools.count(1001))
    _sellers: list[Seller] = field(default_factory=sellers)

    def arrivals(self) -> Iterator[Arrival]:
        self._plan(-_HISTORY, self._open_next)
        self._plan(-_HISTORY, self._open_show_piece)
        while True:
            at, _, happen = heapq.heappop(self._agenda)
            arrival = happen(at)
            if arrival is not None and at >= 0:
                yield arrival

    def _plan(self, at: float, happen: Callable[[float], Arrival | None]) -> None:
        # The number keeps things of one moment in the order in which they were planned.
        heapq.heappush(self._agenda, (at, next(self._numbers), happen))

    # ------------------------------------------------------------ what happens

    def _open_next(self, at: float) -> None:
        bids = min(_MOST_BIDS, int(self.chance.paretovariate(0.8)))
        self._open(at, self.chance.lognormvariate(5.9, 1.4), bids)
        self._plan(at + self.chance.expovariate(_OPENED_PER_SECOND), self._open_next)

    def _open_show_piece(self, at: float) -> None:
        self._open(at, self.chance.uniform(2000, 9000), _MOST_BIDS)
        self._plan(at + self.chance.uniform(0.5, 1.5) * _SHOW_PIECES, self._open_show_piece)

    def _open(self, at: float, price: float, bids: int) -> None:
        price = round(max(price, 1.0), 2)
        seller = self._sellers[_skewed(self.chance, len(self._sellers))].id
        item = _Item(next(self._items), price, step=price * self.chance.uniform(0.01, 0.05))
        lasts = self.chance.uniform(SHORTEST, LONGEST)
        for _ in range(bids):
            rush = self.chance.random() < 0.5
            part = self.chance.uniform(1 - _RUSH, 1) if rush else self.chance.uniform(0, 1 - _RUSH)
            self._plan(at + lasts * part, lambda now: self._bid(now, item))
        self._plan(at + lasts, lambda now: Arrival(now, CLOSED, f"{item.id},{item.bidder},{item.price}"))
        line = json.dumps(
            {"itemID": item.id, "sellerID": seller, "start_price": price, "start_time": self._stamp(at)}
        )
        late = self.chance.uniform(0, LATEST) if self.chance.random() < _DELAYED else 0.0
        self._send(at + late, OPEN, line, _BAD_OPENINGS)

    def _bid(self, at: float, item: _Item) -> None:
        if item.bidder:
            # The first bid is the asking price.
            item.price = round(item.price + item.step * self.chance.uniform(0.2, 1.0), 2)
        item.bidder = f"b{1 + _skewed(self.chance, _BIDDERS):03}"
        line = f"{item.id},{item.price},{item.bidder},{self._stamp(at)}"
        self._send(at + self.chance.uniform(0, 0.3), BID, line, _BAD_BIDS)

    # ------------------------------------------------------------ what is sent of it

    def _send(self, at: float, stream: str, line: str, bad: float) -> None:
        text = _spoiled(line, self.chance) if self.chance.random() < bad else line
        self._plan(at, lambda now: Arrival(now, stream, text))

    def _stamp(self, at: float) -> str:
        return (self.start + timedelta(seconds=at)).isoformat(timespec="milliseconds")


def _skewed(chance: random.Random, count: int) -> int:
    """A number below ``count``, small ones far more often."""
    return int(count * chance.random() ** 2.5)


def _spoiled(line: str, chance: random.Random) -> str:
    """A line as it comes from a sender with a mistake, or over a bad connection."""
    ways = [line[: len(line) // 3], line.replace("1", "l").replace("0", "O"), "HTTP/1.1 502 Bad Gateway"]
    if line.startswith("{"):
        ways.append(re.sub(r'"start_time": "[^"]*"', '"start_time": null', line))
    return chance.choice(ways)
