"""Chains of operators over latent streams, late tuples and bad records agree with the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest

from millstream.kernels.core import state_chunks
from millstream.plan import nodes
from millstream.plan.optimize import optimize
from oracle import NotInterpreted
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.chains import Chain, course, drawn
from tests.engine.test_chains import plan_of
from tests.engine.test_invariants import same
from tests.engine.untimed_chains import Untimed, declared

pytestmark = pytest.mark.usefixtures("uncompiled")

SEEDS = 20
MORE_SEEDS = 1000
UNKNOWN = ("a user-defined aggregate", "latent tuple that has no recorded stamp")
"""Operators that the oracle does not know: reports of row windows over a latent stream are latent."""


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_chunks, "SPARE", 1)


def is_settled(one: Chain, plan: nodes.Node) -> bool:
    """Whether the order is defined: a latent union is in the order of arrival, which is that of batches."""
    unions = [node for node in plan.walk() if isinstance(node, nodes.StreamUnion)]
    return not any(union.latent for union in unions)


def check(one: Chain, seed: object) -> None:
    plan = plan_of(one)
    if plan is None or not is_settled(one, plan):
        return
    catalog = declared(one.script)
    expected: list[tuple[Any, ...]] | None = None
    try:
        expected = [(row.time, *row.values) for row in interpreted(plan, one.inputs, catalog=catalog).rows]
    except NotInterpreted as error:
        if not any(reason in str(error) for reason in UNKNOWN):
            raise
    for number, version in enumerate((plan, optimize(plan))):
        chance = random.Random(f"{seed} {number}")
        found = simulated.run(version, one.inputs, chance, course(chance), catalog)
        expected = found if expected is None else expected
        if any(row[0] is None for row in expected):
            found, expected = ([(None, *row[1:]) for row in rows] for rows in (found, expected))
        same(found, expected)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_chains(seed: int) -> None:
    check(drawn(seed, Untimed), seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEEDS, MORE_SEEDS))
def test_more_chains(seed: int) -> None:
    check(drawn(seed, Untimed), seed)
