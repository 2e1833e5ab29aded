from __future__ import annotations

import csv
import itertools
import json
from collections import Counter
from datetime import UTC, datetime

import pytest

from millstream.demo.auction import BID, CLOSED, LATEST, OPEN, Arrival, auction, sellers

START = datetime(2006, 11, 5, 10, tzinfo=UTC)
SECONDS = 120


@pytest.fixture(scope="module")
def arrivals() -> list[Arrival]:
    return list(itertools.takewhile(lambda arrival: arrival.at < SECONDS, auction(START)))


def read(arrivals: list[Arrival], stream: str) -> tuple[list[tuple[float, dict]], int]:
    """What can be read of a stream, with the times of arrival, and how much cannot be."""
    rows, bad = [], 0
    for arrival in arrivals:
        if arrival.stream == stream:
            try:
                rows.append((arrival.at, READERS[stream](arrival.line)))
            except (ValueError, TypeError):
                bad += 1
    return rows, bad


def read_open(line: str) -> dict:
    row = json.loads(line)
    assert list(row) == ["itemID", "sellerID", "start_price", "start_time"]
    assert isinstance(row["itemID"], int)
    assert isinstance(row["start_price"], float)
    return row | {"start_time": seconds(row["start_time"])}


def read_bid(line: str) -> dict:
    item, price, bidder, time = next(csv.reader([line]))
    return {"itemID": int(item), "price": float(price), "bidderID": bidder, "bid_time": seconds(time)}


def read_closed(line: str) -> dict:
    item, buyer, price = next(csv.reader([line]))
    return {"itemID": int(item), "buyerID": buyer, "final_price": float(price)}


READERS = {OPEN: read_open, BID: read_bid, CLOSED: read_closed}


def seconds(time: str) -> float:
    return (datetime.fromisoformat(time) - START).total_seconds()


def test_the_same_seed_gives_the_same_lines() -> None:
    def some(seed: int) -> list[Arrival]:
        return list(itertools.islice(auction(START, seed), 500))

    assert some(1) == some(1)
    assert some(1) != some(2)


def test_lines_arrive_in_order_and_from_the_beginning(arrivals: list[Arrival]) -> None:
    times = [arrival.at for arrival in arrivals]
    assert times == sorted(times)
    assert times[0] >= 0
    first_seconds = {arrival.stream for arrival in arrivals if arrival.at < 2}
    assert first_seconds == {OPEN, BID, CLOSED}


def test_hundreds_of_lines_a_second_at_most(arrivals: list[Arrival]) -> None:
    assert 50 < len(arrivals) / SECONDS < 500


def test_openings_are_out_of_order_within_bounds(arrivals: list[Arrival]) -> None:
    openings, _ = read(arrivals, OPEN)
    delays = [at - row["start_time"] for at, row in openings]
    # Times are written in milliseconds.
    assert all(-0.001 <= delay <= LATEST + 0.001 for delay in delays)
    times = [row["start_time"] for _, row in openings]
    assert any(later < earlier for earlier, later in itertools.pairwise(times))


def test_there_are_bursts(arrivals: list[Arrival]) -> None:
    counts = Counter(int(arrival.at) for arrival in arrivals)
    assert max(counts.values()) > 2 * len(arrivals) / SECONDS


def test_bidders_hurry_before_the_end(arrivals: list[Arrival]) -> None:
    ends = {row["itemID"]: at for at, row in read(arrivals, CLOSED)[0]}
    left = [
        ends[row["itemID"]] - row["bid_time"] for _, row in read(arrivals, BID)[0] if row["itemID"] in ends
    ]
    assert sum(seconds < 4 for seconds in left) > len(left) / 2


def test_some_lines_cannot_be_read(arrivals: list[Arrival]) -> None:
    for stream, least, most in ((OPEN, 0.02, 0.10), (BID, 0.001, 0.02), (CLOSED, 0, 0)):
        rows, bad = read(arrivals, stream)
        assert least <= bad / (bad + len(rows)) <= most


def test_an_auction_is_opened_then_bid_for_then_closed(arrivals: list[Arrival]) -> None:
    opened = {row["itemID"]: (at, row) for at, row in read(arrivals, OPEN)[0]}
    closed = {row["itemID"]: (at, row) for at, row in read(arrivals, CLOSED)[0]}
    assert len(closed) == sum(arrival.stream == CLOSED for arrival in arrivals)
    whole = opened.keys() & closed.keys()
    assert len(whole) > 500
    for item in whole:
        assert opened[item][0] < closed[item][0]
        assert opened[item][1]["start_price"] <= closed[item][1]["final_price"]
    for _, bid in read(arrivals, BID)[0]:
        if bid["itemID"] in whole:
            assert bid["bid_time"] >= opened[bid["itemID"]][1]["start_time"]
            assert bid["price"] <= closed[bid["itemID"]][1]["final_price"]


def test_a_few_sell_and_bid_more_than_others(arrivals: list[Arrival]) -> None:
    known = [seller.id for seller in sellers()]
    assert len(set(known)) == len(known)
    sold = Counter(row["sellerID"] for _, row in read(arrivals, OPEN)[0])
    assert sold.keys() <= set(known)
    for counts in (sold, Counter(row["bidderID"] for _, row in read(arrivals, BID)[0])):
        busiest = sum(count for _, count in counts.most_common(len(counts) // 5))
        assert busiest > counts.total() * 0.4
