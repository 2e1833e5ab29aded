"""Groups of sub-streams with promises of their own, which need not wait for the others."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.specs import WindowSpec
from millstream.kernels.window_specs import SlidingWindows, SubstreamWindows
from millstream.progress.disorder_clauses import Heartbeats, OrderedPer, Promises, Punctuated
from millstream.stage.pipeline import Pipeline
from oracle import answer
from tests.engine.simulation import Simulation
from tests.engine.test_invariants import same
from tests.engine.test_lines import AGGREGATES, CALLS, LONG, Source, cuts, sources

PER = [("ORDERED PER (k)", OrderedPer()), ("PUNCTUATED BY (p) PER (k)", Punctuated(per=True))]


def simulated(source: Source, window: SlidingWindows, shards: int = 1, seed: int = 0) -> Simulation:
    whole = replace(source.input("t", "k", "v", "__ms_key"), apart=True)
    spec = WindowSpec(SubstreamWindows(window), LONG, ("k",), AGGREGATES)
    bounds = [pa.field("k", pa.int32()), pa.field("window_end", LONG)]
    output = pa.schema([*bounds, *(pa.field(a.result, a.type) for a in AGGREGATES)])
    pipeline = Pipeline((whole,), (spec,), output, LONG)
    return Simulation(pipeline, [source.schema("t")], shards, random.Random(seed), forgetful=True)


@given(
    sources(),
    st.sampled_from(PER),
    st.integers(1, 9),
    st.integers(1, 6),
    cuts,
    st.integers(1, 3),
    st.integers(),
)
@settings(max_examples=200, deadline=None)
def test_going_by_their_own_promises_groups_get_the_same_results(
    source, clause, reach, slide, cuts, shards, seed
):
    text, rule = clause
    promises = Promises((rule, Heartbeats())), source.promises[1]
    source = replace(source, clauses=(text, source.clauses[1]), promises=promises)
    query = f"SELECT k, window_end, {CALLS} FROM s [RANGE {reach} SLIDE {slide}] GROUP BY k;"
    table = simulated(source, SlidingWindows(reach, slide), shards, seed).run(
        source.for_the_engine("t"), cuts
    )
    names = ["k", "window_end", *(a.result for a in AGGREGATES)]
    found = [tuple(row.values()) for row in table.select(names).to_pylist()]
    same(found, answer(f"{source.declared} {query}", source.for_the_oracle).values)


def rows(text: str) -> list[tuple[int, dict[str, object]]]:
    """Lines of: source partition, k, t, and p where the row is a promise."""
    found = []
    for line in text.strip().splitlines():
        partition, k, t, *mark = line.split()
        time = None if t == "-" else int(t)
        row = {"k": int(k), "v": 1, "t": time, "a": None, "p": bool(mark), "q": False}
        found.append((int(partition), row))
    return found


def early(clause: str, rule: object, text: str) -> list[tuple[int, int]]:
    """The groups and ends of windows that are out though the input has not ended."""
    source = Source((clause, ""), (Promises((rule, Heartbeats())), Promises(())), rows(text))  # type: ignore[arg-type]
    table = simulated(source, SlidingWindows(10, 10)).run(source.for_the_engine("t"), ended=False)
    return sorted(zip(table["k"].to_pylist(), table["window_end"].to_pylist(), strict=True))


ORDERED = ("ORDERED PER (k)", OrderedPer())
PUNCTUATED = ("PUNCTUATED BY (p) PER (k)", Punctuated(per=True))


@pytest.mark.parametrize(
    ("clause", "arrived", "out"),
    [
        # Sub-stream 1 is at 25, and 2 has only begun: two windows of 1 are out.
        (ORDERED, "0 1 3\n0 2 4\n0 1 15\n0 1 25", [(1, 10), (1, 20)]),
        # What 1 promises in one source partition does not hold in the other.
        (ORDERED, "0 1 3\n1 1 4\n0 1 25", []),
        (ORDERED, "0 1 3\n1 1 4\n0 1 25\n1 1 12", [(1, 10)]),
        # A punctuation of 2 is nothing to 1.
        (PUNCTUATED, "0 1 3\n0 2 4\n0 2 20 p", [(2, 10)]),
        (PUNCTUATED, "0 1 3\n0 2 4\n0 2 9 p\n0 1 30 p", [(1, 10)]),
        # A sub-stream that has ended has promised everything.
        (PUNCTUATED, "0 1 3\n0 2 4\n0 2 - p", [(2, 10)]),
    ],
)
def test_a_group_comes_out_when_its_own_sub_stream_has_promised_so(clause, arrived, out):
    assert early(*clause, arrived) == out
