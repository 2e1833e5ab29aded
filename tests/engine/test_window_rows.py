"""Rows of windows as reports, and bounds beside columns of tuples: engine, oracle and definitions agree."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.test_maintained_queries import planned
from tests.engine.test_ranking import WINDOWS, S, drawn
from tests.engine.test_window_bounds import check

WHERES = (
    "",
    "WHERE window_end > 15",
    "WHERE v > 1",
    "WHERE v > 0 AND wid % 2 = 0",
    "WHERE v < wid",
    "WHERE v < wid + 3 AND k IS NOT NULL AND window_end < 100",
)
ROWS = (
    "k, v, window_end",
    "v + wid AS x, w",
    "DISTINCT k, window_end",
    "DISTINCT k + wid AS x",
    "window_start",
)
AGGREGATES = (
    "count(*) AS n, sum(v) AS m",
    "max(wid - v) AS n, last(w) AS m",
    "count(*) FILTER (WHERE v < wid) AS n, window_end",
    "collect_list(v) AS n, min(window_start) AS m",
)
GROUPS = ("", "GROUP BY k", "GROUP BY window_end, k", "GROUP BY v + wid")


def rows(chance: random.Random) -> str:
    columns, where = chance.choice(ROWS), chance.choice(WHERES)
    order = "" if "DISTINCT" in columns else chance.choice(("", "", " ORDER BY v DESC, w, k LIMIT 2"))
    inner = f"SELECT {columns} FROM s {chance.choice(WINDOWS)} {where}{order}"
    if "window_end" in columns and not order and chance.random() < 0.3:
        return f"SELECT window_end, count(*) AS n FROM ({inner}) [TUMBLE 20]"
    return inner


def aggregates(chance: random.Random) -> str:
    calls, where, group = (chance.choice(of) for of in (AGGREGATES, WHERES, GROUPS))
    having = chance.choice(("", " HAVING count(*) > 1"))
    return f"SELECT {calls} FROM s {chance.choice(WINDOWS)} {where} {group}{having}"


@pytest.mark.parametrize("kind", [rows, aggregates])
@pytest.mark.parametrize("seed", range(20))
def test_engine_and_oracle_agree(kind: Callable[[random.Random], str], seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2):
        script = f"{S} {kind(chance)};"
        plan = planned(script)
        assert why_not(plan) is None, why_not(plan)
        inputs = {"s": drawn(chance)}
        ended = chance.random() < 0.8
        expected = [(row.time, *row.values) for row in interpreted(plan, inputs, ended=ended).rows]
        assert simulated.run(optimize(plan), inputs, chance, ended=ended) == expected, script


BY_HAND = {
    "SELECT k, v, window_start, window_end FROM a [TUMBLE 10] WHERE v > 4": [
        *[(10, "x", 10, 0, 10), (10, "y", 5, 0, 10), (20, "x", 20, 10, 20), (30, "x", 7, 20, 30)]
    ],
    # A tuple is in as many rows as there are windows that hold it.
    "SELECT v, window_end FROM a [RANGE 10 SLIDE 5] WHERE window_end > 10": [
        *[(15, 20, 15), (15, 2, 15), (20, 20, 20), (20, 2, 20), (30, 7, 30), (35, 7, 35)]
    ],
    "SELECT v, wid, window_end FROM a [SESSION GAP 5]": [
        *[(8, 10, 0, 8), (8, 5, 0, 8), (17, 20, 1, 17), (17, 2, 1, 17), (30, 7, 2, 30)]
    ],
    # The column of the stream goes before the bound, where rows are reported.
    "SELECT wid, window_start, v FROM w [TUMBLE 10] WHERE v > 2": [
        *[(10, 1, 0, 10), (10, 1, 0, 5), (20, 3, 10, 20), (30, 5, 20, 7)]
    ],
    "SELECT count(*) AS n, max(window_end - t) AS m FROM a [TUMBLE 10] WHERE t < window_end - 8": [
        *[(10, 1, 9), (20, 1, 9)]
    ],
    "SELECT window_end, sum(v) FROM a [TUMBLE 10] WHERE window_end > 10 HAVING sum(v) > 7": [(20, 20, 22)],
    "SELECT DISTINCT k, window_end FROM a [TUMBLE 20]": [(20, "x", 20), (20, "y", 20), (40, "x", 40)],
}


@pytest.mark.parametrize("query", BY_HAND)
def test_by_hand(query: str) -> None:
    check(query, BY_HAND[query])
