"""Random queries agree with DuckDB's results for the same rows in plain SQL."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from tests.engine import plain_sql, simulated
from tests.engine.test_maintained_queries import planned

SEEDS = range(80)


def rounded(rows: Any) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset; averages of different summations may differ in the last digits."""
    return Counter(
        tuple(round(value, 9) if isinstance(value, float) else value for value in row) for row in rows
    )


def compare(seed: int) -> bool:
    """Compare a drawn query with DuckDB; False if Millstream refuses to run it."""
    chance = random.Random(seed)
    drawn = plain_sql.KINDS[seed % len(plain_sql.KINDS)](chance)
    plan = planned(plain_sql.declared() + drawn.esl)
    if why_not(plan) or why_not(optimize(plan)):
        return False
    given = {name: plain_sql.tuples(chance) for name in plain_sql.STREAMS}
    inputs = {name: plain_sql.arrivals(rows) for name, rows in given.items()}
    found = simulated.run(optimize(plan) if chance.random() < 0.6 else plan, inputs, chance)
    database = plain_sql.Database(given)
    if drawn.maintained:
        pairs = zip(plain_sql.folded(found), database.contents(drawn.sql), strict=True)
        for now, (mine, expected) in enumerate(pairs):
            same = rounded(mine.elements()) == rounded(expected.elements())
            assert same, f"{drawn.esl}\nat {now} of {given}"
    else:
        assert rounded(row[1:] for row in found) == rounded(database.rows(drawn.sql)), f"{drawn.esl}\n{given}"
    database.close()
    return True


@pytest.mark.parametrize("part", range(5))
def test_drawn_queries(part: int) -> None:
    for seed in SEEDS[part::5]:
        compare(seed)


def test_most_of_what_is_drawn_is_run() -> None:
    kinds = plain_sql.KINDS
    drawn = [kinds[seed % len(kinds)](random.Random(seed)).esl for seed in SEEDS]
    plans = [planned(plain_sql.declared() + query) for query in drawn]
    assert sum(not why_not(plan) for plan in plans) > 0.9 * len(plans)
