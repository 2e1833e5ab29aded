"""Benchmarks of what is maintained: the made trace, the joins by hand, and every part at a tiny size."""

from __future__ import annotations

import importlib
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from benchmarks.engine import answers
from benchmarks.engine.data import Shape, columns
from benchmarks.experiments.section import Section, Size
from benchmarks.relations.by_hand import JoinByHand
from benchmarks.relations.operators import join, rows
from benchmarks.relations.traces import PROTOCOLS, SCHEMA, first_sessions, halves, most_frequent, sessions
from benchmarks.relations.waves import arrivals, sides_of
from millstream.kernels.column_names import OP


def test_a_trace_is_the_same_whenever_it_is_made() -> None:
    trace = sessions(1_000)
    assert trace.schema == SCHEMA
    assert trace.equals(sessions(1_000))
    assert not trace.equals(sessions(1_000, seed=1))


def test_a_trace_has_the_shape_of_the_papers() -> None:
    trace = first_sessions(50_000)
    times = np.asarray(trace["timestamp"])
    assert len(trace) == 50_000
    assert (np.diff(times) >= 0).all()
    assert set(trace["protocol"].unique().to_pylist()) == set(PROTOCOLS)
    for name in ("local_host", "remote_host"):
        counts = np.sort(np.bincount(np.asarray(trace[name])))[::-1]
        assert counts[0] > 0.03 * len(trace), "some hosts are in very many sessions"
        assert counts[: len(counts) // 10].sum() > 0.5 * len(trace), "and few of them in most"
    assert trace["bytes_sent"].null_count == trace["bytes_received"].null_count > 0
    conversations = trace.group_by(["protocol", "local_host", "remote_host"]).aggregate([])
    assert len(conversations) < 0.7 * len(trace), "hosts talk again"


def test_halves_and_protocols_of_a_trace() -> None:
    trace = first_sessions(1_001)
    left, right = halves(trace)
    assert len(left) == len(right) == 500
    assert left.slice(1, 1).equals(trace.slice(2, 1))
    assert right.slice(1, 1).equals(trace.slice(3, 1))
    assert set(most_frequent(trace, 2)["protocol"].to_pylist()) == set(list(PROTOCOLS)[:2])


@pytest.mark.parametrize("negative", [False, True])
def test_joins_by_hand_have_the_pairs_of_two_windows(negative: bool) -> None:
    random = np.random.default_rng(3)
    left, right = random.integers(0, 5, 200), random.integers(0, 5, 200)
    contender = JoinByHand(12, 5, negative=negative, room=16)
    windows: tuple[deque[int], deque[int]] = deque(maxlen=12), deque(maxlen=12)
    for start in range(0, 200, 7):
        part = slice(start, start + 7)
        contender.process(left[part], right[part])
        for one, other in zip(left[part], right[part], strict=True):
            windows[0].append(one)
            windows[1].append(other)
        assert contender.results[0] == sum(a == b for a in windows[0] for b in windows[1])


def test_the_kernels_of_a_join_over_rows_have_the_pairs_of_two_windows() -> None:
    operator = join(rows(30))
    left, right = sides_of(operator, first_sessions(1_200))
    changed = sum(
        int(np.asarray(operator.feed(*batch).columns[OP]).sum()) for batch in arrivals((left, right), 50)
    )
    hosts = left["local_host"].to_pylist()[-30:], right["remote_host"].to_pylist()[-30:]
    assert changed == sum(a == b for a in hosts[0] for b in hosts[1])


def test_the_pairs_that_contestants_should_find() -> None:
    shape = Shape(rows=300, keys=3, seconds=200)
    (k, ts, v), (other_k, other_ts, other_v) = columns(shape), columns(shape.other)
    near = np.abs(ts[:, None] - other_ts[None, :]) < np.timedelta64(60, "s")
    products = (v[:, None] * other_v[None, :])[near & (k[:, None] == other_k[None, :])]
    found = answers._join(shape)
    assert found.results == len(products)
    assert found.total == pytest.approx(products.sum())
    assert found.squares == pytest.approx((products**2).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "count"),
    [("sliding", 2_000), ("counted", 2_000), ("removal", 4_000), ("landmark", 2_000), ("state", 3_600)],
)
def test_every_part_runs(part: str, count: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    section = importlib.import_module(f"benchmarks.relations.{part}").measure(Size(count, 1), tmp_path)
    assert Section.from_data(section.as_data()) == section
    assert section.claims
    assert all(len(row) == len(figures.rows[0]) for figures in section.tables for row in figures.rows)
    assert all((tmp_path / picture).exists() for picture in section.pictures)
