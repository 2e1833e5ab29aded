"""Punctuation without a timestamp ends a stream before its input ends, whatever stands above.

A window above was told that everything is through, and lost what only the end completes.
"""

from __future__ import annotations

import random

import pytest
from tests.engine import simulated
from tests.engine.chains import course
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

from millstream.plan.optimize import optimize
from millstream.reference import Arrivals, Row
from millstream.reference import run as interpreted

GIVEN = [("x", 5, False, 1), ("x", 2, False, 3), ("x", 3, True, 4), ("x", 6, False, 6), ("x", 7, True, None)]
BELOW = {
    "ROWS 2 SLIDE 2": [(4, 1), (8, 1)],
    "ROWS 5 SLIDE 5": [(8, 1)],
    "START WHEN n > 1 END WHEN n < 1": [(8, 1)],
    "UNBOUNDED": [(8, 1)],
}


@pytest.mark.parametrize("window", BELOW)
def test_the_last_word_completes_open_windows_below_others(window: str) -> None:
    script = f"""CREATE STREAM a (k STRING, n BIGINT, p BOOLEAN, t INT) ORDER BY t PUNCTUATED BY (p);
        CREATE STREAM d AS SELECT count(*) AS n FROM a [{window}];
        SELECT count(*) AS n FROM d [TUMBLE 4];"""
    plan = planned(script)
    inputs = {"a": Arrivals([[Row(dict(zip("knpt", row, strict=True))) for row in GIVEN]])}
    same([(row.time, *row.values) for row in interpreted(plan, inputs).rows], BELOW[window])
    for seed in range(4):
        chance = random.Random(seed)
        same(simulated.run(optimize(plan), inputs, chance, course(chance)), BELOW[window])


@pytest.mark.parametrize("window", ["UNBOUNDED SLIDE 2", "LANDMARK START AT 0 SLIDE 2"])
def test_windows_that_slide_for_ever_stop_at_the_last_word(window: str) -> None:
    """They slid on to the largest timestamp of all."""
    script = f"""CREATE STREAM a (k STRING, n BIGINT, p BOOLEAN, t INT) ORDER BY t PUNCTUATED BY (p);
        SELECT count(*) AS n FROM a [{window}];"""
    plan = planned(script)
    inputs = {"a": Arrivals([[Row(dict(zip("knpt", row, strict=True))) for row in GIVEN]])}
    expected = [(2, 1), (4, 2), (6, 2), (8, 3)]
    same([(row.time, *row.values) for row in interpreted(plan, inputs).rows], expected)
    for seed in range(4):
        chance = random.Random(seed)
        same(simulated.run(optimize(plan), inputs, chance, course(chance)), expected)
