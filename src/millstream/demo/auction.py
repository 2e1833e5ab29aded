"""A simulated auction site: auctions are opened, and bidders bid, most of them shortly before the end."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from millstream.demo.arrivals import Agenda, Arrival, skewed

OPEN, BID = "OpenAuction", "Bid"

SLOWEST = 3.0
"""Seconds that the opening of an auction may take to arrive."""
SHORTEST, LONGEST = 6.0, 20.0
"""Seconds that an auction lasts."""
LATE_BID = 2.5
"""Seconds that a late bid takes to arrive, at least; other bids take a third of a second at most."""
CATEGORIES = ("art", "books", "coins", "toys")

_HISTORY = 2 * LONGEST
"""Seconds before the beginning from which auctions are under way."""
_OPENED_PER_SECOND = 8.0
_DELAYED = 0.3
_RUSH = 0.2
"""Last part of an auction, in which half of its bids are made."""
_BAD_OPENINGS, _BAD_BIDS, _LATE_BIDS = 0.02, 0.005, 0.005
_SHOW_PIECES = 9.0
"""Seconds between the items that most people bid for."""
_MOST_BIDS = 400
_BIDDERS = 500
_SELLERS = 60


def auction(start: datetime, seed: int = 2006) -> Iterator[Arrival]:
    """Yield the lines that arrive from the site, without end, beginning at ``start``."""
    site = _Site(Agenda(start, random.Random(seed)))
    return site.arrivals()


@dataclass
class _Item:
    id: int
    price: float
    step: float
    has_bids: bool = False


@dataclass
class _Site:
    agenda: Agenda
    _items: Iterator[int] = field(default_factory=lambda: itertools.count(1001))

    def arrivals(self) -> Iterator[Arrival]:
        self.chance = self.agenda.chance
        self.agenda.plan(-_HISTORY, self._open_next)
        self.agenda.plan(-_HISTORY, self._open_show_piece)
        return self.agenda.arrivals()

    def _open_next(self, at: float) -> None:
        bids = min(_MOST_BIDS, int(self.chance.paretovariate(0.8)))
        self._open(at, self.chance.lognormvariate(5.9, 1.4), bids)
        self.agenda.plan(at + self.chance.expovariate(_OPENED_PER_SECOND), self._open_next)

    def _open_show_piece(self, at: float) -> None:
        self._open(at, self.chance.uniform(2000, 9000), _MOST_BIDS)
        self.agenda.plan(at + self.chance.uniform(0.5, 1.5) * _SHOW_PIECES, self._open_show_piece)

    def _open(self, at: float, price: float, bids: int) -> None:
        price = round(max(price, 1.0), 2)
        item = _Item(next(self._items), price, step=price * self.chance.uniform(0.01, 0.05))
        lasts = self.chance.uniform(SHORTEST, LONGEST)
        for _ in range(bids):
            in_rush = self.chance.random() < 0.5
            part = self.chance.uniform(1 - _RUSH, 1) if in_rush else self.chance.uniform(0, 1 - _RUSH)
            self.agenda.plan(at + lasts * part, lambda now: self._bid(now, item))
        line = json.dumps(
            {
                "itemID": item.id,
                "sellerID": f"s{1 + skewed(self.chance, _SELLERS):02}",
                "category": self.chance.choice(CATEGORIES),
                "start_price": price,
                "start_time": self.agenda.stamp(at),
            }
        )
        delay = self.chance.uniform(0, SLOWEST) if self.chance.random() < _DELAYED else 0.0
        self.agenda.send(at + delay, OPEN, line, _BAD_OPENINGS)

    def _bid(self, at: float, item: _Item) -> None:
        if item.has_bids:
            # The first bid is the asking price.
            item.price = round(item.price + item.step * self.chance.uniform(0.2, 1.0), 2)
        item.has_bids = True
        bidder = f"b{1 + skewed(self.chance, _BIDDERS):03}"
        line = f"{item.id},{item.price},{bidder},{self.agenda.stamp(at)}"
        is_late = self.chance.random() < _LATE_BIDS
        delay = self.chance.uniform(LATE_BID, 2 * LATE_BID) if is_late else self.chance.uniform(0, 0.3)
        self.agenda.send(at + delay, BID, line, _BAD_BIDS)
