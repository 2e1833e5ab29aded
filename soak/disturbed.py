"""A script with state of every kind, the rows that it reads, and its answers computed in plain Python."""

from __future__ import annotations

import csv
import os
import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

EPOCH = datetime(2026, 1, 1, 10, tzinfo=UTC)
STEP = timedelta(milliseconds=310)
OFFSET = timedelta(milliseconds=7)
"""No timestamp is on a boundary of a window, and no two are apart by the length of one."""
ITEMS = 5
NEAR, RECENT = timedelta(seconds=2), timedelta(seconds=5)
RANGE, SLIDE = timedelta(seconds=20), timedelta(seconds=5)
BEFORE = 6
FLUSH_ITEM = -1

SCRIPT = """
CREATE STREAM Bid (n BIGINT, item INT, price INT, t TIMESTAMP) ORDER BY t
    USING csv OPTIONS (path 'bids', follow 'true');
CREATE STREAM Line (n BIGINT, current_time TIMESTAMP) ORDER BY current_time SOURCE 'port{port}';

CREATE WINDOW AGGREGATE wsum(x INT) : BIGINT {{
    TABLE inwindow(v INT);
    TABLE state(s BIGINT);
    INITIALIZE : {{ INSERT INTO state VALUES (x); INSERT INTO RETURN VALUES (x); }}
    ITERATE    : {{ UPDATE state SET s = s + x; INSERT INTO RETURN SELECT s FROM state; }}
    EXPIRE     : {{ UPDATE state SET s = s - oldest().v; }}
}};

CREATE VIEW totals AS SELECT item, count(*) AS c, sum(price) AS s FROM Bid [UNBOUNDED] GROUP BY item;

CREATE SINK recent USING parquet OPTIONS (path 'recent');
CREATE SINK sliding USING parquet OPTIONS (path 'sliding');
CREATE SINK rises USING csv OPTIONS (path 'rises');
CREATE SINK pairs USING parquet OPTIONS (path 'pairs');
CREATE SINK sums USING csv OPTIONS (path 'sums');
CREATE SINK lines USING json OPTIONS (path 'lines');

INSERT INTO recent
SELECT n, sum(price) OVER (PARTITION BY item ORDER BY t RANGE INTERVAL 5 SECONDS PRECEDING) AS s FROM Bid;
INSERT INTO sliding
SELECT item, window_end, count(*) AS c, sum(price) AS s
FROM Bid [RANGE 20 SECONDS SLIDE 5 SECONDS] GROUP BY item;
INSERT INTO rises
SELECT X.n AS x, Z.n AS z, count(*Y) AS steps FROM Bid PARTITION BY item AS (X, *Y, Z)
WHERE Y.price > Y.previous.price AND Z.price < Z.previous.price;
INSERT INTO pairs
SELECT a.n AS x, b.n AS y FROM Bid [RANGE 2 SECONDS] AS a JOIN Bid [RANGE 2 SECONDS] AS b
ON a.item = b.item AND a.price < b.price;
INSERT INTO sums SELECT n, wsum(price) OVER (PARTITION BY item ROWS 6 PRECEDING) AS s FROM Bid;
INSERT INTO lines SELECT n, count(*) OVER (ROWS UNBOUNDED PRECEDING) AS c FROM Line;

SELECT item, c, s FROM totals;
"""
SINKS = ("recent", "sliding", "rises", "pairs", "sums")
QUERIES = (*SINKS, "lines", "totals")

Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class Bid:
    n: int
    item: int
    price: int
    t: datetime


class Bids:
    """A stream that is written file by file, in the order of its timestamps."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._chance = random.Random(seed)
        self._files = 0
        self.rows: list[Bid] = []
        directory.mkdir(parents=True)

    def write(self, count: int) -> None:
        first = len(self.rows)
        rows = [
            Bid(n, self._chance.randrange(ITEMS), self._chance.randrange(100), EPOCH + OFFSET + n * STEP)
            for n in range(first, first + count)
        ]
        self.rows += rows
        self._file(rows)

    def flush(self) -> None:
        """Move time on by an hour, so that all results of the rows before are final."""
        later = self.rows[-1].t + timedelta(hours=1)
        self._file([Bid(-1 - i, FLUSH_ITEM, 0, later + i * STEP) for i in range(3)])

    def _file(self, rows: Sequence[Bid]) -> None:
        path = self._directory / f"{self._files:06}.csv"
        unfinished = path.with_name(f".{path.name}")
        with unfinished.open("w", newline="") as file:
            csv.writer(file).writerows((b.n, b.item, b.price, shown(b.t)) for b in rows)
        os.utime(unfinished, (EPOCH.timestamp() + self._files,) * 2)
        unfinished.rename(path)
        self._files += 1


def shown(value: object) -> str:
    """Return a value as a text, independent of the format of its file."""
    if isinstance(value, datetime):
        # A Parquet file of Spark has times of UTC without saying so.
        plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return plain.isoformat(sep=" ", timespec="milliseconds")
    return str(value)


# ------------------------------------------------------------ expected results


def answers(rows: Sequence[Bid]) -> dict[str, Rows]:
    """The rows of every sink, and of the view, by definition."""
    by_item: dict[int, list[Bid]] = defaultdict(list)
    for row in rows:
        by_item[row.item].append(row)
    groups = list(by_item.values())
    return {
        "recent": [pair for group in groups for pair in _recent(group)],
        "sliding": _sliding(rows),
        "rises": [match for group in groups for match in _rises(group)],
        "pairs": [pair for group in groups for pair in _pairs(group)],
        "sums": [pair for group in groups for pair in _sums(group)],
        "totals": [
            (str(item), str(len(group)), str(sum(b.price for b in group))) for item, group in by_item.items()
        ],
    }


def _recent(group: Sequence[Bid]) -> Iterator[tuple[str, ...]]:
    window: deque[Bid] = deque()
    for bid in group:
        window.append(bid)
        while bid.t - window[0].t > RECENT:
            window.popleft()
        yield str(bid.n), str(sum(b.price for b in window))


def _sums(group: Sequence[Bid]) -> Iterator[tuple[str, ...]]:
    for i, bid in enumerate(group):
        yield str(bid.n), str(sum(b.price for b in group[max(0, i - BEFORE) : i + 1]))


def _sliding(rows: Sequence[Bid]) -> Rows:
    counts: Counter[tuple[int, datetime]] = Counter()
    totals: Counter[tuple[int, datetime]] = Counter()
    for bid in rows:
        end = EPOCH + ((bid.t - EPOCH) // SLIDE + 1) * SLIDE
        while end - bid.t < RANGE:
            counts[bid.item, end] += 1
            totals[bid.item, end] += bid.price
            end += SLIDE
    return [
        (str(item), shown(end), str(count), str(totals[item, end])) for (item, end), count in counts.items()
    ]


def _pairs(group: Sequence[Bid]) -> Iterator[tuple[str, ...]]:
    for i, later in enumerate(group):
        for earlier in reversed(group[:i]):
            if later.t - earlier.t > NEAR:
                break
            if earlier.price != later.price:
                low, high = sorted((earlier, later), key=lambda bid: bid.price)
                yield str(low.n), str(high.n)


def _rises(group: Sequence[Bid]) -> Iterator[tuple[str, ...]]:
    """Runs of rising prices and the fall after them; a match ends before the next one begins."""
    falls = [after.price <= before.price for before, after in pairwise(group)]
    start = 0
    while start < len(group):
        last = start
        while last < len(falls) and not falls[last]:
            last += 1
        if last == len(falls):
            return  # more may come
        if last > start and group[last + 1].price < group[last].price:
            yield str(group[start].n), str(group[last + 1].n), str(last - start)
            start = last + 2
        else:
            start += 1
