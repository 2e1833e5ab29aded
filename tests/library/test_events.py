"""Sessions, alarms, gaps, classes and elements, as a plain computation has them."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.types import DOUBLE, STRING, TIMESTAMP, Kind, Type
from tests.library.running import active, base, often, uncompiled

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
INTERVAL = Type(Kind.DAY_TIME_INTERVAL)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def _as_python():
    with uncompiled():
        yield


def moments(gaps: list[int]) -> list[datetime]:
    return [NOON + sum(gaps[: i + 1]) * SECOND for i in range(len(gaps))]


# ---------------------------------------------------------------- sessions


@often
@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(1, 8))
def test_a_session_ends_with_a_longer_gap(gaps: list[int], gap: int) -> None:
    times = moments(gaps)
    expected, number = [], 1
    for i in range(len(times)):
        number += i > 0 and times[i] - times[i - 1] > gap * SECOND
        expected.append(number)
    found = base("session_number", [TIMESTAMP, INTERVAL], [(time, gap * SECOND) for time in times])
    assert found == [[(number,)] for number in expected]
    rows = [(f"tag{i}", time, gap * SECOND) for i, time in enumerate(times)]
    found = base("rfid_group", [STRING, TIMESTAMP, INTERVAL], rows)
    assert found == [[(tag, time, n)] for (tag, time, _), n in zip(rows, expected, strict=True)]


# ---------------------------------------------------------------- alarms


@often
@given(st.lists(st.tuples(st.sampled_from(["item", "ap", "cart"]), st.integers(0, 5)), max_size=20))
def test_an_item_with_nobody_near_is_stolen(readings: list) -> None:
    times = [sum(gap for _, gap in readings[: i + 1]) for i in range(len(readings))]
    rows = [(f"tag{i}", kind) for i, (kind, _) in enumerate(readings)]
    persons = [time for (kind, _), time in zip(readings, times, strict=True) if kind == "ap"]
    expected = [
        (time + 4, (tag,))
        for (tag, kind), time in zip(rows, times, strict=True)
        if kind == "item" and not any(abs(person - time) <= 4 for person in persons)
    ]
    assert active("theft_alarm", [STRING, STRING], rows, times, 4) == expected


@often
@given(st.lists(st.integers(0, 9), max_size=20))
def test_silence_is_told_when_it_has_lasted(gaps: list[int]) -> None:
    times = [sum(gaps[: i + 1]) for i in range(len(gaps))]
    rows = [(NOON + time * SECOND,) for time in times]
    expected = [
        (time + 5, (NOON + time * SECOND,))
        for i, time in enumerate(times)
        if i + 1 == len(times) or times[i + 1] - time > 5
    ]
    assert active("silence_alarm", [TIMESTAMP], rows, times, 5) == expected


# ---------------------------------------------------------------- gaps


def test_a_gap_is_filled_along_the_line() -> None:
    minutes = [(0, 10.0), (1, 11.0), (4, 14.0), (5, None), (6, 18.0)]
    rows = [(NOON + 60 * m * SECOND, value, 60 * SECOND) for m, value in minutes]
    found = [row for rows in base("gap_filled", [TIMESTAMP, DOUBLE, INTERVAL], rows) for row in rows]
    assert [((time - NOON) // (60 * SECOND), value, filled) for time, value, filled in found] == [
        (0, 10.0, False),
        (1, 11.0, False),
        (2, 12.0, True),
        (3, 13.0, True),
        (4, 14.0, False),
        (5, 16.0, True),
        (6, 18.0, False),
    ]


@often
@given(st.lists(st.tuples(st.integers(0, 400), st.floats(-10, 10)), min_size=1, max_size=8))
def test_no_two_values_are_further_apart_than_a_step(series: list) -> None:
    times = moments([gap for gap, _ in series])
    rows = [(time, value, 3 * SECOND) for time, (_, value) in zip(times, series, strict=True)]
    found = base("gap_filled", [TIMESTAMP, DOUBLE, INTERVAL], rows)
    assert [rows[-1] for rows in found] == [(time, value, False) for time, value, _ in rows]
    together = [row for rows in found for row in rows]
    assert all(b[0] - a[0] <= 3 * SECOND for a, b in itertools.pairwise(together))
    for before, after, rows in zip(series, series[1:], found[1:], strict=False):
        filled = [value for _, value, is_filled in rows if is_filled]
        assert len(filled) == max(0, math.ceil(after[0] / 3) - 1)
        slope = (after[1] - before[1]) / (after[0] or 1)
        assert filled == [pytest.approx(before[1] + slope * 3 * (i + 1)) for i in range(len(filled))]


# ---------------------------------------------------------------- classes


labels = st.one_of(st.none(), st.sampled_from(["spam", "mail"]))
features = st.one_of(st.none(), st.sampled_from(["x", "y"]))


def guess(learnt: list, asked: tuple) -> str | None:
    scores = {}
    for label in dict.fromkeys(row[0] for row in learnt if row[0] is not None):
        own = [row for row in learnt if row[0] == label]
        score = math.log(len(own))
        for i in (1, 2, 3):
            if asked[i] is not None:
                score += math.log((sum(row[i] == asked[i] for row in own) + 1) / (len(own) + 2))
        scores[label] = score
    if not scores:
        return None
    best = max(scores.values())
    likely = [label for label, score in scores.items() if score == pytest.approx(best)]
    return likely[0] if len(likely) < 2 else "any"


@often
@given(st.lists(st.tuples(labels, features, features, features), max_size=25))
def test_a_classifier_learns_from_what_came_before(mails: list) -> None:
    found = base("naive_bayes", [STRING] * 4, mails)
    for i, rows in enumerate(found):
        expected = guess(mails[:i], mails[i])
        assert len(rows) == 1
        assert expected == "any" or rows == [(expected,)]


@often
@given(st.lists(st.tuples(labels, st.floats(-9, 9), st.floats(-9, 9)), max_size=20))
def test_the_nearest_centroid_is_the_nearest(points: list) -> None:
    found = base("nearest_centroid", [STRING, DOUBLE, DOUBLE], points)
    for i, [(guess, distance)] in enumerate(found):
        distances = {}
        for label in {row[0] for row in points[:i]} - {None}:
            own = [(x, y) for name, x, y in points[:i] if name == label]
            centre = (sum(x for x, _ in own) / len(own), sum(y for _, y in own) / len(own))
            distances[label] = math.dist(centre, points[i][1:])
        if distances:
            assert distance == pytest.approx(min(distances.values()), abs=1e-9)
            assert distances[guess] == pytest.approx(distance, abs=1e-9)
        else:
            assert (guess, distance) == (None, None)


# ---------------------------------------------------------------- elements

DOCUMENT = (
    '<?xml version="1.0"?><auctions><!-- two --><item id="1"><name>Lamp</name><sold/></item>'
    "<item><name>Old chair</name></item></auctions>"
)
ELEMENTS = [
    (1, "open", "auctions", ""),
    (2, "open", "item", ""),
    (3, "open", "name", ""),
    (3, "close", "name", "Lamp"),
    (3, "empty", "sold", ""),
    (2, "close", "item", ""),
    (2, "open", "item", ""),
    (3, "open", "name", ""),
    (3, "close", "name", "Old chair"),
    (2, "close", "item", ""),
    (1, "close", "auctions", ""),
]


@often
@given(st.lists(st.integers(0, len(DOCUMENT)), max_size=8))
def test_elements_are_found_wherever_a_document_is_cut(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(DOCUMENT)]
    chunks = [DOCUMENT[a:b] for a, b in itertools.pairwise(bounds)]
    found = base("xml_elements", [STRING], [(chunk,) for chunk in chunks])
    assert [row for rows in found for row in rows] == ELEMENTS
