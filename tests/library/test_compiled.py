"""Compiled aggregates of the library agree with their runs as Python."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from millstream.analysis.definitions.library_aggregates import library_aggregate
from millstream.catalog.entries import Aggregate
from millstream.library import bundled_aggregates
from millstream.types import STRING, Kind, Type
from tests.library.running import Row, active, base, bodies, content, over_rows, uncompiled

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
CONSTANTS: dict[str, Any] = {
    "weight": 0.25,
    "share": 0.3,
    "size": 5,
    "slots": 7,
    "accuracy": 4,
    "k": 3,
    "gap": timedelta(seconds=20),
    "step": timedelta(seconds=10),
}
"""Arguments that are the same for all tuples."""

TEXTS = ("concatenated", "xml_elements")
"""Those that are never compiled."""

REPRESENTATIVES = ("last_seen", "moving_variance", "naive_bayes", "theft_alarm")
"""One for each way to be called: tuple by tuple, over rows, over a content, under active expiration; and one
with several tables. Each of the others takes seconds to compile."""


def compilable() -> list[Any]:
    return [
        pytest.param(name, marks=[] if name in REPRESENTATIVES else pytest.mark.soak)
        for name in sorted({*bundled_aggregates.names()} - {*TEXTS})
    ]


def tuples(entry: Aggregate, chance: random.Random) -> list[Row]:
    times = sorted(NOON + timedelta(seconds=chance.randrange(600)) for _ in range(40))

    def value(name: str, type_: Type, at: datetime) -> Any:
        if name in CONSTANTS:
            return CONSTANTS[name]
        if type_.kind is Kind.TIMESTAMP:
            return at
        if chance.random() < 0.1:
            return None
        if name == "kind":
            return chance.choice(["item", "item", "ap"])
        match type_.kind:
            case Kind.DOUBLE:
                return round(chance.uniform(-5, 5), 2)
            case Kind.INT | Kind.BIGINT:
                return chance.randrange(3) if name == "bit" else chance.randrange(10**6)
        return chance.choice("abcde")

    return [tuple(value(p.name, p.type, at) for p in entry.parameters) for at in times]


@pytest.mark.slow
@pytest.mark.parametrize("name", compilable())
def test_compiled_programs_do_the_same(name: str) -> None:
    entry = library_aggregate(name)[0]
    types = [p.type if p.type.is_known else STRING for p in entry.parameters]
    rows = tuples(entry, random.Random(name))
    found = bodies(name, types)

    def everything() -> list[Any]:
        results: list[Any] = []
        if found.base is not None and entry.blocking:
            results.append(content(name, types, rows))
        elif found.base is not None:
            results.append(base(name, types, rows, [13]))
        if found.window is not None and found.base is None:
            results.append(active(name, types, rows, range(0, 80, 2), 5))
        elif found.window is not None:
            results.append(over_rows(name, types, rows, 6, [13]))
        return results

    with uncompiled():
        plainly = everything()
    assert any(plainly)
    assert everything() == plainly
