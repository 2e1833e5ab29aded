"""Aggregates that take all rows of others in their bodies: the engine against the definition."""

from __future__ import annotations

import random

import pytest

from oracle import Arrivals, Row, run
from tests.engine import simulated
from tests.physical.planning import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

SCRIPT = """
CREATE STREAM s (k INT, x INT, t INT) ORDER BY t;
CREATE AGGREGATE history(x INT) : INT {
    TABLE seen(v INT);
    INITIALIZE : { INSERT INTO seen VALUES (x); INSERT INTO RETURN VALUES (x); }
    ITERATE    : { INSERT INTO seen VALUES (x); INSERT INTO RETURN SELECT v FROM seen; }
    TERMINATE  : { INSERT INTO RETURN SELECT count(v) FROM seen; }
};
CREATE AGGREGATE ends(x INT) : (a INT, b STRING) {
    TABLE st(m INT);
    INITIALIZE : { INSERT INTO st VALUES (x); INSERT INTO RETURN VALUES (x, 'first'); }
    ITERATE    : { UPDATE st SET m = x; }
    TERMINATE  : { INSERT INTO RETURN SELECT m, 'last' FROM st WHERE m > 0; }
};
CREATE AGGREGATE again(x INT) : INT {
    TABLE state(v INT);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE    : { INSERT INTO state VALUES (x); }
    TERMINATE  : { INSERT INTO RETURN SELECT history(v) + 1 FROM state WHERE v > 1; }
};
CREATE AGGREGATE thrice(x INT) : INT {
    TABLE state(v INT);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE    : { INSERT INTO state SELECT history(v) FROM state; INSERT INTO RETURN VALUES (x); }
    TERMINATE  : { INSERT INTO RETURN SELECT again(v) FILTER (WHERE v < 9) FROM state; }
};
CREATE AGGREGATE copied(x INT) : (a INT, b STRING) {
    TABLE state(v INT);
    TABLE mid(a INT, b STRING);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE    : { INSERT INTO state VALUES (x); }
    TERMINATE  : {
        INSERT INTO mid SELECT ends(v) FROM state;
        INSERT INTO RETURN SELECT a + 1, b FROM mid;
        INSERT INTO RETURN SELECT ends(v + 100) FROM state WHERE v > 4;
    }
};
"""
QUERIES = (
    "SELECT window_end, k, again(x) FROM s [TUMBLE 8] GROUP BY k",
    "SELECT window_end, copied(x) FROM s [RANGE 10 SLIDE 5]",
    "SELECT window_end, thrice(x) FROM s [RANGE 3 SLIDE 3]",
    "SELECT k, again(x) OVER (PARTITION BY k ROWS 2 PRECEDING) AS r FROM s",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(6))
def test_all_rows_are_taken(query: str, seed: int) -> None:
    chance = random.Random(f"{query} {seed}")
    tuples, time = [], 0
    for _ in range(chance.randint(0, 14)):
        time += chance.choice((0, 1, 2, 2, 6))
        tuples.append(Row({"k": chance.randint(1, 2), "x": chance.randint(-1, 6), "t": time}))
    plan, given = planned(SCRIPT + query), {"s": Arrivals([tuples])}
    expected = [(row.time, *row.values) for row in run(plan, given).rows]
    found = [tuple(map(_plain, row)) for row in simulated.run(plan, given, chance)]
    assert found == expected


def _plain(value: object) -> object:
    return tuple(value.values()) if isinstance(value, dict) else value
