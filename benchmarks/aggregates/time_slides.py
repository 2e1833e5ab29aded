"""Figures 6 and 7 of the ESL paper for windows in time of a stream: state and rate against the slide."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.aggregates.kernels import catalog_of, spec_of
from benchmarks.aggregates.slides import BODY, batches_of
from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.slides.figures import SLIDES, WINDOW
from millstream.codegen.udas import uda_compiler
from millstream.kernels.core.kernel import Frontier, Kernel, Tuples
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.result_types import rows_type
from millstream.kernels.specs import USER, AggregateSpec, OverSpec, SlideSpec, TimePaneSpec, WindowSpec
from millstream.kernels.udas.time_panes import TimePanes
from millstream.kernels.window_specs import SlidingWindows
from millstream.kernels.windows.window_aggregate import WindowAggregate
from millstream.types import BIGINT

ROWS, REPEATS = 1_000_000, 1
PANES, BUILT_IN, CONTENT = "panes", "built in", "content"
OVER, OVER_BUILT_IN = "panes, OVER", "built in, OVER"
FIRST = {CONTENT: 4_000, OVER: 100, OVER_BUILT_IN: 100}
"""The smallest slide at which a way is measured, if its time grows with the number of windows."""

SIZES = (4_000, 40_000, 400_000)

ABOUT = f"""\
A sum in ESL, ALGEBRAIC, over `[RANGE {WINDOW:,} SLIDE s]`, one tuple for each instant, one group, in the
kernels alone. The base version is restarted for each pane, and combines the results of panes; a window
that does not overlap others is one pane. Beside it the built-in sum, and the base version recomputed from the
content of each window. All give the same results, which is checked. With OVER, `(RANGE s PRECEDING SLIDE s)`
in time, tuples are stored, and only those at the edges of a window are aggregated again. The second table has
windows of other sizes, each with a slide of a quarter of it."""


def measure(size: Size, directory: Path) -> Section:
    batches = batches_of(size.rows)
    table = [["SLIDE", "done by", "tuples/s", "rows of state"]]
    ways = PANES, BUILT_IN, CONTENT, OVER, OVER_BUILT_IN
    rates: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    state: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for slide in SLIDES[1:]:
        sums = {}
        for way in ways:
            if slide < FIRST.get(way, 0):
                continue
            rate, rows, total = _measured(WINDOW, slide, way, batches, size)
            sums["OVER" in way, total] = way
            rates[way].append((slide, rate))
            state[way].append((slide, rows))
            table.append([f"{slide:,}", way, f"{rate:,.0f}", f"{rows:,}"])
        if len(sums) > 1 + (slide >= FIRST[OVER]):
            raise AssertionError(f"the ways give different results at SLIDE {slide}")
    sizes = [["window", "done by", "tuples/s", "rows of state"]]
    flat = []
    for window in SIZES:
        for way in (PANES, BUILT_IN):
            rate, rows, _ = _measured(window, window // 4, way, batches, size)
            sizes.append([f"{window:,}", way, f"{rate:,.0f}", f"{rows:,}"])
            flat += [(rate, rows)] if way == PANES else []
    few, many = dict(state[PANES])[10_000], dict(state[CONTENT])[10_000]
    claims = [
        Claim("figure 6: with panes, few values are left at a slide of 10,000",
              f"{few:,.0f} rows, {many:,.0f} without", few < 20),
        Claim("figure 7: with panes the rate rises with the slide",
              f"{rates[PANES][0][1]:,.0f} to {rates[PANES][-1][1]:,.0f} tuples/s",
              rates[PANES][-1][1] > rates[PANES][0][1]),
        Claim("with panes, state and time do not grow with the window's size",
              f"{flat[0][1]:,} to {flat[-1][1]:,} rows, {flat[0][0]:,.0f} to {flat[-1][0]:,.0f} tuples/s",
              flat[-1][1] <= 2 * flat[0][1] and flat[-1][0] > 0.5 * flat[0][0]),
    ]  # fmt: skip
    panels = [
        Panel("rows of state (figure 6)", "SLIDE", "rows", state, log_x=True, log_y=True),
        Panel("tuples/s (figure 7)", "SLIDE", "tuples/s", rates, log_x=True, log_y=True),
    ]
    picture = draw(panels, directory / "time_slides.png")
    title = "A sum in ESL over windows in time: memory and rate against the slide"
    return Section(
        title, ABOUT, claims, [Figures("", table), Figures("windows of other sizes", sizes)], [picture]
    )


def _measured(
    window: int, slide: int, way: str, batches: list[tuple[Tuples, Frontier]], size: Size
) -> tuple[float, int, int]:
    """Return tuples per second, rows of state, and the sum of all results."""
    _run(_kernels(window, slide, way), batches[:1])  # compile before the measurement
    runs = [_run(_kernels(window, slide, way), batches) for _ in range(size.repeats)]
    return size.rows / statistics.median(run[0] for run in runs), runs[0][1], runs[0][2]


def _kernels(window: int, slide: int, way: str) -> list[Kernel]:
    windows = SlidingWindows(window, slide)
    if way == BUILT_IN:
        total = AggregateSpec("sum", "v", "r", pa.int64())
        return [Reorder(), WindowAggregate(WindowSpec(windows, pa.int64(), (), (total,)))]
    if way == OVER_BUILT_IN:
        total = AggregateSpec("sum", "v", "r", pa.int64())
        return [Reorder(), OverAggregate((OverSpec(total, range=window - 1),), SlideSpec(time=slide))]
    catalog = catalog_of(BODY)
    program = spec_of(catalog, "total", [BIGINT], ["v"], uda_compiler.CONTENT).program
    total = AggregateSpec(USER, "v", "r", rows_type(program), parameters=(program,))
    if way == OVER:
        pane = spec_of(catalog, "total", [BIGINT], ["v"], uda_compiler.CONTENT).program
        paned = replace(total, parameters=(program, pane, slide))
        return [Reorder(), OverAggregate((OverSpec(paned, range=window - 1),), SlideSpec(time=slide))]
    if way == CONTENT:
        return [Reorder(), WindowAggregate(WindowSpec(windows, pa.int64(), (), (total,)))]
    user = replace(spec_of(catalog, "total", [BIGINT], ["v"], uda_compiler.PANE), whole="is_pane")
    panes = TimePaneSpec(user, slide, 0, -window % slide, True, (pa.int64(),))
    combined = replace(total, argument="r0", condition="is_pane")
    return [
        Reorder(),
        TimePanes((panes,), (), keeps_tuples=False),
        WindowAggregate(WindowSpec(windows, pa.int64(), (), (combined,))),
    ]


def _run(kernels: list[Kernel], batches: list[tuple[Tuples, Frontier]]) -> tuple[float, int, int]:
    """Seconds, rows of state, and the sum of all results."""
    total = 0
    start = time.perf_counter()
    for batch, frontier in batches:
        tuples = batch
        for kernel in kernels:
            tuples = kernel.process(tuples, frontier)
            kernel.snapshot()
        results = tuples.columns["r"].combine_chunks()
        if pa.types.is_list(results.type):
            results = results.flatten().field(0)
        total += int(np.asarray(results).sum())
    return time.perf_counter() - start, sum(kernel.rows for kernel in kernels), total
