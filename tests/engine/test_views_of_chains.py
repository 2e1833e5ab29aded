"""Views of derived streams, through restarts: at every instant a view has the rows that the oracle has."""

from __future__ import annotations

import random

import pytest

from millstream.errors import AnalysisError
from millstream.kernels.core import state_chunks
from millstream.plan import nodes
from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import NotInterpreted
from tests.engine.chains import MAINTAINED, REPORTS, Chain, chain, course
from tests.engine.chains import OPERATORS as BELOW
from tests.engine.test_chains import REFUSED
from tests.engine.test_current_results import compare, view_of

pytestmark = pytest.mark.usefixtures("uncompiled")

SEEDS = 20
MORE_SEEDS = 1000
STREAMS = ("DSTREAM ", "RSTREAM ", "CHANGES ")
ASKED = [name for name, text in {**MAINTAINED, **REPORTS}.items() if not any(one in text for one in STREAMS)]


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_chunks, "SPARE", 1)


def drawn(seed: int) -> Chain:
    """A view over one to three derived streams."""
    chance = random.Random(f"view {seed}")
    below = [chance.choice(list(BELOW)) for _ in range(chance.randint(1, 3))]
    return chain([*below, chance.choice(ASKED)], f"view {seed}")


def view(one: Chain) -> nodes.RelationToStream | None:
    """The plan of a view, if it makes sense and can be run."""
    try:
        plan = view_of(one.script)
    except AnalysisError as error:
        if not error.message.startswith(REFUSED):
            raise
        return None
    return None if why_not(plan) or why_not(optimize(plan)) else plan


def check(one: Chain, seed: object) -> None:
    plan = view(one)
    if plan is None:
        return
    chance = random.Random(f"{seed}")
    try:
        compare(plan, one.inputs, chance, course(chance))
    except NotInterpreted as error:
        if "a user-defined aggregate" not in str(error):
            raise


@pytest.mark.parametrize("seed", range(SEEDS))
def test_views(seed: int) -> None:
    check(drawn(seed), seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEEDS, MORE_SEEDS))
def test_more_views(seed: int) -> None:
    check(drawn(seed), seed)


def test_most_views_are_run() -> None:
    assert sum(view(drawn(seed)) is not None for seed in range(SEEDS)) > 0.6 * SEEDS
