"""Cost of a tuple against the size of its window, for every kind of window: it should be flat."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.windows.chains import AT_ONCE, batches, timed
from benchmarks.windows.disorder import Integers
from millstream.kernels.core.kernel import Kernel
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.specs import AggregateSpec, OverSpec, SlideSpec, WindowSpec
from millstream.kernels.window_specs import (
    LandmarkWindows,
    RowWindows,
    SessionOrPredicateWindows,
    SlidingWindows,
    TupleSlideWindows,
)
from millstream.kernels.windows.window_aggregate import WindowAggregate
from millstream.kernels.windows.window_assigner import WindowAssigner

ROWS, REPEATS = 1_000_000, 3
SLIDE = 10
SIZES = (40, 400, 4_000, 40_000)
"""Tuples in a window, which is 4 to 4,000 slides."""

DOUBLE = pa.float64()
AGGREGATES = {
    "sum": AggregateSpec("sum", "v", "r", DOUBLE),
    "max": AggregateSpec("max", "v", "r", DOUBLE),
    "median": AggregateSpec("percentile", "v", "r", DOUBLE, parameters=(0.5,)),
}
SLOWER = {"median": 10}
"""Aggregates for which so many times fewer rows are enough."""

ALLOWED = 1.5
ABOUT = f"""\
Kernels alone, one key, tuples one unit of time apart, in batches of {AT_ONCE:,}. SLIDE is {SLIDE} tuples
throughout, and windows have from {SIZES[0]} to {SIZES[-1]:,} tuples: a ratio of 4 to 4,000. Windows are
full before the clock starts. A landmark window has no size, so it begins that many tuples before.
Sessions have as many tuples as the size says. OVER has a result for every tuple, the others for every
{SLIDE}th; sessions one each. Sums are of doubles. Medians, with a tenth of the rows, are kept in a
balanced tree and may grow with the logarithm of the size."""

Kind = Callable[[int, AggregateSpec], list[Kernel]]


def _brackets(placing: Callable[[int], Callable[[], WindowAssigner]], *, in_order: bool = True) -> Kind:
    def make(size: int, aggregate: AggregateSpec) -> list[Kernel]:
        windows = WindowAggregate(WindowSpec(placing(size), pa.int64(), (), (aggregate,)))
        return [Reorder(), windows] if in_order else [windows]

    return make


def _over(reach: Callable[[int], dict[str, int]], slide: int | None = None) -> Kind:
    def make(size: int, aggregate: AggregateSpec) -> list[Kernel]:
        slides = None if slide is None else SlideSpec(rows=slide)
        return [Reorder(), OverAggregate((OverSpec(aggregate, **reach(size)),), slides)]

    return make


KINDS: dict[str, Kind] = {
    "RANGE SLIDE": _brackets(lambda size: SlidingWindows(size, SLIDE), in_order=False),
    "ROWS SLIDE": _brackets(lambda size: RowWindows(size, SLIDE)),
    "RATTR, SLIDE by tuple": _brackets(lambda size: TupleSlideWindows(size, SLIDE, by_rank=True)),
    "LANDMARK SLIDE": _brackets(lambda size: LandmarkWindows(start=0, slide=SLIDE), in_order=False),
    "SESSION": _brackets(lambda size: SessionOrPredicateWindows(gap=2)),
    "OVER ROWS": _over(lambda size: {"rows": size - 1}),
    "OVER RANGE": _over(lambda size: {"range": size - 1}),
    "OVER ROWS SLIDE": _over(lambda size: {"rows": size - 1}, slide=SLIDE),
}


def measure(size: Size, directory: Path) -> Section:
    seconds: dict[tuple[str, str], list[float]] = {}
    for function in AGGREGATES:
        rows = size.rows // SLOWER.get(function, 1)
        for kind in KINDS:
            _run(kind, function, SIZES[0], 2 * AT_ONCE)  # compile before the measurement
            runs = [[_run(kind, function, tuples, rows) for tuples in SIZES] for _ in range(size.repeats)]
            seconds[kind, function] = [
                statistics.median(of_size) / rows for of_size in zip(*runs, strict=True)
            ]
    tables = [_table(function, seconds) for function in AGGREGATES]
    panels = [
        Panel(
            f"{function}: cost of a tuple",
            "tuples in a window",
            "ns",
            {
                kind: [(size, each * 1e9) for size, each in zip(SIZES, seconds[kind, function], strict=True)]
                for kind in KINDS
            },
            log_x=True,
        )
        for function in AGGREGATES
    ]
    title = "Growth of cost with the size of the window, for each kind"
    return Section(title, ABOUT, _claims(seconds), tables, [draw(panels, directory / "kinds.png")])


def _run(kind: str, function: str, size: int, rows: int) -> float:
    """Seconds for so many rows, after the window has been filled."""
    times = _times(kind, size, size + rows)
    values = np.random.default_rng(4).normal(100, 5, len(times))
    chain = KINDS[kind](size, AGGREGATES[function])
    timed(chain, batches(times[:size], values[:size]))
    return timed(chain, list(batches(times, values, first=size)))


def _times(kind: str, size: int, count: int) -> Integers:
    """One unit apart; where sessions are wanted, with a pause after each."""
    times = np.arange(count)
    return times + 10 * (times // size) if kind == "SESSION" else times


def _table(function: str, seconds: dict[tuple[str, str], list[float]]) -> Figures:
    rows = [[f"{function}, ns a tuple", *(f"{size:,}" for size in SIZES), f"{SIZES[-1]:,} / {SIZES[0]}"]]
    for kind in KINDS:
        each = seconds[kind, function]
        rows.append([kind, *(f"{one * 1e9:,.0f}" for one in each), f"{each[-1] / each[0]:.2f}x"])
    return Figures("", rows)


def _claims(seconds: dict[tuple[str, str], list[float]]) -> list[Claim]:
    claims = []
    for function in AGGREGATES:
        grown = {kind: seconds[kind, function][-1] / seconds[kind, function][0] for kind in KINDS}
        if function == "sum":
            mine = grown["RANGE SLIDE"]
            claims.append(
                Claim(
                    f"RANGE / SLIDE of 4,000 costs at most {ALLOWED} times a ratio of 4 (sum, kernel)",
                    f"{mine:.2f} times",
                    mine <= ALLOWED,
                )
            )
        claims.append(
            Claim(
                f"the cost of {function} does not grow with the window, in any kind",
                f"largest: {_largest(grown)}",
                None if function in SLOWER else max(grown.values()) <= ALLOWED,
            )
        )
    return claims


def _largest(grown: dict[str, float], shown: int = 2) -> str:
    most: Sequence[str] = sorted(grown, key=lambda kind: -grown[kind])[:shown]
    return ", ".join(f"{kind} {grown[kind]:.2f} times" for kind in most)
