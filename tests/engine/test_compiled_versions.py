"""The ways in which users' aggregates go over windows, compiled: a cell of the table for each."""

from __future__ import annotations

import pytest

from tests.engine.test_versions import ACTIVE, CELLS, LEAVING, answers, created, script

pytestmark = pytest.mark.slow

EACH_WAY = {(way, "window" in versions): cell for cell in CELLS for _, versions, _, way, _ in [cell]}


@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, id=f"{way.name} {cell[0]}, {cell[1]}") for (way, _), cell in EACH_WAY.items()],
)
def test_a_way(cell: tuple[str, str, bool, object, list[int]]) -> None:
    over, versions, algebraic, _, expected = cell
    text = script(over, created(versions, algebraic=algebraic))
    assert [result for _, result in answers(text)] == expected


@pytest.mark.parametrize("versions", ["base", "base window"])
def test_active_expiration(versions: str) -> None:
    assert len(answers(script(ACTIVE, created(versions)), LEAVING)) == 4
