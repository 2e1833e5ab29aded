"""Tuples for the patterns of the papers: drawn at random, or prices that there have been."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

PARTITIONS = 100
STOCKS = "big_tech_stock_prices.csv.gz"


def clicks(rows: int) -> pa.Table:
    """Pages of four kinds, in sessions side by side."""
    random, number = np.random.default_rng(11), np.arange(rows)
    kinds = np.array(list("adpc"))[random.choice(4, rows, p=(0.3, 0.1, 0.1, 0.5))]
    columns = {"SessNo": number % PARTITIONS, "ClickTime": number, "PageNo": random.integers(0, 100, rows)}
    return pa.table({**columns, "PageType": kinds})


def speeds(rows: int) -> pa.Table:
    number = np.arange(rows)
    columns = {"stationId": number % PARTITIONS, "speed": _between(rows, 100, 15), "speedTime": number}
    return pa.table(columns)


def differences(rows: int) -> pa.Table:
    number = np.arange(rows)
    columns = {"stationId": number % PARTITIONS, "speed_diff": _between(rows, 60, 5), "speedTime": number}
    return pa.table(columns)


def events(rows: int) -> pa.Table:
    """One eruption for twenty earthquakes, of which few are strong."""
    random, number = np.random.default_rng(15), np.arange(rows)
    kinds = np.array(["Earthquake", "Volcano"])[(random.random(rows) < 0.05).astype(int)]
    magnitudes = np.minimum(4 + random.exponential(0.8, rows), 9.5)
    return pa.table({"time": number, "name": number, "type": kinds, "magnitude": magnitudes})


def prices(rows: int, trend: float = 2.0) -> pa.Table:
    """Random walks in cents, with steps of about a hundredth; on average they turn after `trend` steps.

    Two are those of a walk that remembers nothing.
    """
    random, number = np.random.default_rng(17), np.arange(rows)
    days = -(-rows // PARTITIONS)
    turns = random.random((days, PARTITIONS)) < 1 / trend
    up = np.logical_xor.accumulate(turns, axis=0)
    steps = np.abs(random.normal(0, 0.01, (days, PARTITIONS))) * np.where(up, 1, -1)
    # Drawn back a little to where it began: prices of ten thousand years would be nothing or everything.
    level = np.zeros(PARTITIONS)
    walk = np.empty_like(steps)
    for day, step in enumerate(steps):
        level = level * 0.9999 + step
        walk[day] = level
    price = np.round(1000 * np.exp(walk), 2).reshape(-1)[:rows]
    return pa.table({"name": number % PARTITIONS, "price": price, "date": number})


def letters(rows: int) -> pa.Table:
    """Draw the searched text nearly everywhere, with one letter of twenty changed."""
    random, number = np.random.default_rng(16), np.arange(rows)
    text = np.array(list("abcabcac"))[number % 8]
    others = random.random(rows) < 0.05
    text[others] = np.array(list("abc"))[random.integers(0, 3, int(others.sum()))]
    return pa.table({"letter": text, "place": number})


def stocks(directory: Path) -> pa.Table | None:
    """Daily closing prices of some shares, day by day; None if there are none in the directory."""
    path = directory / STOCKS
    if not path.exists():
        return None
    with gzip.open(path) as file:
        table = csv.read_csv(file)
    table = table.sort_by([("date", "ascending"), ("stock_symbol", "ascending")])
    names = table["stock_symbol"].combine_chunks().dictionary_encode().indices
    columns = {"name": np.asarray(names), "price": np.asarray(table["close"]), "date": np.arange(len(table))}
    return pa.table(columns)


def _between(rows: int, top: float, step: float) -> np.ndarray:
    """Walks between nothing and the top, where they are thrown back."""
    random = np.random.default_rng(13)
    steps = random.normal(0, step, (-(-rows // PARTITIONS), PARTITIONS))
    walk = np.cumsum(steps, axis=0) + top / 2
    folded = np.abs((walk + top) % (2 * top) - top)
    return folded.reshape(-1)[:rows]


STREAMS: dict[str, Callable[[int], pa.Table]] = {
    function.__name__: function for function in (clicks, speeds, differences, events, prices, letters)
}
