"""Streams that promise something about several attributes, and windows on each of them, without Spark."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.column_names import PLACED, WHOLE
from millstream.kernels.kernel_specs import ArrivalNumbersSpec, KernelSpec, ReorderSpec
from millstream.kernels.specs import AggregateSpec, WindowSpec
from millstream.kernels.window_specs import SessionOrPredicateWindows, SlidingWindows, TupleSlideWindows
from millstream.progress.disorder_clauses import Heartbeats, Promises
from millstream.stage.pipeline import (
    KEEP,
    LINE,
    PROMISE,
    STAMP,
    SUBSTREAM,
    TIME,
    Input,
    Pipeline,
    ProgressAttribute,
)
from oracle import Arrivals, Row, answer
from tests.engine.simulation import Arrival, Beat, Simulation
from tests.engine.streams import CLAUSES
from tests.engine.test_invariants import same

Rows = list[tuple[int, dict[str, Any]]]
LONG = pa.int64()

AGGREGATES = (
    AggregateSpec("count", None, "n", LONG),
    AggregateSpec("sum", "v", "s", LONG),
    AggregateSpec("first", "v", "f", pa.int32()),
    AggregateSpec("last", "v", "l", pa.int32()),
)
CALLS = "count(*) AS n, sum(v) AS s, first(v) AS f, last(v) AS l"


@dataclass(frozen=True)
class Source:
    """A stream s (k INT, v INT, t BIGINT, a BIGINT, p BOOLEAN, q BOOLEAN), ordered by t.

    Rows with p are promises about t and those with q about a, where such promises are made.
    """

    clauses: tuple[str, str]
    promises: tuple[Promises, Promises]
    arrivals: Rows

    @property
    def declared(self) -> str:
        on_time, beside = self.clauses
        reading = "USING csv OPTIONS (path 'x.csv')"
        columns = "k INT, v INT, t BIGINT, a BIGINT, p BOOLEAN, q BOOLEAN"
        return f"CREATE STREAM s ({columns}) ORDER BY t {reading} {on_time} {beside};"

    @property
    def partitions(self) -> int:
        return 1 + max((partition for partition, _ in self.arrivals), default=0)

    @property
    def for_the_oracle(self) -> dict[str, Arrivals]:
        found: list[list[Row]] = [[] for _ in range(self.partitions)]
        for partition, row in self.arrivals:
            found[partition].append(Row(row))
        return {"s": Arrivals(found)}

    def for_the_engine(self, on: str) -> list[Arrival]:
        punctuated = ["PUNCTUATED" in clause for clause in self.clauses]
        return [(0, partition, self._packed(row, on, punctuated)) for partition, row in self.arrivals]

    def _packed(self, row: dict[str, Any], on: str, punctuated: list[bool]) -> dict[str, Any]:
        marks = [mark and row[name] for mark, name in zip(punctuated, "pq", strict=True)]
        beside = {f"{LINE}0": row["a"]} if on == "t" else {STAMP: row["t"]}
        return {
            **{name: row[name] for name in "kvta"},
            **beside,
            "__ms_key": row["k"],
            TIME: row[on],
            KEEP: not any(marks),
            PLACED: row["a"] is not None,
            SUBSTREAM: str(row["k"]),
            f"{SUBSTREAM}0": str(row["k"]),
            PROMISE: marks[0],
            f"{PROMISE}0": marks[1],
        }

    def schema(self, on: str) -> pa.Schema:
        numbers = [*"ta", TIME, "__ms_key", f"{LINE}0" if on == "t" else STAMP]
        fields = [("k", pa.int32()), ("v", pa.int32()), *((name, LONG) for name in numbers)]
        fields += [(name, pa.string()) for name in (SUBSTREAM, f"{SUBSTREAM}0")]
        fields += [(name, pa.bool_()) for name in (KEEP, PLACED, PROMISE, f"{PROMISE}0")]
        return pa.schema(fields)

    def input(self, on: str, *names: str) -> Input:
        """Return the input of a stage with windows on t or on a."""
        shipped = pa.schema([self.schema(on).field(name) for name in names])
        on_time, beside = self.promises
        if on == "t":
            others = (ProgressAttribute("a", f"{LINE}0", LONG, beside, "0"),)
            return Input("s", shipped, LONG, on_time, partitions=self.partitions, others=others)
        others = (ProgressAttribute(None, STAMP, LONG, on_time),)
        return Input(
            "s", shipped, LONG, beside, partitions=self.partitions, attribute="a", suffix="0", others=others
        )


@st.composite
def sources(draw: st.DrawFn, partitions: int = 2) -> Source:
    on_time, beside = draw(st.sampled_from(CLAUSES)), draw(st.sampled_from(CLAUSES))
    text = beside[0].replace("(p)", "(q)")
    row = st.fixed_dictionaries(
        {
            "k": st.none() | st.integers(0, 2),
            "v": st.none() | st.integers(-9, 9),
            "t": st.integers(-6, 24),
            "a": st.none() | st.integers(-6, 24),
            "p": st.sampled_from([False, False, True]),
            "q": st.sampled_from([False, False, True]),
        }
    )
    arrivals = draw(st.lists(st.tuples(st.integers(0, partitions - 1), row), max_size=25))
    if draw(st.booleans()):
        # Mostly in order, so that not nearly everything is late.
        arrivals = sorted(arrivals, key=lambda arrival: arrival[1]["t"])
        for i, (_, row_) in enumerate(arrivals):
            row_["a"] = None if row_["a"] is None else i + row_["a"] // 4
    if {partition for partition, _ in arrivals} == {1}:
        arrivals = [(0, row_) for _, row_ in arrivals]
    promises = [
        Promises((*parts, Heartbeats()) if said else (), generous)
        for said, parts, generous in (on_time, beside)
    ]
    if not on_time[0]:
        promises[0] = Promises((*on_time[1], Heartbeats()))
    return Source((on_time[0], f"{text} ON a" if text else ""), (promises[0], promises[1]), arrivals)


cuts = st.lists(st.integers(0, 25), max_size=4)


@given(sources(), st.sampled_from("ta"), cuts, st.integers(1, 3), st.integers())
@settings(max_examples=150, deadline=None)
def test_a_tuple_is_late_if_it_breaks_any_promise(source, on, cuts, shards, seed):
    expected = answer(f"{source.declared} SELECT k, v, t, a FROM s;", source.for_the_oracle)
    # What has no value in the attribute of the windows is in none, but is counted like any other.
    late = sorted((row[:4] for row in expected.late["s"] if row[3] is not None or on == "t"), key=str)
    whole = source.input(on, "k", "v", "t", "a", "__ms_key")
    output = pa.schema([whole.columns.field(name) for name in "kvta"])
    pipeline = Pipeline((whole,), (), output, LONG, late=True)
    simulation = Simulation(pipeline, [source.schema(on)], shards, random.Random(seed), forgetful=True)
    table = simulation.run(source.for_the_engine(on), cuts)
    assert sorted((tuple(row.values()) for row in table.select(list("kvta")).to_pylist()), key=str) == late


def run(
    source: Source,
    on: str,
    kernels: tuple[KernelSpec, ...],
    keys: list[str],
    cuts: list[int],
    shards: int,
    seed: int,
    generous: bool,
) -> list[tuple[Any, ...]]:
    """The results of windows on an attribute, with their ends."""
    placed = [PLACED] if any(isinstance(kernel, ArrivalNumbersSpec) for kernel in kernels) else []
    given_ = source.input(on, *keys, "v", *(["__ms_key"] if keys else []), *placed)
    given_ = given_ if generous else given_.without_generosity()
    columns = [*(pa.field(key, pa.int32()) for key in keys), pa.field("window_end", LONG)]
    output = pa.schema([*columns, *(pa.field(spec.result, spec.type) for spec in AGGREGATES)])
    simulation = Simulation(
        Pipeline((given_,), kernels, output, LONG),
        [source.schema(on)],
        shards,
        random.Random(seed),
        forgetful=True,
    )
    table = simulation.run(source.for_the_engine(on), cuts)
    assert table.column(TIME).to_pylist() == table.column("window_end").to_pylist()
    return [tuple(row.values()) for row in table.select(output.names).to_pylist()]


@given(
    sources(),
    st.sampled_from("ta"),
    st.booleans(),
    st.integers(1, 9),
    st.integers(1, 6),
    cuts,
    st.integers(1, 3),
    st.integers(),
)
@settings(max_examples=150, deadline=None)
def test_sliding_windows_on_any_attribute(source, on, grouped, reach, slide, cuts, shards, seed):
    keys = ["k"] if grouped else []
    shown = ", ".join([*keys, "window_end", CALLS])
    grouping = "GROUP BY k" if grouped else ""
    query = f"SELECT {shown} FROM s [RANGE {reach} SLIDE {slide} WATTR {on}] {grouping};"
    spec = WindowSpec(SlidingWindows(reach, slide), LONG, tuple(keys), AGGREGATES)
    kernels = (spec,)
    found = run(source, on, kernels, keys, cuts, shards if grouped else 1, seed, generous=True)
    same(found, answer(f"{source.declared} {query}", source.for_the_oracle).values)


@given(sources(), st.sampled_from("ta"), st.integers(1, 6), cuts, st.integers())
@settings(max_examples=80, deadline=None)
def test_sessions_on_any_attribute(source, on, gap, cuts, seed):
    query = f"SELECT window_end, {CALLS} FROM s [SESSION GAP {gap} WATTR {on}];"
    spec = WindowSpec(SessionOrPredicateWindows(gap, None, WHOLE, True), LONG, (), AGGREGATES)
    kernels = (ReorderSpec(), spec)
    found = run(source, on, kernels, [], cuts, 1, seed, generous=False)
    same(found, answer(f"{source.declared} {query}", source.for_the_oracle).values)


@given(sources(partitions=1), st.integers(1, 9), st.integers(1, 4), cuts, st.integers())
@settings(max_examples=80, deadline=None)
def test_every_so_many_arrivals_end_a_window_and_those_without_a_place_count(
    source, reach, every, cuts, seed
):
    query = f"SELECT window_end, {CALLS} FROM s [RANGE {reach} RATTR a SLIDE {every} ROWS SATTR row_num];"
    spec = WindowSpec(TupleSlideWindows(reach, every, False, WHOLE), LONG, (), AGGREGATES)
    kernels = (ArrivalNumbersSpec(every, WHOLE), ReorderSpec(), spec)
    found = run(source, "a", kernels, [], cuts, 1, seed, generous=False)
    same(found, answer(f"{source.declared} {query}", source.for_the_oracle).values)


@pytest.mark.parametrize(("on", "closed"), [("a", [10]), (None, [])])
def test_a_heartbeat_is_about_the_attribute_that_it_names(on, closed):
    rows = [(0, {"k": 1, "v": 1, "t": 1, "a": 3, "p": False, "q": False})]
    beats = Promises((Heartbeats(),))
    source = Source(("", "SLACK 100 ON a"), (beats, beats), rows)
    spec = WindowSpec(SlidingWindows(10, 10), LONG, (), AGGREGATES)
    output = pa.schema([("window_end", LONG), *((a.result, a.type) for a in AGGREGATES)])
    pipeline = Pipeline((source.input("a", "v"),), (spec,), output, LONG)
    simulation = Simulation(pipeline, [source.schema("a")])
    arrivals = [*source.for_the_engine("a"), Beat(0, 15, on)]
    assert simulation.run(arrivals, ended=False).column("window_end").to_pylist() == closed
