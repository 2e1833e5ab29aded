"""Timestamps that Python's datetime cannot hold: before the year 1, and after the year 9999."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from millstream.kernels.kernel_specs import ReorderSpec
from millstream.kernels.specs import AggregateSpec, WindowSpec
from millstream.kernels.window_specs import SlidingWindows
from millstream.progress.disorder_clauses import InOrder, Promises, RowSlack
from millstream.runtime.results.materialized_result import latest
from millstream.stage.pipeline import TIME, Input, Pipeline
from millstream.stage.shard import time_for_people
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.chains import course
from tests.engine.simulation import Simulation
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

DAY = 86_400_000_000
YEAR_12345 = 327_403_382_400_000_000
BEFORE_YEAR_1 = -62_135_596_800_000_001
KINDS = {
    "timestamp": (pa.timestamp("us", "UTC"), [BEFORE_YEAR_1, 0, YEAR_12345]),
    "timestamp_ntz": (pa.timestamp("us"), [BEFORE_YEAR_1, 0, YEAR_12345]),
    "date": (pa.date32(), [-800_000, 0, 3_000_000]),
}
NEWEST = {
    "timestamp": "+12345-01-01T00:00:00+00:00",
    "timestamp_ntz": "+12345-01-01T00:00:00",
    "date": "+10183-09-21",
}


def simulation(kind: pa.DataType, promises: Promises, kernels, output: pa.Schema) -> Simulation:
    source = Input("s", pa.schema([("v", pa.int64())]), kind, promises)
    pipeline = Pipeline((source,), kernels, output, kind, marked=True)
    return Simulation(pipeline, [pa.schema([("v", pa.int64()), (TIME, kind)])], 1, random.Random(1), True)


def arrivals(name: str):
    kind, numbers = KINDS[name]
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    times = pa.array(numbers, whole).cast(kind)
    return kind, [(0, 0, {"v": i, TIME: times[i]}) for i in range(len(numbers))]


@pytest.mark.parametrize("clause", [InOrder(), InOrder(5), RowSlack(1)], ids=str)
@pytest.mark.parametrize("name", KINDS)
def test_a_stage_passes_them(name: str, clause) -> None:
    kind, rows = arrivals(name)
    output = pa.schema([("v", pa.int64())])
    found = simulation(kind, Promises((clause,)), (ReorderSpec(),), output).run(rows, [1, 2])
    assert found["v"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("name", KINDS)
def test_windows_over_them(name: str) -> None:
    kind, rows = arrivals(name)
    count = AggregateSpec("count", None, "n", pa.int64())
    spec = WindowSpec(SlidingWindows(10 * DAY, 10 * DAY), kind, (), (count,))
    output = pa.schema([("window_end", kind), ("n", pa.int64())])
    found = simulation(kind, Promises((InOrder(),)), (spec,), output).run(rows, [2])
    assert found["n"].to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("name", KINDS)
def test_the_newest_is_reported_as_text(name: str) -> None:
    kind, numbers = KINDS[name]
    newest = numbers[-1] * (DAY if name == "date" else 1)
    assert time_for_people(newest, kind) == NEWEST[name]
    whole = pa.int32() if name == "date" else pa.int64()
    assert latest([NEWEST[name], NEWEST[name]], kind).cast(whole).as_py() == numbers[-1]


LAST = 2**63 - 2
OUTERMOST = {
    "SELECT count(*) AS c FROM b [NOW]": [(1 - 2**63, 1), (0, 1), (LAST, 1)],
    "SELECT DISTINCT n FROM b [NOW]": [(1 - 2**63, 3), (0, 4), (LAST, 5)],
    # A tuple that would leave after the last instant never does.
    "SELECT DSTREAM n FROM b [NOW]": [(2 - 2**63, 3), (1, 4)],
    "SELECT sum(n) AS s FROM b [RANGE 5]": None,
    "SELECT CHANGES n FROM b [RANGE 5]": None,
    "SELECT n, count(*) OVER (RANGE 1 PRECEDING ACTIVE EXPIRATION) AS c FROM b": None,
}


@pytest.mark.parametrize("query", OUTERMOST)
def test_the_outermost_integers_are_no_timestamps(query: str) -> None:
    times = [-(2**63), -(2**63), 1 - 2**63, 0, LAST, LAST + 1]
    rows = [Row({"n": n, "t": time}) for n, time in enumerate(times, 1)]
    inputs = {"b": Arrivals([rows])}
    plan = planned(f"CREATE STREAM b (n BIGINT, t BIGINT) ORDER BY t;\n{query};")
    answer = interpreted(plan, inputs)
    expected = [(row.time, *row.values) for row in answer.rows]
    assert len(answer.bad["b"]) == 3
    if OUTERMOST[query] is not None:
        same(expected, OUTERMOST[query])
    for seed in range(3):
        chance = random.Random(seed)
        same(simulated.run(plan, inputs, chance, course(chance)), expected)


def test_slots_before_the_first_punctuation() -> None:
    """The slot of the smallest instant begins before it, where no instant is."""
    plan = planned(
        "CREATE STREAM s (n INT, p BOOLEAN, t INT) ORDER BY t PUNCTUATED BY (p);"
        "CREATE STREAM d AS SELECT sum(n) OVER (RANGE 3 PRECEDING SLIDE RANGE 3) AS n FROM s;"
        "SELECT sum(n) AS n FROM d [TUMBLE 3];"
    )
    rows = [Row({"n": 1, "p": False, "t": t}) for t in (1, 2, 4)]
    restarted = simulated.Course(3, 1, restarts=frozenset({1, 2}))
    assert simulated.run(plan, {"s": Arrivals([rows])}, random.Random(0), restarted) == [(3, 2), (6, 3)]
