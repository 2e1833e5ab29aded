"""Lines of the demos: equal for equal seeds, out of order within bounds, with some late and some bad ones."""

from __future__ import annotations

import csv
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from millstream.demo.arrivals import Arrival
from millstream.demo.auction import BID, CATEGORIES, OPEN, SLOWEST, auction
from millstream.demo.bundle import DEMOS
from millstream.demo.stocks import SYMBOLS, TRADE, stocks
from millstream.demo.traffic import PLACES, sections, traffic

START = datetime(2006, 11, 5, 10, tzinfo=UTC)
SECONDS = 120
Generator = Callable[..., Iterator[Arrival]]

every_demo = pytest.mark.parametrize("generate", [demo.arrivals for demo in DEMOS.values()], ids=list(DEMOS))


def lines(generate: Generator) -> list[Arrival]:
    return list(itertools.takewhile(lambda arrival: arrival.at < SECONDS, generate(START)))


def read(generate: Generator, stream: str, columns: dict[str, type]) -> tuple[list[tuple[float, dict]], int]:
    """Return the tuples of a stream with their times of arrival, and the number of bad lines."""
    rows, bad = [], 0
    for arrival in lines(generate):
        if arrival.stream == stream:
            try:
                values = (
                    json.loads(arrival.line).values() if stream == OPEN else next(csv.reader([arrival.line]))
                )
                row = {name: kind(value) for (name, kind), value in zip(columns.items(), values, strict=True)}
                rows.append((arrival.at, row | {"at": seconds(row["at"])}))
            except (ValueError, TypeError):
                bad += 1
    return rows, bad


def read_bids() -> tuple[list[tuple[float, dict]], int]:
    return read(auction, BID, {"item": int, "price": float, "bidder": str, "at": str})


def read_openings() -> tuple[list[tuple[float, dict]], int]:
    return read(auction, OPEN, {"item": int, "seller": str, "category": str, "price": float, "at": str})


def seconds(time: str) -> float:
    return (datetime.fromisoformat(time).replace(tzinfo=UTC) - START).total_seconds()


@every_demo
def test_equal_seeds_give_equal_lines(generate: Generator) -> None:
    def some(seed: int) -> list[Arrival]:
        return list(itertools.islice(generate(START, seed), 500))

    assert some(1) == some(1)
    assert some(1) != some(2)


@every_demo
def test_lines_arrive_in_order_and_from_the_beginning(generate: Generator) -> None:
    arrivals = lines(generate)
    times = [arrival.at for arrival in arrivals]
    assert times == sorted(times)
    assert times[0] >= 0
    assert {arrival.stream for arrival in arrivals if arrival.at < 2} == {one.stream for one in arrivals}
    assert 40 < len(arrivals) / SECONDS < 500


@pytest.mark.parametrize(
    ("generate", "stream", "columns"),
    [
        (auction, BID, {"item": int, "price": float, "bidder": str, "at": str}),
        (stocks, TRADE, {"symbol": str, "price": float, "shares": int, "at": str}),
        (traffic, "Traffic", {"section": int, "car": int, "speed": float, "at": str}),
    ],
)
def test_few_lines_are_bad_and_few_tuples_late(
    generate: Generator, stream: str, columns: dict[str, type]
) -> None:
    rows, bad = read(generate, stream, columns)
    assert 0.001 <= bad / len(rows) <= 0.02
    newest = itertools.accumulate((row["at"] for _, row in rows), max)
    # SLACK in the scripts is a second.
    late = sum(row["at"] < most - 1 for (_, row), most in zip(rows, newest, strict=True))
    assert 0.001 <= late / len(rows) <= 0.02


def test_openings_are_out_of_order_within_bounds() -> None:
    openings, _ = read_openings()
    delays = [at - row["at"] for at, row in openings]
    # Times are written in milliseconds.
    assert all(-0.001 <= delay <= SLOWEST + 0.001 for delay in delays)
    times = [row["at"] for _, row in openings]
    assert any(later < earlier for earlier, later in itertools.pairwise(times))
    assert {row["category"] for _, row in openings} == set(CATEGORIES)


def test_items_are_opened_before_they_are_bid_for() -> None:
    opened = {row["item"]: row for _, row in read_openings()[0]}
    bids = [row for _, row in read_bids()[0] if row["item"] in opened]
    assert len(bids) > 1000
    for bid in bids:
        assert bid["at"] >= opened[bid["item"]]["at"] - 0.001
        assert bid["price"] >= opened[bid["item"]]["price"]


def test_a_few_bid_more_than_others() -> None:
    counts = Counter(row["bidder"] for _, row in read_bids()[0])
    assert sum(count for _, count in counts.most_common(len(counts) // 5)) > counts.total() * 0.4


def test_stocks_have_trends() -> None:
    trades, _ = read(stocks, TRADE, {"symbol": str, "price": float, "shares": int, "at": str})
    assert {row["symbol"] for _, row in trades} == set(SYMBOLS)
    prices = [
        row["price"] for _, row in sorted(trades, key=lambda one: one[1]["at"]) if row["symbol"] == "ELM"
    ]
    falls = [later < earlier for earlier, later in itertools.pairwise(prices)]
    assert max(len(list(run)) for is_fall, run in itertools.groupby(falls) if is_fall) >= 3


def test_one_sensor_falls_silent_and_others_see_jams() -> None:
    rows, _ = read(traffic, "Traffic", {"section": int, "car": int, "speed": float, "at": str})
    assert {row["section"] for _, row in rows} == set(range(1, len(PLACES) + 1))
    assert [row[1] for row in sections()[1:]] == list(PLACES)
    times = sorted(row["at"] for _, row in rows if row["section"] == len(PLACES))
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) > 3
    assert min(row["speed"] for _, row in rows) < 30 < max(row["speed"] for _, row in rows)
