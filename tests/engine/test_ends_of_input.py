"""Windows that only the end of the input completes end with the newest tuple of their stream.

That may be a derived stream: tuples that it leaves out do not count, while those that WHERE leaves out of the
window do. Rows are worked out by hand.
"""

from __future__ import annotations

import random

import pytest

from millstream.plan.optimize import optimize
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.chains import course
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

GIVEN = [("x", 5, 1), ("x", 1, 3), ("z", 6, 6), ("z", 0, 10)]
SCRIPT = """
CREATE STREAM a (k STRING, n BIGINT, t INT) ORDER BY t;
CREATE STREAM large AS SELECT k, n FROM a WHERE n > 1;
CREATE STREAM counted AS SELECT k, n, count(*) OVER (ROWS 1 PRECEDING) AS c FROM a;
CREATE STREAM whole AS SELECT count(*) AS c FROM large [UNBOUNDED];
CREATE STREAM threes AS SELECT count(*) AS c FROM large [ROWS 3 SLIDE 3];
CREATE STREAM runs AS SELECT count(*) AS c FROM large [START WHEN n > 1 END WHEN n < 1];
"""
SLIDES = [(2, 1), (4, 1), (6, 1), (8, 2), (10, 2)]
ROWS = {
    # The tuple at 10 is none of the derived stream, and was taken for its last.
    "SELECT count(*) AS c FROM large [UNBOUNDED SLIDE 2]": SLIDES,
    # It is in the window here, and was not taken for the last, if it came from another stage.
    "SELECT count(*) AS c, window_end AS e FROM a [UNBOUNDED] WHERE n > 1": [(10, 2, 10)],
    "SELECT count(*) AS c, window_end AS e FROM counted [UNBOUNDED] WHERE n > 1": [(10, 2, 10)],
    "SELECT count(*) AS c FROM counted [UNBOUNDED SLIDE 2] WHERE n > 1": [*SLIDES, (12, 2)],
    # Progress has been made up to 10, and no result may be older than that.
    "SELECT count(*) AS c, window_end AS e FROM large [UNBOUNDED]": [(10, 2, 10)],
    "SELECT k, count(*) AS c FROM large [UNBOUNDED] GROUP BY k": [(10, "x", 1), (10, "z", 1)],
    "SELECT count(*) AS c FROM large [LANDMARK START AT 2]": [(10, 1)],
    "SELECT c FROM threes": [(10, 2)],
    "SELECT c FROM runs": [(10, 2)],
    # Results that came behind the progress of their stream were lost.
    "SELECT window_end AS e, count(*) AS c FROM whole [TUMBLE 2]": [(12, 12, 1)],
    "SELECT window_end AS e, count(*) AS c FROM threes [TUMBLE 2]": [(12, 12, 1)],
    "SELECT window_end AS e, count(*) AS c FROM runs [TUMBLE 2]": [(12, 12, 1)],
}


@pytest.mark.parametrize("query", ROWS)
def test_the_last_tuple_of_a_stream(query: str) -> None:
    inputs = {"a": Arrivals([[Row(dict(zip("knt", row, strict=True))) for row in GIVEN]])}
    plan = planned(f"{SCRIPT}{query};")
    same([(row.time, *row.values) for row in interpreted(plan, inputs).rows], ROWS[query])
    for seed, one in enumerate((plan, optimize(plan), plan, optimize(plan))):
        chance = random.Random(seed)
        same(simulated.run(one, inputs, chance, course(chance)), ROWS[query])


PROMISED = """
CREATE STREAM a (k STRING, n BIGINT, p BOOLEAN, t INT) ORDER BY t PUNCTUATED BY (p);
CREATE STREAM threes AS SELECT count(*) AS c FROM a [ROWS 3 SLIDE 3];
SELECT window_end AS e, count(*) AS c FROM threes [TUMBLE 10];
"""


def test_a_punctuation_after_the_last_tuple() -> None:
    given = [("x", 1, False, 1), ("x", 2, False, 2), ("x", 0, True, 35)]
    inputs = {"a": Arrivals([[Row(dict(zip("knpt", row, strict=True))) for row in given]])}
    plan = planned(PROMISED)
    expected = [(40, 40, 1)]
    same([(row.time, *row.values) for row in interpreted(plan, inputs).rows], expected)
    for seed in range(3):
        chance = random.Random(seed)
        same(simulated.run(plan, inputs, chance, course(chance)), expected)
