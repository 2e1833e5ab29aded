"""Aggregates over append-only relations: the state does not grow with the tuples."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from checks import Chain, check, rows, stream
from varying import Tuple, batches, changes, drawn, grouped, lived, told

from millstream.kernels.column_names import OP
from millstream.kernels.core import state_chunks
from millstream.kernels.core.kernel import END, Frontier, Tuples
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.core.tuple_batch import cut
from millstream.kernels.relational.append_only_groups import AppendOnlyGroups
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants
from millstream.kernels.specs import AggregateSpec, GroupSpec

STAYS = [
    Lifetime(None),
    Lifetime(None, SlideInstants(2)),
    Lifetime(None, SlideInstants(3)),
    Lifetime(None, SlideInstants(2, end=7)),
]
INT, DOUBLE = pa.int64(), pa.float64()
MERGED = (
    AggregateSpec("count", None, "n", INT),
    AggregateSpec("sum", "v", "s", INT),
    AggregateSpec("max", "v", "m", INT),
    AggregateSpec("first", "v", "f", INT),
    AggregateSpec("last", "v", "l", INT),
    AggregateSpec("var_pop", "x", "p", DOUBLE),
)
VALUED = (
    AggregateSpec("count", "v", "d", INT, distinct=True),
    AggregateSpec("percentile_disc", "v", "c", INT, parameters=(0.5,)),
    AggregateSpec("collect_list", "v", "w", pa.list_(INT)),
    AggregateSpec("sum", "v", "e", INT, distinct=True),
)


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_chunks, "SPARE", 1)


def slides_of(lifetime: Lifetime) -> tuple[SlideInstants, ...]:
    return () if lifetime.slides is None else (lifetime.slides,)


def chain(spec: GroupSpec, lifetime: Lifetime) -> Chain:
    """Tuples come in order, and not before they are final."""
    return Chain(Reorder(), AppendOnlyGroups(spec, lifetime, slides_of(lifetime)))


def with_doubles(tuples: Tuples) -> Tuples:
    columns = tuples.columns.append_column("x", tuples.columns["v"].cast(DOUBLE))
    return Tuples(columns, tuples.time, tuples.origin, tuples.number)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("stay", STAYS[:3], ids=str)
def test_groups(stay: Lifetime, seed: int) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance, 24, sides=1)
    found = check(partial(chain, GroupSpec(("k",), MERGED[:3]), stay), batches(tuples, chance))
    expected = changes([lived(tuples, stay, slides_of(stay))], partial(grouped, columns=4))
    assert told(found, "k n s m") == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("stay", STAYS, ids=str)
@pytest.mark.parametrize("aggregates", [MERGED, VALUED, (*VALUED, *MERGED), ()], ids=len)
def test_every_kind_of_aggregate(aggregates: tuple[AggregateSpec, ...], stay: Lifetime, seed: int) -> None:
    """Each row of a group has the value of its tuples so far, and leaves when another one enters."""
    chance = random.Random(seed)
    tuples = drawn(chance, 24, sides=1)
    given = [(with_doubles(some), frontier) for some, frontier in batches(tuples, chance)]
    found = check(partial(chain, GroupSpec(("k",), aggregates), stay), given)
    shown: dict[int, Any] = {}
    for row in found:
        values = tuple(row[spec.result] for spec in aggregates)
        if row[OP] < 0:
            assert shown.pop(row["k"]) == values
            continue
        assert row["k"] not in shown
        shown[row["k"]] = values
        until = row["time"] - (stay.slides is not None)
        mine = [t for t in tuples if t.key == row["k"] and t.time <= until]
        assert list(values) == [pytest.approx(_expected(spec.result, mine)) for spec in aggregates]
    end = 10**9 if stay.slides is None or stay.slides.end is None else stay.slides.end
    assert shown.keys() == {t.key for t in tuples if t.time < end}


def _expected(result: str, tuples: list[Tuple]) -> Any:
    values = [t.value for t in tuples]
    return {
        "n": len(values),
        "s": sum(values),
        "m": max(values),
        "f": values[0],
        "l": values[-1],
        "p": np.var(values),
        "d": len(set(values)),
        "c": sorted(values)[-(-len(values) // 2) - 1],
        "w": values,
        "e": sum(set(values)),
    }[result]


@pytest.mark.parametrize("stay", [Lifetime(None), Lifetime(None, SlideInstants(10_000))], ids=str)
def test_state_does_not_grow_with_tuples(stay: Lifetime) -> None:
    """There are three groups of five values: also while a slide is waited for, and in what is written."""
    kernel = AppendOnlyGroups(GroupSpec(("k",), (*MERGED, VALUED[0], VALUED[3])), stay, slides_of(stay))
    written: dict[str, int] = {}
    for number in range(60):
        tuples = drawn(random.Random(number), 50, sides=1)
        batch, _ = batches(tuples, random.Random(0))[0]
        later = Tuples(with_doubles(batch).columns, batch.time + 100 * number, batch.origin, batch.number)
        kernel.process(later, Frontier(int(later.time[-1]), 0))
        change = kernel.snapshot()
        written |= {name: table.num_rows for name, table in change.added.items()}
        for name in change.dropped:
            del written[name]
        assert kernel.rows <= 3 + 3 + 2 * 15
        # Rows of groups are rewritten when more than half of them are out of date.
        assert sum(written.values()) <= 3 * kernel.rows + state_chunks.SPARE
    assert len(written) < state_chunks.MANY + 2 * 4


def test_groups_without_anything_in_them() -> None:
    given = stream("time v\n1 1\n2 2\n2 3")
    kernel = AppendOnlyGroups(GroupSpec((), ()), Lifetime(None))
    out = [*rows(kernel.process(given, Frontier(2, 0))), *rows(kernel.process(cut(given, 0, 0), END))]
    assert [(row["time"], row[OP]) for row in out] == [(1, 1)]
