"""Little queries on little streams, without Spark: engine and oracle must give the expected rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import Arrivals, Input, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.test_maintained_queries import planned

Rows = Sequence[tuple[Any, ...]]


def stream(names: str, rows: Rows) -> Arrivals:
    """A stream with one source partition."""
    return Arrivals([[Row(dict(zip(names.split(), row, strict=True))) for row in rows]])


def answer(script: str, inputs: dict[str, Input]) -> list[tuple[Any, ...]]:
    """Rows of the oracle."""
    return interpreted(planned(script), inputs).values


def check(script: str, inputs: dict[str, Input], expected: Rows, seeds: int = 4) -> None:
    """However the input is cut, the engine gives the expected rows, and so does the oracle."""
    plan = planned(script)
    assert why_not(plan) is None, why_not(plan)
    assert sorted(map(str, interpreted(plan, inputs).values)) == sorted(map(str, expected))
    for seed in range(seeds):
        found = simulated.run(optimize(plan), inputs, random.Random(seed))
        assert sorted(str(row[1:]) for row in found) == sorted(map(str, expected)), f"seed {seed}"
