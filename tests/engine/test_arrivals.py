"""Late tuples in a stage, independent of micro-batches, tasks and shards."""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.stage.pipeline import Input, Pipeline
from oracle import Arrivals, Row, answer
from tests.engine import simulated
from tests.engine.simulation import Simulation
from tests.engine.streams import Source, sources
from tests.physical.planning import planned


def pipeline(*inputs: Source, late: bool = False) -> Pipeline:
    shipped = pa.schema([inputs[0].schema.field(name) for name in ("k", "v", "t", "__ms_key")])
    described = tuple(
        Input(f"s{i}", shipped, pa.int64(), s.promises, partitions=s.partitions) for i, s in enumerate(inputs)
    )
    output = pa.schema([shipped.field(name) for name in ("k", "v", "t")])
    return Pipeline(described, (), output, pa.int64(), late)


def rows(table: pa.Table) -> list[str]:
    """In an order of their own; texts, because NaN is not equal to itself."""
    return sorted(str(tuple(row.values())) for row in table.select(["k", "v", "t"]).to_pylist())


@given(sources(("INT", "STRING")), st.lists(st.integers(0, 25), max_size=5), st.integers(1, 3), st.randoms())
@settings(max_examples=150, deadline=None)
def test_the_oracle_finds_the_same_tuples_late(source, cuts, shards, chance):
    expected = answer(f"{source.declared('s0')} SELECT k, v, t FROM s0;", {"s0": source.for_the_oracle()})
    for late, wanted in ((False, expected.values), (True, [(k, v, t) for k, v, t, _ in expected.late["s0"]])):
        if source.promises.generous and not late:
            continue
        simulation = Simulation(
            pipeline(source, late=late),
            [source.schema],
            shards,
            random.Random(chance.random()),
            forgetful=True,
        )
        assert rows(simulation.run(source.for_the_engine(), cuts)) == sorted(map(str, wanted))


def test_a_window_waits_for_a_source_partition_that_has_not_spoken() -> None:
    script = "CREATE STREAM s (v INT, t INT) ORDER BY t; SELECT count(*) FROM s [TUMBLE 10];"
    both = [Row({"v": 1, "t": 1}), Row({"v": 2, "t": 25})], [Row({"v": 3, "t": 5}), Row({"v": 4, "t": 15})]
    for partitions, expected in (((both[0], []), []), (both, [(10, 2)])):
        for seed in range(5):
            inputs = {"s": Arrivals([list(partition) for partition in partitions])}
            found = simulated.run(planned(script), inputs, random.Random(seed), ended=False)
            assert found == expected
