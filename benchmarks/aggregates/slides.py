"""Figures 6 and 7 of the ESL paper, with a sum in ESL: state and rate against the slide."""

from __future__ import annotations

import math
import statistics
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.aggregates.kernels import catalog_of, spec_of
from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.slides.figures import SLIDES, WINDOW
from benchmarks.windows.chains import AT_ONCE
from millstream.codegen.udas import uda_compiler
from millstream.kernels.core.kernel import Frontier, Kernel, Tuples
from millstream.kernels.specs import OverUdaSpec, PaneSpec
from millstream.kernels.udas.over_uda import OverUda
from millstream.program.program import Program
from millstream.types import BIGINT

ROWS, REPEATS = 1_000_000, 1
PANES, TUPLES = "panes and deltas", "deltas"
BODY = """
CREATE AGGREGATE total(Next BIGINT) : BIGINT ALGEBRAIC {
    TABLE state(tsum BIGINT);
    INITIALIZE : { INSERT INTO state VALUES (Next); }
    ITERATE    : { UPDATE state SET tsum = tsum + Next; }
    TERMINATE  : { INSERT INTO RETURN SELECT tsum FROM state; }
};
CREATE WINDOW AGGREGATE total(Next BIGINT) : BIGINT ALGEBRAIC {
    TABLE state(tsum BIGINT);
    TABLE inwindow(wnext BIGINT);
    INITIALIZE : { INSERT INTO state VALUES (Next); INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { UPDATE state SET tsum = tsum + Next; INSERT INTO RETURN SELECT tsum FROM state; }
    EXPIRE     : { UPDATE state SET tsum = tsum - oldest().wnext; }
};
"""
ABOUT = f"""\
A sum in ESL, ALGEBRAIC, over `(ROWS {WINDOW - 1:,} PRECEDING SLIDE s)`, one partition, in the kernel
alone. With panes the base version adds up as many tuples as divide both the window and the slide, and the
window version goes along with these sums; without them it goes along with all tuples. Both give the same
results, which is checked."""


def measure(size: Size, directory: Path) -> Section:
    batches = batches_of(size.rows)
    table = [["SLIDE", "done by", "tuples/s", "rows of state"]]
    rates: dict[str, list[tuple[float, float]]] = {PANES: [], TUPLES: []}
    state: dict[str, list[tuple[float, float]]] = {PANES: [], TUPLES: []}
    for slide in SLIDES:
        sums = {}
        for way in (PANES, TUPLES):
            _run(_kernel(slide, way), batches[:1])  # compile before the measurement
            runs = [_run(_kernel(slide, way), batches) for _ in range(size.repeats)]
            rate, rows = size.rows / statistics.median(run[0] for run in runs), runs[0][1]
            sums[way] = runs[0][2]
            rates[way].append((slide, rate))
            state[way].append((slide, rows))
            table.append([f"{slide:,}", way, f"{rate:,.0f}", f"{rows:,}"])
        if sums[PANES] != sums[TUPLES]:
            raise AssertionError(f"panes give other results at SLIDE {slide}")
    few = dict(state[PANES])[10_000]
    claims = [
        Claim("figure 6: with panes, few values are left at a slide of 10,000",
              f"{few:,.0f} rows, {dict(state[TUPLES])[10_000]:,.0f} without", few < 20),
        Claim("figure 7: with panes the rate rises with the slide",
              f"{rates[PANES][0][1]:,.0f} to {rates[PANES][-1][1]:,.0f} tuples/s",
              rates[PANES][-1][1] > rates[PANES][0][1]),
    ]  # fmt: skip
    panels = [
        Panel("rows of state (figure 6)", "SLIDE", "rows", state, log_x=True, log_y=True),
        Panel("tuples/s (figure 7)", "SLIDE", "tuples/s", rates, log_x=True, log_y=True),
    ]
    picture = draw(panels, directory / "slides.png")
    title = "A sum in ESL: memory and rate against the slide"
    return Section(title, ABOUT, claims, [Figures("", table)], [picture])


def _kernel(slide: int, way: str) -> Kernel:
    catalog = catalog_of(BODY)
    pane = math.gcd(slide, WINDOW)
    if way == TUPLES or pane == 1:
        user = spec_of(catalog, "total", [BIGINT], ["v"], uda_compiler.ROWS)
        return OverUda([OverUdaSpec(user, rows=WINDOW - 1, slide=slide)])
    user = spec_of(catalog, "total", [BIGINT], ["v"], uda_compiler.RANGE)
    filling = spec_of(catalog, "total", [BIGINT], ["v"], uda_compiler.TUMBLE).program
    assert isinstance(filling, Program)
    panes = PaneSpec(filling, pane, WINDOW // pane, slide // pane)
    return OverUda([OverUdaSpec(user, panes=panes)])


def _run(kernel: Kernel, batches: list[tuple[Tuples, Frontier]]) -> tuple[float, int, int]:
    """Seconds, rows of state, and the sum of all results."""
    total = 0
    start = time.perf_counter()
    for tuples, frontier in batches:
        total += int(np.asarray(kernel.process(tuples, frontier).columns["r0"]).sum())
        kernel.snapshot()
    return time.perf_counter() - start, kernel.rows, total


def batches_of(rows: int) -> list[tuple[Tuples, Frontier]]:
    values = np.random.default_rng(3).integers(0, 100, rows)
    batches = []
    for start in range(0, rows, AT_ONCE):
        number = np.arange(start, min(start + AT_ONCE, rows))
        columns = pa.table({"v": values[start : start + AT_ONCE]})
        batches.append((Tuples(columns, number, np.zeros(len(number), np.int32), number),
                        Frontier(int(number[-1]), 0)))  # fmt: skip
    return batches
