"""Figure 8: joins over windows of rows: results are removed in order, or looked for as negative tuples."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.relations.by_hand import JoinByHand, worth
from benchmarks.relations.operators import Operator, join, rows
from benchmarks.relations.traces import REMOTE_HOSTS, SESSIONS, Integers, first_sessions, halves
from benchmarks.relations.waves import CYCLES, arrivals, rate_of
from millstream.kernels.column_names import OP
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.relational.changelog import Changelog

ROWS, REPEATS = SESSIONS, 1
TENTHS = (1, 5, 10, 20, 50, 100)
"""Sizes of windows, in tenths of the tuples of a cycle: 1,000 to 100,000 at the paper's size."""
BATCHES = 2
ENGINE, ORDERED, NEGATIVE = (
    "Millstream: by identity",
    "bare loops: in expiry order",
    "bare loops: negative tuples",
)
NUMBER = "duration"
"""The column in which tuples have their numbers, so that results can be told apart."""
ABOUT = f"""\
Q6 over windows of rows on both sides, with its result kept. Each cycle brings a {CYCLES}th part of the trace
to both sides; averages over {BATCHES} cycles after the windows have been filled. In Millstream a window of
rows says who leaves, a row that leaves is found by its identity in a hash table, what it was joined with
hangs on its key, and the result (as `SELECT CHANGES` has it) is told which pairs leave, by identities again.
Its time is that of all these kernels. Beside it are two compiled loops that do nothing else. One is the
paper's baseline: a tuple that leaves is joined again, and each of its results is looked for among those with
the same key, one after the other. In the other, results hang on their tuples. After the last cycle all have
the same result, which is checked."""


def measure(size: Size, directory: Path) -> Section:
    rate = rate_of(size.rows)
    sizes = [max(rate * tenths // 10, 1) for tenths in TENTHS]
    _compare(10, 20, 1)  # compile before the measurement
    found = {count: _compare(count, rate, size.repeats) for count in sizes}
    table = [
        ["tuples of a window", "results", *(f"{way}, ms" for way in WAYS), "negative / Millstream", "/ order"]
    ]
    for count, (results, seconds) in found.items():
        times = [seconds[way] for way in WAYS]
        ratios = [seconds[NEGATIVE] / seconds[way] for way in (ENGINE, ORDERED)]
        shown = [f"{one * 1000:,.1f}" for one in times] + [f"{ratio:,.1f}x" for ratio in ratios]
        table.append([f"{count:,}", f"{results:,}", *shown])
    panel = Panel(
        "figure 8",
        "tuples of a window",
        "ms a cycle",
        {way: [(count, seconds[way] * 1000) for count, (_, seconds) in found.items()] for way in WAYS},
        log_x=True,
        log_y=True,
    )
    title = "Removal: expiry order against negative tuples, for joins over windows of rows"
    picture = draw([panel], directory / "removal.png")
    return Section(title, ABOUT, _claims(found), [Figures("Figure 8", table)], [picture])


def _claims(found: dict[int, tuple[int, dict[str, float]]]) -> list[Claim]:
    largest = max(found)
    seconds = found[largest][1]
    by_hand, engine = (seconds[NEGATIVE] / seconds[way] for way in (ORDERED, ENGINE))
    return [
        Claim(
            "order is better than negative tuples by more than two orders of magnitude (bare loops)",
            f"{by_hand:,.0f} times at {largest:,} tuples",
            True if by_hand >= 100 else None if by_hand > 1 else False,
        ),
        Claim(
            "Millstream's removal is better than negative tuples in bare loops",
            f"{engine:,.1f} times at {largest:,} tuples",
            engine > 1,
        ),
    ]


def _compare(count: int, rate: int, repeats: int) -> tuple[int, dict[str, float]]:
    """Return the number of results at the end, and the median seconds of a cycle for each algorithm."""
    cycles = -(-count // rate)
    trace = first_sessions(2 * rate * (cycles + BATCHES))
    left, right = (
        half.set_column(half.column_names.index(NUMBER), NUMBER, pa.array(np.arange(len(half))))
        for half in halves(trace)
    )
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    answers: dict[str, tuple[int, int]] = {}
    for _ in range(repeats):
        for way, run in WAYS.items():
            seconds, answers[way] = run(left, right, count, rate, cycles)
            times[way].append(seconds / BATCHES)
    if len(set(answers.values())) > 1:
        raise AssertionError(f"not all have the same results with {count:,} tuples: {answers}")
    return answers[ENGINE][0], {way: statistics.median(of_way) for way, of_way in times.items()}


def _engine(
    left: pa.Table, right: pa.Table, size: int, rate: int, cycles: int
) -> tuple[float, tuple[int, int]]:
    operator = _kept(size)
    found = total = 0
    for cycle, batch in enumerate(arrivals((left, right), rate)):
        if cycle == cycles:
            operator.clock = type(operator.clock)()
        change = _change(operator.feed(*batch), size)
        found, total = found + change[0], total + change[1]
    return operator.clock.operator + operator.clock.window, (found, total)


def _kept(size: int) -> Operator:
    """A join, and its result."""
    window = replace(rows(size), columns=(NUMBER, "local_host", "remote_host"))
    operator = join(window)
    names = [f"{side}_{name}" for side in "ab" for name in window.columns]
    operator.kernels.append(Changelog((None,), names, all_=True))
    return operator


def _change(out: Tuples, size: int) -> tuple[int, int]:
    ops = np.asarray(out.columns[OP]).astype(np.int64)
    places = (np.asarray(out.columns[f"{side}_{NUMBER}"]) % size for side in "ab")
    return int(ops.sum()), int((ops * worth.py_func(*places)).sum())


def _by_hand(negative: bool):  # type: ignore[no-untyped-def]
    def run(
        left: pa.Table, right: pa.Table, size: int, rate: int, cycles: int
    ) -> tuple[float, tuple[int, int]]:
        keys = _keys(left, "local_host"), _keys(right, "remote_host")
        contender = JoinByHand(size, REMOTE_HOSTS, negative=negative)
        seconds = 0.0
        for cycle in range(cycles + BATCHES):
            part = slice(cycle * rate, (cycle + 1) * rate)
            begun = time.perf_counter()
            contender.process(keys[0][part], keys[1][part])
            seconds += (time.perf_counter() - begun) * (cycle >= cycles)
        return seconds, contender.results

    return run


def _keys(table: pa.Table, name: str) -> Integers:
    return np.asarray(table[name]).astype(np.int64)


WAYS = {ENGINE: _engine, ORDERED: _by_hand(negative=False), NEGATIVE: _by_hand(negative=True)}
