"""LAG, STAMP LAST, EMIT EMPTY and END AT ... INCLUSIVE: engine, oracle and rows by hand agree."""

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

STREAM = "CREATE STREAM s (k INT, v INT, w STRING, t BIGINT) ORDER BY t SLACK 2"
TOTAL = """CREATE AGGREGATE total(x INT) : INT {
    TABLE state(s INT);
    INITIALIZE : { INSERT INTO state VALUES (coalesce(x, 0)); }
    ITERATE    : { UPDATE state SET s = s + coalesce(x, 0); }
    TERMINATE  : { INSERT INTO RETURN SELECT s FROM state; }
};"""


def drawn_query(chance: random.Random) -> str:
    size, slide, lag = chance.randint(1, 12), chance.randint(1, 6), chance.randint(1, 9)
    window = chance.choice((f"RANGE {size} SLIDE {slide}", f"TUMBLE {size}", f"TUMBLE {size} ORIGIN 2"))
    window += chance.choice(("", f" LAG {lag}")) + chance.choice(("", " STAMP LAST"))
    window += chance.choice(("", f" EMIT EVERY {slide}", " EMIT EMPTY", " EMIT EMPTY"))
    if chance.random() < 0.2:
        window = f"LANDMARK START AT 3 END AT {chance.randint(3, 30)} INCLUSIVE SLIDE {slide}"
    where = chance.choice(("", " WHERE v > 1", " WHERE window_end > 12", " WHERE v > 3 HAVING count(*) < 3"))
    calls = chance.choice(
        ("count(*) AS n, sum(v) AS m", "max(w) AS n, total(v) AS m", "collect_list(v) AS n")
    )
    group = "" if "EMPTY" in window or "HAVING" in where else chance.choice(("", " GROUP BY k"))
    query = f"SELECT window_start, window_end, wid, {calls} FROM s [{window}]{where}{group}"
    return (
        query if chance.random() < 0.7 else f"SELECT count(*) AS c, max(wid) AS w FROM ({query}) [TUMBLE 7]"
    )


@pytest.mark.parametrize("seed", range(40))
def test_engine_and_oracle_agree(seed: int) -> None:
    chance = random.Random(seed)
    generous = chance.choice(("", "", " GENEROUS"))
    script = f"{STREAM}{generous}; {TOTAL} {drawn_query(chance)};"
    plan = planned(script)
    assert why_not(plan) is None, why_not(plan)
    inputs, ended = {"s": drawn(chance)}, chance.random() < 0.7
    expected = [(row.time, *row.values) for row in interpreted(plan, inputs, ended=ended).rows]
    assert simulated.run(optimize(plan), inputs, chance, ended=ended) == expected, script


BY_HAND = {
    # The extent ends 3 before the report.
    "SELECT window_start, window_end, sum(v) FROM a [RANGE 10 SLIDE 5 LAG 3] HAVING window_end < 15": [
        *[(5, -8, 2, 10), (10, -3, 7, 15), (15, 2, 12, 25)]
    ],
    "SELECT window_end, count(*) AS n, sum(v) FROM a [TUMBLE 5 EMIT EMPTY]": [
        *[
            (5, 5, 2, 15),
            (10, 10, 0, None),
            (15, 15, 2, 22),
            (20, 20, 0, None),
            (25, 25, 0, None),
            (30, 30, 1, 7),
        ]
    ],
    # What ends at 10 belongs to the window up to 10.
    "SELECT window_end, sum(n) FROM (SELECT count(*) AS n FROM a [TUMBLE 5 STAMP LAST]) [TUMBLE 10]": [
        *[(10, 10, 2), (20, 20, 2), (30, 30, 1)]
    ],
    "SELECT window_end, sum(n) FROM (SELECT count(*) AS n FROM a [TUMBLE 10]) [TUMBLE 10]": [
        *[(20, 20, 2), (30, 30, 2), (40, 40, 1)]
    ],
    "SELECT window_end, count(*) FROM a [LANDMARK START AT 3 END AT 12 INCLUSIVE]": [(13, 13, 3)],
    "SELECT CHANGES v FROM a [LANDMARK START AT 12 END AT 12 INCLUSIVE]": [(12, "+", 2)],
}


@pytest.mark.parametrize("query", BY_HAND)
def test_by_hand(query: str) -> None:
    check(query, BY_HAND[query])


def test_a_long_gap_of_empty_windows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.kernels.windows.empty_windows._MANY", 2)
    with pytest.raises(Exception, match="EMIT EMPTY would report"):
        check("SELECT count(*) FROM a [TUMBLE 1 EMIT EMPTY]", [])
