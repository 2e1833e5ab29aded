"""The current result of a query, kept as views keep it, is what the oracle computes, at every instant.

Changes come out of the engine's own plan, lowering and kernels, through several shards; rows that leave are
found again by their identities. A row that took the identity of another one would be lost.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine import simulated
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import SEEDS, runnable
from tests.reference.generate import Case

from millstream.analysis.statements import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.kernels import chunks
from millstream.kernels.maintained import ID, ID2, OP
from millstream.plan import nodes
from millstream.plan.executable import why_not
from millstream.plan.optimize import optimize
from millstream.plan.varying import CHANGES, VIEW
from millstream.plan.views import build_view
from millstream.reference import run as interpreted
from millstream.reference.values import same_key
from millstream.runtime.current import CurrentResult
from millstream.spark.hidden import TIME, hidden, sort_keys
from millstream.syntax import parse_script


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "SPARE", 1)


def compare(view: nodes.RelationToStream, case: Case, chance: random.Random) -> None:
    """Folds the changes of a view, and compares what is there after each instant."""
    asked = interpreted(replace(view, kind=CHANGES), case.inputs)
    changes = simulated.changes(optimize(view) if chance.random() < 0.6 else view, case.inputs, chance)
    kept = CurrentResult(
        changes.schema, sort_keys(changes.column_names), (OP, ID, ID2), hidden(changes.column_names)
    )
    expected: dict[Any, Counter[Any]] = {}
    rows: Counter[Any] = Counter()
    values: dict[Any, tuple[Any, ...]] = {}
    for row in asked.rows:
        op, *columns = row.values
        key = same_key(columns)
        values[key] = tuple(columns)
        rows[key] += 1 if op == "+" else -1
        expected[row.time] = +rows
    times = sorted({*expected, *changes[TIME].to_pylist()})
    before: Counter[Any] = Counter()
    for number, time in enumerate(times):
        kept.apply(number, changes.filter(pc.equal(changes[TIME], pa.scalar(time, changes[TIME].type))))
        before = expected.get(time, before)
        shown = kept.snapshot()
        same(
            list(zip(*(column.to_pylist() for column in shown.columns), strict=True)),
            [values[key] for key in before.elements()],
        )


def view_of(script: str) -> nodes.RelationToStream:
    """The plan of the view, or of the query, that a script ends with."""
    catalog = Catalog()
    found = None
    for statement in parse_script(script):
        meaning = analyse(statement, catalog).meaning
        if isinstance(meaning, RunQuery):
            found = build_view(meaning.query)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if runnable(seed) is not None])
def test_drawn_queries(seed: int) -> None:
    found = runnable(seed)
    assert found is not None
    case, plan = found
    if not isinstance(plan, nodes.RelationToStream):
        pytest.skip("its rows are a stream")
    view = replace(plan, kind=VIEW)
    if why_not(view) or why_not(optimize(view)):
        pytest.skip("its result is not maintained")
    compare(view, case, random.Random(seed))
