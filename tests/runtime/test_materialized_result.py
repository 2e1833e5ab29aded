"""The current result of a query: changes applied batch by batch, once each, also after a restart."""

import random
from pathlib import Path

import pyarrow as pa

from millstream.runtime.results.materialized_result import MaterializedResult

SCHEMA = pa.schema(
    [("x", "int64"), ("t", "int64"), ("n", "int64"), ("op", "int8"), ("i", "int64"), ("j", "int64")]
)
Change = tuple[int, int, int]
"""An identity, its row, and whether it enters or leaves."""


def _current(directory: Path | None = None) -> MaterializedResult:
    return MaterializedResult(
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


def test_changes_after_the_newest_tuple_wait_for_a_newer_one(tmp_path: Path) -> None:
    """A punctuation or a heartbeat may be ahead of the tuples, and expiries up to it must not be lost."""

    def current(newest: int | None) -> MaterializedResult:
        time = None if newest is None else pa.scalar(newest, pa.int64())
        marks, hidden = ("op", "i", "j"), ["t", "n", "op", "i", "j"]
        return MaterializedResult(SCHEMA, ["t", "n"], marks, hidden, newest=lambda: time, kept_in=tmp_path)

    for number, (newest, instant, changes, expected) in enumerate(
        [
            (5, 5, [(1, 10, 1), (2, 20, 1)], [10, 20]),
            (5, 6, [(1, 10, -1)], [10, 20]),
            (5, 7, [], [10, 20]),
            (None, 7, [], [10, 20]),
            (9, 9, [(3, 30, 1)], [20, 30]),
            (9, 10, [(2, 20, -1), (3, 30, -1)], [20, 30]),
        ]
    ):
        # Every batch is taken by a run of its own.
        result = current(newest)
        result.apply(number, _batch(instant, changes))
        assert result.snapshot()["x"].to_pylist() == expected
        assert current(newest).snapshot()["x"].to_pylist() == expected
