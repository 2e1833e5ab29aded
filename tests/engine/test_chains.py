"""Every operator above every other, through restarts: the engine without Spark agrees with the oracle.

Chains of derived streams are run optimized or not, by several shards, in micro-batches cut anywhere, with all
state read back between some of them.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from millstream.errors import AnalysisError
from millstream.kernels.core import state_chunks
from millstream.plan import nodes
from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import NotInterpreted
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.chains import OPERATORS, SHOWN, Chain, chain, course, drawn
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

SEEDS = 20
MORE_SEEDS = 3000
REFUSED = (
    "UNION of contents of windows takes no stream of tuples",
    "LAG does not go with",
    "SLIDE RANGE along",
    "'rank' ranks by the timestamp",
)
"""Messages for chains that make no sense."""


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_chunks, "SPARE", 1)


def plan_of(one: Chain) -> nodes.Node | None:
    """The plan of a chain, if it makes sense and can be run; rules keep it so."""
    try:
        plan = planned(one.script)
    except AnalysisError as error:
        if not error.message.startswith(REFUSED):
            raise
        return None
    if why_not(plan) is not None:
        return None
    assert why_not(optimize(plan)) is None, one
    return plan


def check(one: Chain, seed: object) -> None:
    """Compare a chain with the oracle, or with itself, where that does not know an operator."""
    plan = plan_of(one)
    if plan is None:
        return
    expected: list[tuple[Any, ...]] | None = None
    try:
        expected = [(row.time, *row.values) for row in interpreted(plan, one.inputs).rows]
    except NotInterpreted as error:
        if "a user-defined aggregate" not in str(error):
            raise
    for number, version in enumerate((plan, optimize(plan))):
        chance = random.Random(f"{seed} {number}")
        found = simulated.run(version, one.inputs, chance, course(chance))
        expected = found if expected is None else expected
        same(found, expected)


def pairs() -> list[Any]:
    """Every operator above every other; in `make test` one of a hundred."""
    found = []
    for number, names in enumerate(itertools.product(OPERATORS, [*OPERATORS, *SHOWN])):
        marks = [] if number % 100 == 0 else [pytest.mark.soak]
        found.append(pytest.param(*names, marks=marks, id=" above ".join(reversed(names))))
    return found


@pytest.mark.parametrize(("below", "above"), pairs())
def test_an_operator_above_another(below: str, above: str) -> None:
    check(chain([below, above], 0), 0)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_chains(seed: int) -> None:
    check(drawn(seed), seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEEDS, MORE_SEEDS))
def test_more_chains(seed: int) -> None:
    check(drawn(seed), seed)


def test_most_chains_are_run() -> None:
    assert sum(plan_of(drawn(seed)) is not None for seed in range(SEEDS)) > 0.8 * SEEDS
