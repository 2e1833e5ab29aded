"""Windows whose range depends on their end: engine, oracle and rows by hand agree."""

from __future__ import annotations

import random

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.test_maintained_queries import planned
from tests.engine.test_ranking import drawn
from tests.engine.test_window_bounds import check

STREAM = "CREATE STREAM s (k INT, v INT, w STRING, t BIGINT) ORDER BY t SLACK 4"


def drawn_query(chance: random.Random) -> str:
    one, other, third, slide = (chance.randint(1, 14) for _ in range(4))
    cases = chance.choice(
        (
            f"WHEN window_end > 20 THEN {one} ELSE {other} END",
            f"WHEN window_end % 3 = 0 THEN {one} WHEN window_end > 30 THEN {third} ELSE {other} END",
        )
    )
    more = chance.choice(("", f" LAG {third}", " STAMP LAST", " ORIGIN 3", " PATTR k"))
    window = f"[RANGE CASE {cases} SLIDE {slide}{more}]"
    where = chance.choice(("", " WHERE v > 1", " WHERE v < wid", " WHERE window_end > 9"))
    query = chance.choice(
        (
            f"SELECT k, v, window_start, window_end FROM s {window}{where}",
            f"SELECT k, w FROM s {window}{where}",
            f"SELECT window_start, window_end, count(*) AS n, sum(v) AS m FROM s {window}{where}",
            f"SELECT window_end, k, max(w) AS m, count(*) AS n FROM s {window}{where} GROUP BY k",
            f"SELECT k, count(*) AS n FROM s {window}{where} GROUP BY ROLLUP (k)",
            f"SELECT k, count(*) AS n FROM s {window}{where} GROUP BY k ORDER BY n DESC, k LIMIT 2",
        )
    )
    return query if " PATTR" not in more else query.replace("SELECT w", "SELECT k, w")


@pytest.mark.parametrize("seed", range(25))
def test_engine_and_oracle_agree(seed: int) -> None:
    chance = random.Random(seed)
    generous = chance.choice(("", " GENEROUS"))
    script = f"{STREAM}{generous}; {drawn_query(chance)};"
    plan = planned(script)
    assert why_not(plan) is None, why_not(plan)
    inputs, ended = {"s": drawn(chance)}, chance.random() < 0.7
    expected = [(row.time, *row.values) for row in interpreted(plan, inputs, ended=ended).rows]
    assert simulated.run(optimize(plan), inputs, chance, ended=ended) == expected, script


CASE = "CASE WHEN window_end % 10 = 0 THEN 10 ELSE 3 END"
BY_HAND = {
    f"SELECT window_start, window_end, count(*) AS n, sum(v) FROM a [RANGE {CASE} SLIDE 5]": [
        *[(5, 2, 5, 1, 5), (10, 0, 10, 2, 15), (15, 12, 15, 1, 2), (20, 10, 20, 2, 22), (30, 20, 30, 1, 7)]
    ],
    f"SELECT v FROM a [RANGE {CASE} SLIDE 5] WHERE v < 10": [*[(5, 5), (10, 5), (15, 2), (20, 2), (30, 7)]],
}


@pytest.mark.parametrize("query", BY_HAND)
def test_by_hand(query: str) -> None:
    check(query, BY_HAND[query])
