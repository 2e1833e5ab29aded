"""Joins of windows in the kernel: pairs when the later of the two comes, and nothing kept that has left."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from checks import check, ended, results, stream

from millstream.kernels.column_names import KEY
from millstream.kernels.core.kernel import END, Frontier, Tuples
from millstream.kernels.relational.append_only_join import SIDE, AppendOnlyJoin
from millstream.kernels.specs import AppendOnlyJoinSpec

TRACES = """
    time  number  key  __ms_side  v
    1     0       1    0          1
    2     1       2    0          2
    2     2       1    1          9
    4     3       1    0          3
    5     4       2    1          8
    6     5       1    1          7
    7     6       1    0          1
    """


def joining(left: float | None, right: float | None) -> AppendOnlyJoin:
    return AppendOnlyJoin(AppendOnlyJoinSpec((left, right), ({"a": "v"}, {"b": "v"})))


def traces() -> Tuples:
    return stream(TRACES, __ms_side=pa.int8())


def test_a_pair_comes_with_the_later_of_its_two() -> None:
    """As the oracle has it: the first left tuple leaves at 4, the first right one at 5."""
    pairs = results(joining(3, 3), (traces(), END), columns="time number a b")
    assert pairs == [(2, 2, 1, 9), (4, 3, 3, 9), (6, 5, 3, 7), (7, 6, 1, 7)]


def test_windows_may_differ() -> None:
    pairs = results(joining(0, None), (traces(), END), columns="time a b")
    assert pairs == [(4, 3, 9), (7, 1, 9), (7, 1, 7)]


def test_what_has_left_is_forgotten() -> None:
    kernel = joining(3, 3)
    kernel.process(traces(), Frontier(7, 0))
    assert kernel.rows == 3  # the left one at 7, and the right ones at 5 and 6
    kernel.process(traces().take(np.zeros(0, np.int64)), Frontier(9, 0))
    assert kernel.rows == 1
    assert kernel.snapshot().added["joined-000000000"].num_rows == 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reach", [(3, 3), (1, 5), (None, 2), (0, 4), (2.5, 4)])
def test_all_pairs_are_found(seed: int, reach: tuple[float | None, float | None]) -> None:
    chance = random.Random(seed)
    count = 40
    times = np.sort([chance.randint(0, 20) for _ in range(count)])
    sides = np.array([chance.randint(0, 1) for _ in range(count)], np.int8)
    keys = np.array([chance.randint(0, 2) for _ in range(count)])
    if isinstance(reach[0], float):
        times = times.astype(np.float64)
    columns = pa.table({KEY: keys, SIDE: sides, "v": np.arange(count)})
    tuples = Tuples(columns, times, np.zeros(count, np.int32), np.arange(count))
    batches = [
        (tuples.take(np.arange(i, min(i + 9, count))), Frontier(times[min(i + 9, count) - 1].item(), -1))
        for i in range(0, count, 9)
    ]
    found = check(lambda: joining(*reach), ended(*batches))
    expected = []
    for i in range(count):
        for j in range(i):
            size = reach[sides[j]]
            inside = size is None or times[i] - times[j] < size or times[i] == times[j]
            if sides[i] != sides[j] and keys[i] == keys[j] and inside:
                pair = (j, i) if sides[j] == 0 else (i, j)
                expected.append((times[i].item(), *pair))
    assert [(row["time"], row["a"], row["b"]) for row in found] == expected
