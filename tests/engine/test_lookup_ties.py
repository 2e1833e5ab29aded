"""Rows that a lookup makes of one result have one place in the order, and stay in the order of the lookup."""

from __future__ import annotations

import random

import pytest

from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.physical.planning import planned

SCRIPT = """
CREATE STREAM b (k STRING, n BIGINT, t INT) ORDER BY t;
CREATE TABLE names (k STRING, m BIGINT);
CREATE STREAM d AS SELECT k, sum(n) AS n FROM b [RANGE 5 SLIDE 5] GROUP BY k;
CREATE STREAM e AS SELECT d.k AS k, d.n + x.m AS n FROM d JOIN names x ON d.k = x.k;
SELECT X.n AS a, Y.n AS b FROM e PARTITION BY k AS (X, Y) WHERE Y.n > X.n;
"""
INPUTS = {
    "b": Arrivals([[Row({"k": "y", "n": 1, "t": t}) for t in (1, 6)]]),
    "names": [{"k": "y", "m": 1}, {"k": "y", "m": 2}],
}


@pytest.mark.parametrize("seed", range(20))
def test_blobs_of_a_task_may_arrive_in_any_order(seed: int) -> None:
    plan = planned(SCRIPT)
    rows = [row[1:] for row in simulated.run(plan, INPUTS, random.Random(seed))]
    assert rows == interpreted(plan, INPUTS).values == [(2, 3), (2, 3)]
