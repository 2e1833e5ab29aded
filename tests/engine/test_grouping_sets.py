"""GROUP BY ALL, GROUPING SETS, ROLLUP and CUBE: engine and oracle agree, also with rows by hand."""

from __future__ import annotations

import random

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.test_maintained_queries import planned
from tests.engine.test_ranking import WINDOWS, drawn
from tests.engine.test_window_bounds import check

STREAM = "CREATE STREAM s (k INT, v INT, w STRING, t BIGINT) ORDER BY t SLACK 4"
GROUPS = (
    "ROLLUP (k, w)",
    "CUBE (k, v > 1)",
    "GROUPING SETS ((k, w), (k), (w), ())",
    "GROUPING SETS ((k), ROLLUP (w, k))",
    "k, ROLLUP (w)",
    "window_end, CUBE (k, w)",
    "k, w WITH ROLLUP",
    "GROUPING SETS ((k), (k), ())",
    "ROLLUP (k, v + wid)",
)
CALLS = (
    "count(*) AS n, sum(v) AS m, grouping(k) AS g",
    "max(w) FILTER (WHERE v > 0) AS n, grouping_id() AS g",
    "count(DISTINCT v) AS n, k + 1 AS h, 2 * grouping_id(k) AS g",
)


def drawn_query(chance: random.Random) -> str:
    group, calls = chance.choice(GROUPS), chance.choice(CALLS)
    shown = "k, w, " if "v" not in group and "w" in group else ""
    where = chance.choice(("", "WHERE v > 0", "WHERE v < wid + 2"))
    tail = chance.choice(("", " HAVING count(*) > 1", " ORDER BY g DESC, n DESC, 1 LIMIT 3"))
    maintained = chance.random() < 0.2
    word = "CHANGES " if maintained else ""
    window = "[RANGE 10]" if maintained else chance.choice(WINDOWS)
    if maintained:
        group, where, tail = group.replace("window_end, ", "").replace(" + wid", ""), "WHERE v > 0", ""
    return f"SELECT {word}{shown}{calls} FROM s {window} {where} GROUP BY {group}{tail}"


@pytest.mark.parametrize("seed", range(30))
def test_engine_and_oracle_agree(seed: int) -> None:
    chance = random.Random(seed)
    generous = chance.choice(("", "", " GENEROUS"))
    script = f"{STREAM}{generous}; {drawn_query(chance)};"
    plan = planned(script)
    assert why_not(plan) is None, why_not(plan)
    inputs = {"s": drawn(chance)}
    expected = [(row.time, *row.values) for row in interpreted(plan, inputs).rows]
    assert simulated.run(optimize(plan), inputs, chance) == expected, script


BY_HAND = {
    "SELECT k, v > 6 AS b, count(*) AS n FROM a [TUMBLE 20] GROUP BY ALL": [
        *[(20, "x", True, 2), (20, "y", False, 2), (40, "x", True, 1)]
    ],
    "SELECT k, window_end, sum(v) FROM a [TUMBLE 20] GROUP BY ALL": [
        *[(20, "x", 20, 30), (20, "y", 20, 7), (40, "x", 40, 7)]
    ],
    "SELECT count(*) AS n FROM a [TUMBLE 20] GROUP BY ALL": [(20, 4), (40, 1)],
    "SELECT k, sum(v) AS s, grouping(k) AS g FROM a [TUMBLE 20] GROUP BY ROLLUP (k)": [
        *[(20, "x", 30, 0), (20, "y", 7, 0), (20, None, 37, 1), (40, "x", 7, 0), (40, None, 7, 1)]
    ],
    "SELECT k, v > 6 AS b, count(*) AS n, grouping_id() AS g FROM a [ROWS 2 SLIDE 2] "
    "GROUP BY GROUPING SETS ((k), (v > 6))": [
        *[(3, "x", None, 1, 1), (3, "y", None, 1, 1), (3, None, False, 1, 2), (3, None, True, 1, 2)],
        *[(12, "x", None, 1, 1), (12, "y", None, 1, 1), (12, None, False, 1, 2), (12, None, True, 1, 2)],
        *[(25, "x", None, 1, 1), (25, None, True, 1, 2)],
    ],
}


@pytest.mark.parametrize("query", BY_HAND)
def test_by_hand(query: str) -> None:
    check(query, BY_HAND[query])
