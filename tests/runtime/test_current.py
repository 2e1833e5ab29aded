"""The current result of a query: changes applied batch by batch, once each, also after a restart."""

import random
from pathlib import Path

import pyarrow as pa

from millstream.runtime.current import CurrentResult

SCHEMA = pa.schema(
    [("x", "int64"), ("t", "int64"), ("n", "int64"), ("op", "int8"), ("i", "int64"), ("j", "int64")]
)
Change = tuple[int, int, int]
"""An identity, its row, and whether it enters or leaves."""


def _current(directory: Path | None = None) -> CurrentResult:
    return CurrentResult(
        SCHEMA, ["t", "n"], ("op", "i", "j"), hidden=["t", "n", "op", "i", "j"], kept_in=directory
    )


def _batch(instant: int, changes: list[Change]) -> pa.Table:
    rows = [(row, instant, n, op, i % 7, i // 7) for n, (i, row, op) in enumerate(changes)]
    random.Random(instant).shuffle(rows)
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * 6, schema=SCHEMA)


def _draw(chance: random.Random, present: dict[int, int]) -> list[Change]:
    """Some rows leave, some are replaced at the same instant, and some are new."""
    leaving = chance.sample(sorted(present), chance.randint(0, len(present)))
    changes: list[Change] = [(identity, present.pop(identity), -1) for identity in leaving]
    for identity in {chance.randrange(400) for _ in range(chance.randrange(60))} - set(present):
        present[identity] = chance.randrange(1000)
        changes.append((identity, present[identity], 1))
    return changes


def test_rows_are_those_that_have_entered_and_not_left(tmp_path: Path) -> None:
    chance = random.Random(5)
    present: dict[int, int] = {}
    current = _current(tmp_path)
    for number in range(120):
        batch = _batch(number, _draw(chance, present))
        current.apply(number, batch)
        if chance.random() < 0.2:
            # Killed, and started again: the batch before is repeated.
            current = _current(tmp_path)
            current.apply(number, batch)
        assert sorted(current.snapshot()["x"].to_pylist()) == sorted(present.values())
    # What has been written does not grow for ever.
    assert len(list(tmp_path.iterdir())) < 120


def test_nothing_is_shown_behind_the_newest_tuple() -> None:
    newest = pa.scalar(5, pa.int64())
    current = CurrentResult(
        SCHEMA, ["t", "n"], ("op", "i", "j"), ["t", "n", "op", "i", "j"], newest=lambda: newest
    )
    current.apply(0, _batch(5, [(1, 10, 1), (2, 20, 1)]))
    current.apply(1, _batch(6, [(1, 10, -1)]))
    assert current.snapshot().to_pydict() == {"x": [10, 20]}
