"""Ranking functions and the first rows of each report: engine, oracle and a computation by hand agree."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.little import check, stream
from tests.engine.test_maintained_queries import planned

S = "CREATE STREAM s (k INT, v INT, w STRING, t BIGINT) ORDER BY t SLACK 4;"
TUMBLE = "[RANGE 10 SLIDE 10]"
WINDOWS = (
    TUMBLE,
    "[RANGE 10 SLIDE 4]",
    "[RANGE 10 SLIDE 5 EMIT EVERY 2]",
    "[ROWS 4 SLIDE 3]",
    "[SESSION GAP 3]",
    "[PARTITION BY k SESSION GAP 3]",
    "[PARTITION BY k ROWS 3 SLIDE 2]",
    "[START WHEN v = 1 END WHEN v = 0]",
    "[LANDMARK START AT 3 SLIDE 6]",
    "[UNBOUNDED]",
    "[NOW]",
)
ORDERS = ("n DESC", "n, k DESC NULLS FIRST", "m DESC NULLS FIRST, n", "2 DESC NULLS LAST", "count(*) + m")
LIMITS = ("LIMIT 2", "LIMIT 1 OFFSET 1", "", "OFFSET 1", "LIMIT 0")
CALLS = (
    "row_number() OVER (PARTITION BY window_end ORDER BY count(*) DESC)",
    "rank() OVER (ORDER BY count(*))",
    "dense_rank() OVER (PARTITION BY count(*) ORDER BY max(v) DESC NULLS FIRST)",
    "percent_rank() OVER (ORDER BY count(*))",
    "cume_dist() OVER (ORDER BY max(v))",
    "ntile(3) OVER (ORDER BY max(v) DESC)",
    "lag(k) OVER (ORDER BY count(*))",
    "lead(max(v), 2, -1) IGNORE NULLS OVER (ORDER BY k DESC)",
    "first_value(max(v)) IGNORE NULLS OVER (ORDER BY k)",
    "last_value(max(v)) OVER (PARTITION BY count(*) ORDER BY max(v))",
    "nth_value(k, 2) OVER (ORDER BY count(*) ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "last_value(k) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
)
CONTENT_CALLS = (
    "row_number() OVER (ORDER BY v DESC)",
    "rank() OVER (PARTITION BY k ORDER BY v NULLS LAST)",
    "lag(w) OVER (PARTITION BY k ORDER BY v DESC, w)",
    "last_value(w) OVER (PARTITION BY k ORDER BY v)",
)


def drawn(chance: random.Random, rows: int = 40) -> Arrivals:
    """Tuples of two source partitions, out of order within SLACK, with ties and NULLs."""
    partitions: list[list[Row]] = [[], []]
    time = 0
    for _ in range(rows):
        time += chance.choice((0, 0, 0, 1, 2, 5))
        row = {
            "k": chance.choice((None, 1, 2, 3, 4)),
            "v": chance.choice((None, *range(5))),
            "w": chance.choice((None, "", "a", "b")),
            "t": max(time - chance.randrange(4), 0),
        }
        partitions[chance.randrange(2)].append(Row(row))
    return Arrivals(partitions)


def reports(chance: random.Random) -> str:
    window = chance.choice(WINDOWS)
    call, order, limit = (chance.choice(of) for of in (CALLS, ORDERS, LIMITS))
    where = chance.choice(("", "WHERE v > 0", "HAVING count(*) > 1"))
    grouped = f"GROUP BY k {where}" if where.startswith("HAVING") else f"{where} GROUP BY k"
    ranked = chance.choice(("", f", {call} AS r"))
    qualify = chance.choice(("", "QUALIFY r IS NOT NULL AND r < 3")) if ranked else ""
    return (
        f"SELECT window_end, k, max(v) AS m, count(*) AS n{ranked} FROM s {window} {grouped} {qualify}"
        f" ORDER BY {order} {limit}"
    )


def contents(chance: random.Random) -> str:
    window = chance.choice(("[RANGE 10 SLIDE 5]", "[RANGE 4 SLIDE 4]", "[ROWS 3]", "[NOW]", "[RANGE 3]"))
    call, limit = chance.choice(CONTENT_CALLS), chance.choice(LIMITS)
    order = chance.choice(("", f"ORDER BY v DESC NULLS LAST, w {limit}", f"ORDER BY w, k DESC {limit}"))
    if chance.random() < 0.2:
        return f"SELECT DISTINCT k, v FROM s {window} ORDER BY v, k {limit}"
    return f"SELECT k, v, w, {call} AS r FROM s {window} {order}"


def instants(chance: random.Random) -> str:
    call = (
        chance.choice(CONTENT_CALLS)
        .replace("OVER (", "OVER (PARTITION BY t, k ")
        .replace("PARTITION BY t, k PARTITION BY k", "PARTITION BY t, k")
    )
    if chance.random() < 0.4:
        return f"SELECT k, v, {call} AS r, t FROM s ORDER BY t, v DESC, w"
    inner = "SELECT k, window_end, count(*) AS n FROM s [RANGE 10 SLIDE 5] GROUP BY k"
    return (
        "SELECT * FROM (SELECT k, n, window_end, row_number() OVER (PARTITION BY window_end ORDER BY n DESC)"
        f" AS r FROM ({inner})) WHERE r <= {chance.randrange(1, 4)}"
    )


@pytest.mark.parametrize("kind", [reports, contents, instants])
@pytest.mark.parametrize("seed", range(25))
def test_engine_and_oracle_agree(kind: Any, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2):
        script = f"{S} {kind(chance)};"
        plan = planned(script)
        assert why_not(plan) is None, why_not(plan)
        inputs = {"s": drawn(chance)}
        ended = chance.random() < 0.8
        expected = interpreted(plan, inputs, ended=ended).values
        found = simulated.run(optimize(plan), inputs, chance, ended=ended)
        assert [row[1:] for row in found] == expected, script


@pytest.mark.parametrize("seed", range(8))
def test_the_most_frequent_of_each_window_come_in_order(seed: int) -> None:
    chance = random.Random(seed)
    inputs = {"s": Arrivals([sorted(drawn(chance).partitions[0], key=lambda row: row.values["t"])])}
    plan = planned(f"{S} SELECT k, count(*) AS n FROM s {TUMBLE} GROUP BY k ORDER BY n DESC LIMIT 2;")
    windows: dict[int, Counter[Any]] = {}
    for row in inputs["s"].partitions[0]:
        windows.setdefault(row.values["t"] // 10, Counter())[row.values["k"]] += 1
    best = [
        pair
        for _, counts in sorted(windows.items())
        for pair in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0] is not None, pair[0] or 0))[:2]
    ]
    found = simulated.run(optimize(plan), inputs, chance)
    assert [row[1:] for row in found] == best


def test_partial_reports_have_first_rows_of_their_own() -> None:
    window = "[TUMBLE 10 EMIT EVERY 5]"
    query = f"{S} SELECT k, count(*) AS n, complete FROM s {window} GROUP BY k ORDER BY n DESC LIMIT 1;"
    rows = [(1, 0, "", 1), (2, 0, "", 2), (2, 0, "", 3), (1, 0, "", 6), (1, 0, "", 7), (3, 0, "", 12)]
    expected = [(2, 2, False), (1, 3, True), (3, 1, True)]
    check(query, {"s": stream("k v w t", rows)}, expected)


def test_the_first_tuple_of_each_instant_is_kept() -> None:
    query = f"{S} SELECT k, v, t FROM s QUALIFY row_number() OVER (PARTITION BY t ORDER BY v DESC) = 1;"
    rows = [(1, 5, "", 1), (2, 7, "", 1), (3, None, "", 2), (4, 0, "", 2)]
    check(query, {"s": stream("k v w t", rows)}, [(2, 7, 1), (4, 0, 2)])


def test_nothing_is_ranked_where_nothing_comes() -> None:
    check(f"{S} SELECT k, v FROM s {TUMBLE} ORDER BY v LIMIT 2;", {"s": stream("k v w t", [])}, [])
