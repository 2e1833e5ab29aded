"""Windows of calendar months, quarters and years: engine, oracle and rows by hand agree."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.little import check, stream
from tests.engine.test_maintained_queries import planned

STREAM = "CREATE STREAM s (k INT, v INT, t TIMESTAMP) ORDER BY t SLACK INTERVAL 40 DAYS"
DATES = "CREATE STREAM d (v INT, t DATE) ORDER BY t"


def drawn(chance: random.Random) -> Arrivals:
    """Tuples of some years, at and around the beginnings of months."""
    moment, rows = datetime(chance.choice((1899, 1969, 2023)), 11, 20, tzinfo=UTC), []
    for _ in range(30):
        moment += timedelta(days=chance.choice((0, 1, 11, 29, 31, 90)))
        shown = moment - timedelta(days=chance.choice((0, 0, 3, 30)))
        if chance.random() < 0.4:
            shown = shown.replace(day=1, hour=0) - timedelta(microseconds=chance.choice((0, 1)))
        rows.append(Row({"k": chance.randrange(3), "v": chance.randrange(9), "t": shown}))
    return Arrivals([rows])


def drawn_query(chance: random.Random) -> str:
    sizes = ("RANGE 3 MONTHS SLIDE 1 MONTH", "RANGE 1 MONTH SLIDE 2 MONTHS", "RANGE 1 YEAR SLIDE 1 QUARTER")
    tumbles = ("TUMBLE 1 MONTH", "TUMBLE 1 QUARTER", "TUMBLE 1 YEAR ORIGIN '2026-04-01'", "TUMBLE 5 MONTHS")
    window = chance.choice((*sizes, *tumbles)) + chance.choice(("", " STAMP LAST"))
    window += chance.choice(("", " EMIT EMPTY"))
    group = "" if "EMPTY" in window else chance.choice(("", " GROUP BY k"))
    where = chance.choice(("", " WHERE v > 2", " WHERE wid % 3 <> 0"))
    bounds = "window_start, window_end, wid"
    if chance.random() < 0.2 and "EMPTY" not in window:
        return f"SELECT {bounds}, v FROM s [{window}]{where}"
    return f"SELECT {bounds}, count(*) AS n, sum(v) AS m, max(v) AS x FROM s [{window}]{where}{group}"


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


ROWS = [(1, date(2024, 1, 31)), (2, date(2024, 2, 1)), (4, date(2024, 2, 29)), (8, date(2025, 1, 1))]
BY_HAND: dict[str, list[tuple[Any, ...]]] = {
    "SELECT window_start, window_end, sum(v) AS n FROM d [TUMBLE 1 MONTH]": [
        (date(2024, 1, 1), date(2024, 2, 1), 1),
        (date(2024, 2, 1), date(2024, 3, 1), 6),
        (date(2025, 1, 1), date(2025, 2, 1), 8),
    ],
    "SELECT window_start, window_end, sum(v) AS n FROM d [TUMBLE 1 YEAR ORIGIN '2026-02-01']": [
        (date(2023, 2, 1), date(2024, 2, 1), 1),
        (date(2024, 2, 1), date(2025, 2, 1), 14),
    ],
    "SELECT window_end, sum(v) AS n FROM d [RANGE 1 QUARTER SLIDE 6 MONTHS]": [(date(2025, 4, 1), 8)][:0],
    "SELECT window_end, sum(v) AS n FROM d [RANGE 2 QUARTERS SLIDE 1 QUARTER] WHERE v < 8": [
        (date(2024, 4, 1), 7),
        (date(2024, 7, 1), 7),
    ],
}


@pytest.mark.parametrize("query", BY_HAND)
def test_by_hand(query: str) -> None:
    check(f"{DATES}; {query};", {"d": stream("v t", ROWS)}, BY_HAND[query])
