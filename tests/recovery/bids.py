"""A stream of bids in many small files, scripts that read it, and what they should answer."""

from __future__ import annotations

import csv
import os
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from oracle import Arrivals, Row, answers

EPOCH = datetime(2026, 1, 1, 10, tzinfo=UTC)
SLACK_SECONDS = 2
QUERIES = """
SELECT item, price, t,
    sum(price) OVER (PARTITION BY item ORDER BY t RANGE INTERVAL 5 SECONDS PRECEDING) AS recent,
    max(bidder) OVER (PARTITION BY item ORDER BY t RANGE INTERVAL 5 SECONDS PRECEDING) AS last_bidder
FROM Bid;

SELECT bidder, t, avg(price) OVER (PARTITION BY bidder ROWS 9 PRECEDING) AS level,
    count(*) OVER (PARTITION BY bidder ROWS UNBOUNDED PRECEDING) AS bids
FROM Bid;

SELECT item, window_end, count(*) AS bids, sum(price) AS total, min(price) AS lowest
FROM Bid [RANGE 5 SECONDS SLIDE 1 SECOND] GROUP BY item;
"""
RISES = """
SELECT X.item, X.price, LAST(Y).t AS until, count(*Y) AS steps
FROM Bid PARTITION BY item AS (X, *Y) WHERE Y.price > Y.previous.price;
"""
PATTERNS = """
SELECT X.item, X.price, LAST(Y).t AS until, count(*Y) AS steps
FROM Bid PARTITION BY item AS (X, *Y) WHERE Y.price > Y.previous.price;

SELECT X.item, Z.t, Z.bidder FROM Bid PARTITION BY item AS (X, *Y, Z)
WHERE Y.price > Y.previous.price AND Z.price < Z.previous.price AND Z.bidder <> X.bidder;

SELECT A.item, FIRST(A).t AS since, sum(*A.price) AS total, B.bidder
FROM Bid PARTITION BY item AS (*A, B) WHERE A.price >= 20 AND B.price < 20;

SELECT X.item, X.t, Y.t AS again FROM Bid PARTITION BY item AS (X, Y) WHERE X.price > 50 AND Y.price < 10;
"""
"""Patterns over the same tuples, so that they are one stage."""

RIVALS = """
SELECT CHANGES a.item, a.price, b.price AS more
FROM Bid [ROWS 5] AS a LEFT JOIN Bid [RANGE 3 SECONDS] AS b ON a.item = b.item AND a.price < b.price;
"""
SINKS = """
CREATE SINK windows USING parquet OPTIONS (path 'windows');
CREATE SINK late USING json OPTIONS (path 'late');

INSERT INTO windows
SELECT item, window_end, count(*) AS bids, sum(price) AS total
FROM Bid [RANGE 5 SECONDS SLIDE 1 SECOND] GROUP BY item;

INSERT INTO late SELECT item, bidder, t FROM BidLate;
"""


@dataclass(frozen=True)
class Bid:
    item: int
    price: float
    bidder: str
    t: datetime


Answers = dict[str, list[tuple[str, ...]]]
"""The rows of each result as texts."""


def bids(seed: int, count: int, *, per_second: int = 8) -> list[Bid]:
    """In disorder within the slack, with many equal times, and here and there one that is too late."""
    chance = random.Random(seed)
    found = []
    for i in range(count):
        # Two seconds late at most is in time; eight are not.
        behind = chance.choice([0, 0, 0, 0.5, 1.0, 1.75]) if chance.random() > 0.03 else 8
        at = EPOCH + timedelta(seconds=int(i / per_second * 4) / 4 - behind)
        # Quarters: a sum of them is exact in any order.
        price = chance.randrange(4, 400) / 4
        found.append(Bid(chance.randrange(7), price, f"b{chance.randrange(20)}", at))
    return found


def write(directory: Path, rows: Sequence[Bid], files: int) -> None:
    """One after the other, and each a second younger than the one before it."""
    directory.mkdir(parents=True, exist_ok=True)
    each = -(-len(rows) // files)
    for number in range(files):
        write_file(directory, number, rows[number * each : (number + 1) * each])


def write_file(directory: Path, number: int, rows: Iterable[Bid]) -> None:
    path = directory / f"{number:06}.csv"
    unfinished = directory / f".{path.name}"
    with unfinished.open("w", newline="") as file:
        csv.writer(file).writerows((b.item, b.price, b.bidder, text(b.t)) for b in rows)
    os.utime(unfinished, (EPOCH.timestamp() + number,) * 2)
    unfinished.rename(path)


def declared(path: str) -> str:
    """The stream, with one file for each micro-batch."""
    return f"""
CREATE STREAM Bid (item INT, price DOUBLE, bidder STRING, t TIMESTAMP) ORDER BY t
    USING csv OPTIONS (path '{path}', maxFilesPerTrigger '1')
    SLACK INTERVAL {SLACK_SECONDS} SECONDS LATE INTO BidLate;
"""


def expected(script: str, rows: Sequence[Bid]) -> Answers:
    """Return the results by the definitions of the semantics."""
    arrived = Arrivals([[Row(vars(bid)) for bid in rows]])
    found = answers(script, {"Bid": arrived})
    return {name: [tuple(map(text, values)) for values in answer.values] for name, answer in found.items()}


def text(value: object) -> str:
    """A value as results show it."""
    if isinstance(value, datetime):
        whole = value.strftime("%Y-%m-%d %H:%M:%S")
        return f"{whole}.{value.microsecond:06}".rstrip("0") if value.microsecond else whole
    return "" if value is None else str(value)


def from_csv(content: str) -> list[tuple[str, ...]]:
    """The rows of a result in CSV, without the header."""
    return [tuple(row) for row in csv.reader(content.splitlines())][1:]


def from_sections(content: str) -> Answers:
    """The rows of several results in CSV, each below a line with its name."""
    sections = re.split(r"^-- (\w+)\n", content, flags=re.MULTILINE)[1:]
    return {name: from_csv(text) for name, text in zip(sections[::2], sections[1::2], strict=True)}


def from_directory(directory: Path) -> Answers:
    """Read the files of `--out`."""
    return {path.stem: from_csv(path.read_text()) for path in directory.glob("*.csv")}
