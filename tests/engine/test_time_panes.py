"""User-defined aggregates over windows in time, restarted for each window or computed in panes.

The expected rows come from a loop over windows and tuples in plain Python: ALGEBRAIC promises that panes make
no difference.
"""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from millstream.plan.explain.plan_report import explained
from oracle import Arrivals, Row, run
from tests.engine import simulated
from tests.physical.planning import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

AGGREGATES = """
CREATE AGGREGATE most(x INT) : INT ALGEBRAIC {
    TABLE st(m INT);
    INITIALIZE : { INSERT INTO st VALUES (x); }
    ITERATE    : { UPDATE st SET m = greatest(m, x); }
    TERMINATE  : { INSERT INTO RETURN SELECT m FROM st; }
};
CREATE AGGREGATE words(x STRING) : STRING ALGEBRAIC {
    TABLE st(w STRING);
    INITIALIZE : { INSERT INTO st VALUES (x); }
    ITERATE    : { UPDATE st SET w = concat(w, x); }
    TERMINATE  : { INSERT INTO RETURN SELECT w FROM st; }
};
CREATE AGGREGATE part(x INT) : (s BIGINT, n BIGINT) {
    TABLE st(s BIGINT, n BIGINT);
    INITIALIZE : { INSERT INTO st VALUES (x, 1); }
    ITERATE    : { UPDATE st SET s = s + x, n = n + 1; }
    TERMINATE  : { INSERT INTO RETURN SELECT s, n FROM st; }
};
CREATE AGGREGATE whole(a BIGINT, b BIGINT) : DOUBLE {
    TABLE st(s BIGINT, n BIGINT);
    INITIALIZE : { INSERT INTO st VALUES (a, b); }
    ITERATE    : { UPDATE st SET s = s + a, n = n + b; }
    TERMINATE  : { INSERT INTO RETURN SELECT s / n FROM st; }
};
CREATE AGGREGATE mean(x INT) : DOUBLE ALGEBRAIC USING (part, whole) {
    TABLE st(s BIGINT, n BIGINT);
    INITIALIZE : { INSERT INTO st VALUES (x, 1); }
    ITERATE    : { UPDATE st SET s = s + x, n = n + 1; }
    TERMINATE  : { INSERT INTO RETURN SELECT s / n FROM st; }
};
CREATE AGGREGATE step(x INT) : INT {
    TABLE st(before INT);
    INITIALIZE : { INSERT INTO st VALUES (x); INSERT INTO RETURN VALUES (0); }
    ITERATE    : { INSERT INTO RETURN SELECT x - before FROM st; UPDATE st SET before = x; }
};
CREATE WINDOW AGGREGATE height(x INT) : INT ALGEBRAIC {
    TABLE inwindow(held INT);
    INITIALIZE : { INSERT INTO RETURN VALUES (x); }
    ITERATE    : { INSERT INTO RETURN SELECT max(held) FROM inwindow; }
    EXPIRE     : { }
};
"""
STREAM = "CREATE STREAM s (k INT, x INT, w STRING, t INT) ORDER BY t"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOWS = ((10, 10), (12, 4), (9, 6), (4, 10), (7, 3))
PANES = "panes of"


def drawn(chance: random.Random, slack: int) -> list[dict[str, Any]]:
    """Return tuples that are at most ``slack`` behind."""
    tuples, time = [], chance.randint(-20, 20)
    for _ in range(chance.randint(0, 25)):
        time += chance.choice((0, 1, 1, 2, 3, 17))
        x = chance.randint(-3, 9)
        t = max(time - chance.randint(0, slack), -30)
        tuples.append({"k": chance.choice((1, 2, None)), "x": x, "w": chr(97 + len(tuples)), "t": t})
    return tuples


def contents(
    tuples: list[dict[str, Any]], size: int, slide: int, origin: int = 0
) -> dict[tuple[int, Any], list[dict[str, Any]]]:
    """Return the tuples of each window and group, in the order of the stream."""
    found = defaultdict(list)
    for one in sorted(tuples, key=lambda one: one["t"]):
        end = origin + ((one["t"] - origin) // slide + 1) * slide
        while end - size <= one["t"]:
            found[end, one["k"]].append(one)
            end += slide
    return found


def by_end_and_key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[0], row[1] is not None, row[1] or 0


def answers(text: str, tuples: list[dict[str, Any]], chance: random.Random) -> list[tuple[Any, ...]]:
    rows = simulated.run(planned(text), {"s": Arrivals([[Row(one) for one in tuples]])}, chance)
    return [row[1:] for row in rows]


@pytest.mark.parametrize("seed", range(40))
def test_results_are_those_of_the_contents_of_windows(seed: int) -> None:
    chance = random.Random(seed)
    slack = chance.choice((0, 0, 3, 10))
    size, slide = WINDOWS[seed % len(WINDOWS)]
    origin = chance.choice((0, 0, 1, -8))
    tuples = drawn(chance, slack)
    query = f"""{STREAM}{f" SLACK {slack}" if slack else ""}; {AGGREGATES}
        SELECT window_end, k, most(x), words(w), mean(x), most(x) FILTER (WHERE x > 0), height(x),
               count(*), first(x), collect_list(x)
        FROM s [RANGE {size} SLIDE {slide} ORIGIN {origin}] GROUP BY k"""
    expected = []
    for (end, key), content in contents(tuples, size, slide, origin).items():
        xs = [one["x"] for one in content]
        positive = [x for x in xs if x > 0]
        if positive:
            joined = "".join(one["w"] for one in content)
            expected.append(
                (end, key, max(xs), joined, sum(xs) / len(xs), max(positive), max(xs), len(xs), xs[0], xs)
            )
    assert answers(query, tuples, chance) == sorted(expected, key=by_end_and_key)


@pytest.mark.parametrize("seed", range(10))
def test_a_restarted_aggregate_has_the_rows_of_the_last_tuple(seed: int) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance, 0)
    size, slide = chance.choice(((10, 10), (4, 10)))
    query = (
        f"{STREAM}; {AGGREGATES} SELECT window_end, k, step(x) FROM s [RANGE {size} SLIDE {slide}] GROUP BY k"
    )
    expected = []
    for (end, key), content in contents(tuples, size, slide).items():
        xs = [one["x"] for one in content]
        expected.append((end, key, xs[-1] - xs[-2] if len(xs) > 1 else 0))
    assert answers(query, tuples, chance) == sorted(expected, key=by_end_and_key)


@pytest.mark.parametrize("seed", range(10))
def test_partial_results_come_from_panes_too(seed: int) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance, 0)
    text = f"""{STREAM}; {AGGREGATES}
        SELECT window_end, complete, words(w), sum(x) FROM s [RANGE 12 SLIDE 6 EMIT EVERY 4]"""
    plan, given = planned(text), {"s": Arrivals([[Row(one) for one in tuples]])}
    assert PANES in explained(plan)
    assert simulated.run(plan, given, chance) == [(row.time, *row.values) for row in run(plan, given).rows]


@pytest.mark.parametrize(
    ("window", "clause", "call", "shown"),
    [
        ("[RANGE 12 SLIDE 4]", "", "most(x)", "panes of 4, combined 3 at a time, O(3)"),
        ("[RANGE 9 SLIDE 6]", "", "mean(x)", "panes of 3, combined 3 at a time, O(3)"),
        ("[RANGE 12 SLIDE 6 EMIT EVERY 4]", "", "most(x)", "panes of 2, combined 6 at a time, O(6)"),
        ("[RANGE 7 SLIDE 3]", "", "most(x)", "panes of 1 and 2, combined 5 at a time, O(5)"),
        ("[TUMBLE 10]", "SLACK 5", "step(x)", "base version, restarted for each window, O(1)"),
        ("[RANGE 4 SLIDE 10]", "", "most(x)", "base version, restarted for each window, O(1)"),
        ("[RANGE 12 SLIDE 4]", "", "step(x)", "recomputed from the content, O(w)"),
        ("[TUMBLE 10]", "", "most(DISTINCT x)", "recomputed from the content, O(w)"),
        ("[TUMBLE 10]", "SLACK 5 GENEROUS", "most(x)", "recomputed from the content, O(w)"),
        ("[TUMBLE 10]", "ORDERED PER (k)", "most(x)", "recomputed from the content, O(w)"),
        ("[TUMBLE 10 WATTR x]", "SLACK 3 ON x", "most(x)", "recomputed from the content, O(w)"),
        ("[ROWS 12 SLIDE 4]", "", "most(x)", "recomputed from the content, O(w)"),
    ],
)
def test_explain_names_the_strategy(window: str, clause: str, call: str, shown: str) -> None:
    text = f"{STREAM} {clause}; {AGGREGATES} SELECT k, {call} FROM s {window} GROUP BY k"
    assert f"__agg0: {shown}" in explained(planned(text))


OVER_STREAM = "CREATE STREAM s (k INT, x INT, w STRING, t TIMESTAMP) ORDER BY t"


@pytest.mark.parametrize("seed", range(30))
def test_over_combines_panes_with_the_tuples_at_the_edges(seed: int) -> None:
    chance = random.Random(seed)
    reach, slide = chance.choice(((9, 4), (12, 3), (3, 2), (20, 7)))
    frame = chance.choice((f"RANGE INTERVAL {reach} SECONDS", f"ROWS {reach}"))
    emit = chance.choice(("", " EMIT EVERY INTERVAL 2 SECONDS"))
    tuples = [{**one, "t": NOON + timedelta(seconds=one["t"])} for one in drawn(chance, 0)]
    window = f"(PARTITION BY k {frame} PRECEDING SLIDE INTERVAL {slide} SECONDS{emit})"
    calls = ", ".join(f"{call} OVER {window}" for call in ("most(x)", "words(w)", "mean(x)", "count(*)"))
    filtered = "words(w) FILTER (WHERE x > 0)"
    query = f"{OVER_STREAM}; {AGGREGATES} SELECT k, w, {calls}, {filtered} OVER {window} FROM s"
    plan = planned(query)
    assert f"panes of {slide} SECONDS" in explained(plan)
    found = answers(query, tuples, chance)
    plain = query.replace(f"{filtered} OVER {window}", "0")
    given = {"s": Arrivals([[Row(one) for one in tuples]])}
    expected = [row.values for row in run(planned(plain), given).rows]
    assert [row[:-1] for row in found] == [row[:-1] for row in expected if _passes(row, tuples, frame)]
    for row in found:
        content = _before(row, tuples, frame)
        assert row[-1] == "".join(one["w"] for one in content if one["x"] > 0)


def _before(row: tuple[Any, ...], tuples: list[dict[str, Any]], frame: str) -> list[dict[str, Any]]:
    """Return the window of the tuple that a row is about."""
    last = next(i for i, one in enumerate(tuples) if one["w"] == row[1])
    same = [one for one in tuples[: last + 1] if one["k"] == row[0]]
    amount = int("".join(filter(str.isdigit, frame)))
    if frame.startswith("ROWS"):
        return same[-amount - 1 :]
    return [one for one in same if one["t"] >= tuples[last]["t"] - timedelta(seconds=amount)]


def _passes(row: tuple[Any, ...], tuples: list[dict[str, Any]], frame: str) -> bool:
    """Tell whether the aggregate with FILTER returns a row."""
    return any(one["x"] > 0 for one in _before(row, tuples, frame))
