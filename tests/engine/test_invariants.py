"""The invariants of the semantics for stages, by the hundred and without Spark.

Every result is compared with the reference interpreter's; micro-batches, tasks, shards and recoveries are
drawn at random, so that agreeing means batch-split, recovery, parallelism and oracle at once.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.core.kernel_errors import KernelError
from millstream.kernels.kernel_specs import KernelSpec, OverAggregatesSpec, ReorderSpec
from millstream.kernels.specs import AggregateSpec, OverSpec, SlideSpec, WindowSpec
from millstream.kernels.window_specs import SlidingWindows
from millstream.stage.pipeline import Input, Pipeline
from oracle import Overflow, answer
from tests.engine.simulation import Simulation
from tests.engine.streams import VALUES, Source, sources

NUMBERS = ("sum", "avg")
ANY = ("count", "min", "max", "first", "last")


@dataclass(frozen=True)
class Call:
    """An aggregate of v, as text and as kernels know it."""

    function: str
    sql: str
    spec: AggregateSpec


def result_type(function: str, value_type: str) -> pa.DataType:
    """Spark's."""
    kind = VALUES[value_type][0]
    match function:
        case "count":
            return pa.int64()
        case "sum" if pa.types.is_decimal(kind):
            return pa.decimal128(min(38, kind.precision + 10), kind.scale)
        case "sum":
            return pa.float64() if pa.types.is_floating(kind) else pa.int64()
        case "avg" if pa.types.is_decimal(kind):
            return pa.decimal128(min(38, kind.precision + 4), min(38, kind.scale + 4))
        case "avg":
            return pa.float64()
        case _:
            return kind


@st.composite
def calls(draw: st.DrawFn, value_type: str, number: int) -> Call:
    # The average of DECIMAL(38, 3) has fewer digits than said above: Spark's own rule is tested on Spark.
    numeric = value_type not in ("STRING", "DECIMAL(38, 3)")
    function = draw(st.sampled_from([*ANY, *NUMBERS] if numeric else ANY))
    star = function == "count" and draw(st.booleans())
    kind = result_type(function, value_type)
    spec = AggregateSpec(function, None if star else "v", f"r{number}", kind)  # type: ignore[arg-type]
    return Call(function, f"{function}({'*' if star else 'v'})", spec)


@st.composite
def over_calls(
    draw: st.DrawFn, value_type: str, partitioned: bool, slide: int | None
) -> list[tuple[str, OverSpec]]:
    found = []
    sliding = f" SLIDE {slide}" if slide else ""
    for i in range(draw(st.integers(1, 3))):
        call = draw(calls(value_type, i))
        kind = draw(st.sampled_from(["ROWS", "RANGE", "UNBOUNDED"]))
        reach = draw(st.integers(1 if kind == "RANGE" else 0, 6))
        partition = "PARTITION BY k " if partitioned else ""
        frame = {
            "ROWS": f"ROWS {reach} PRECEDING",
            "RANGE": f"RANGE {reach} PRECEDING",
            "UNBOUNDED": "ROWS UNBOUNDED PRECEDING",
        }[kind]
        spec = OverSpec(call.spec, reach if kind == "ROWS" else None, reach if kind == "RANGE" else None)
        found.append((f"{call.sql} OVER ({partition}{frame}{sliding}) AS r{i}", spec))
    return found


def stage(source: Source, kernels: tuple[KernelSpec, ...], output: pa.Schema, keyed: bool) -> Pipeline:
    names = ("k", "v", "t", "__ms_key") if keyed else ("k", "v", "t")
    shipped = pa.schema([source.schema.field(name) for name in names])
    described = Input("s", shipped, pa.int64(), source.promises, partitions=source.partitions)
    return Pipeline((described,), kernels, output, pa.int64())


def same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    """Equal, up to the last digits of doubles."""
    assert len(found) == len(expected), f"{found}\n{expected}"
    for one, other in zip(sorted(found, key=_order), sorted(expected, key=_order), strict=True):
        for a, b in zip(one, other, strict=True):
            if isinstance(a, float) and isinstance(b, float):
                assert (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9), (
                    f"{one}\n{other}"
                )
            else:
                assert a == b, f"{one}\n{other}"


def _order(row: tuple[Any, ...]) -> str:
    # Ties are in order of arrival, which rows do not show: those with the same columns are interchangeable.
    # There are two zeros, which are equal.
    return str([f"{value + 0.0:.6g}" if isinstance(value, float) else value for value in row])


@st.composite
def over_queries(draw: st.DrawFn) -> tuple[Source, str, list[OverSpec], bool, SlideSpec | None]:
    source = draw(sources(generous=False))
    partitioned = draw(st.booleans())
    slide = draw(st.none() | st.integers(1, 6))
    chosen = draw(over_calls(source.value_type, partitioned, slide))
    query = f"{source.declared('s')} SELECT k, v, t, {', '.join(sql for sql, _ in chosen)} FROM s;"
    return source, query, [spec for _, spec in chosen], partitioned, SlideSpec(slide) if slide else None


@given(over_queries(), st.lists(st.integers(0, 25), max_size=4), st.integers(1, 3), st.integers())
@settings(max_examples=100, deadline=None)
def test_over(query, cuts, shards, seed):
    source, script, specs, partitioned, slide = query
    added = [pa.field(spec.aggregate.result, spec.aggregate.type) for spec in specs]
    output = pa.schema([*(source.schema.field(name) for name in ("k", "v", "t")), *added])
    kernels = (ReorderSpec(), OverAggregatesSpec(tuple(specs), slide))
    simulation = Simulation(
        stage(source, kernels, output, partitioned),
        [source.schema],
        shards if partitioned else 1,
        random.Random(seed),
        forgetful=True,
    )
    try:
        expected = answer(script, {"s": source.for_the_oracle()}).values
    except Overflow:
        try:
            simulation.run(source.for_the_engine(), cuts)
        except KernelError:
            return
        # The oracle also considers tuples that are not yield tuples.
        assert slide is not None, "an overflow went unnoticed"
        return
    table = simulation.run(source.for_the_engine(), cuts).select(output.names)
    same([tuple(row.values()) for row in table.to_pylist()], expected)


@st.composite
def window_queries(draw: st.DrawFn) -> tuple[Source, str, WindowSpec]:
    source = draw(sources())
    grouped = draw(st.booleans())
    found = [draw(calls(source.value_type, i)) for i in range(draw(st.integers(1, 3)))]
    reach, slide = draw(st.integers(1, 9)), draw(st.integers(1, 6))
    shown = ["k"] if grouped else []
    columns = [
        *shown,
        "window_start",
        "window_end",
        "wid",
        *(f"{c.sql} AS r{i}" for i, c in enumerate(found)),
    ]
    query = (
        f"SELECT {', '.join(columns)} FROM s [RANGE {reach} SLIDE {slide}] {'GROUP BY k' if grouped else ''};"
    )
    spec = WindowSpec(SlidingWindows(reach, slide), pa.int64(), tuple(shown), tuple(c.spec for c in found))
    return source, f"{source.declared('s')} {query}", spec


@given(window_queries(), st.lists(st.integers(0, 25), max_size=4), st.integers(1, 3), st.integers())
@settings(max_examples=100, deadline=None)
def test_windows(query, cuts, shards, seed):
    source, script, spec = query
    edges = [pa.field(name, pa.int64()) for name in ("window_start", "window_end", "wid")]
    keys = [source.schema.field(name) for name in spec.group_by]
    output = pa.schema([*keys, *edges, *(pa.field(a.result, a.type) for a in spec.aggregates)])
    simulation = Simulation(
        stage(source, (spec,), output, bool(keys)),
        [source.schema],
        shards if keys else 1,
        random.Random(seed),
        forgetful=True,
    )
    try:
        expected = answer(script, {"s": source.for_the_oracle()}).values
    except Overflow:
        try:
            simulation.run(source.for_the_engine(), cuts)
        except KernelError:
            return
        raise AssertionError("an overflow went unnoticed") from None
    table = simulation.run(source.for_the_engine(), cuts).select(output.names)
    same([tuple(row.values()) for row in table.to_pylist()], expected)
