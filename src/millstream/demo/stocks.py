"""A simulated stock exchange: prices walk at random in short trends, and dealers quote around them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from millstream.demo.arrivals import Agenda, Arrival

TRADE, QUOTE = "Trade", "Quote"
SYMBOLS = ("ALDER", "BIRCH", "CEDAR", "ELM", "OAK", "PINE")

LATE_TRADE = 2.5
"""Seconds that a late trade takes to arrive, at least; other lines take a third of a second at most."""

_TRADES_PER_SECOND = 12.0
"""Trades of one symbol."""
_QUOTES_PER_SECOND = 4.0
_BAD, _LATE = 0.003, 0.004
_STEP = 0.001
_TREND = (3, 9)
"""Fewest and most trades in one direction."""
_SPREAD = 0.004


def stocks(start: datetime, seed: int = 2011) -> Iterator[Arrival]:
    """Yield the lines that arrive from the exchange, without end, beginning at ``start``."""
    agenda = Agenda(start, random.Random(seed))
    for symbol in SYMBOLS:
        stock = _Stock(agenda, symbol, agenda.chance.uniform(20, 200))
        agenda.plan(0.0, stock.quote)
        agenda.plan(agenda.chance.random(), stock.trade)
    return agenda.arrivals()


@dataclass
class _Stock:
    agenda: Agenda
    symbol: str
    price: float
    direction: int = 1
    left: int = 0
    """Trades until the direction changes."""

    def trade(self, at: float) -> None:
        chance = self.agenda.chance
        if self.left == 0:
            self.direction, self.left = -self.direction, chance.randint(*_TREND)
        self.left -= 1
        self.price *= 1 + self.direction * _STEP * chance.uniform(0.2, 1.0)
        line = f"{self.symbol},{self.price:.3f},{100 * chance.randint(1, 20)},{self.agenda.stamp(at)}"
        is_late = chance.random() < _LATE
        delay = chance.uniform(LATE_TRADE, 2 * LATE_TRADE) if is_late else chance.uniform(0, 0.3)
        self.agenda.send(at + delay, TRADE, line, _BAD)
        self.agenda.plan(at + chance.expovariate(_TRADES_PER_SECOND), self.trade)

    def quote(self, at: float) -> None:
        chance = self.agenda.chance
        half = self.price * _SPREAD * chance.uniform(0.5, 1.0)
        line = f"{self.symbol},{self.price - half:.3f},{self.price + half:.3f},{self.agenda.stamp(at)}"
        self.agenda.send(at + chance.uniform(0, 0.3), QUOTE, line)
        self.agenda.plan(at + chance.expovariate(_QUOTES_PER_SECOND), self.quote)
