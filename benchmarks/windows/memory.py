"""State against the slide, for windows of 40,000 tuples: with panes it is at most a hundredth."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.windows.chains import batches, process
from millstream.kernels.core.kernel import Kernel
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.specs import AggregateSpec, OverSpec, SlideSpec, WindowSpec
from millstream.kernels.window_specs import RowWindows, SlidingWindows
from millstream.kernels.windows.window_aggregate import WindowAggregate

ROWS, REPEATS = 500_000, 1
WINDOW = 40_000
SLIDES = (1, 10, 100, 1_000, 10_000)
SUM = AggregateSpec("sum", "v", "total", pa.float64())
ABOUT = f"""\
sum(v) over windows of {WINDOW:,} tuples, one key, in the middle of a slide. Rows are those that the
kernels hold. Durable bytes are those of the chunks that a checkpoint would have, as they are in memory:
chunks are written in every batch and cleared away when much of them is dead, so there are more bytes in
them than needed. Bytes in memory are those of the kernels between two batches, pickled."""

KINDS: dict[str, Callable[[int], list[Kernel]]] = {
    "ROWS 40000 SLIDE s": lambda slide: [Reorder(), _windows(RowWindows(WINDOW, slide))],
    "RANGE 40000 SLIDE s": lambda slide: [_windows(SlidingWindows(WINDOW, slide))],
    "OVER (ROWS 39999 PRECEDING SLIDE s)": lambda slide: [
        Reorder(),
        OverAggregate((OverSpec(SUM, rows=WINDOW - 1),), SlideSpec(rows=slide)),
    ],
}


def _windows(placing) -> WindowAggregate:  # type: ignore[no-untyped-def]
    return WindowAggregate(WindowSpec(placing, pa.int64(), (), (SUM,)))


def measure(size: Size, directory: Path) -> Section:
    heading = ["", "SLIDE", "rows", "durable bytes", "bytes in memory"]
    rows = [heading]
    found: dict[str, list[tuple[int, int, int]]] = {}
    for kind, make in KINDS.items():
        found[kind] = [_state(make(slide), size.rows) for slide in SLIDES]
        for slide, numbers in zip(SLIDES, found[kind], strict=True):
            rows.append([kind, f"{slide:,}", *(f"{number:,}" for number in numbers)])
    claims = [_claim(kind, states) for kind, states in found.items()]
    panels = [
        Panel(
            title,
            "SLIDE, tuples",
            title,
            {
                kind: [(slide, max(state[place], 1)) for slide, state in zip(SLIDES, states, strict=True)]
                for kind, states in found.items()
            },
            log_x=True,
            log_y=True,
        )
        for place, title in enumerate(heading[2:])
    ]
    title = "Memory: state of a window of 40,000 tuples against its slide"
    return Section(title, ABOUT, claims, [Figures("", rows)], [draw(panels, directory / "memory.png")])


def _state(chain: Sequence[Kernel], rows: int) -> tuple[int, int, int]:
    """Rows, durable bytes and bytes in memory, at the end of a stream that stops in the middle of a slide."""
    times = np.arange(rows - SLIDES[-1] // 2)
    values = np.random.default_rng(4).normal(100, 5, len(times))
    durable: list[dict[str, int]] = [{} for _ in chain]
    for batch in batches(times, values):
        process(chain, batch)
        for kernel, chunks in zip(chain, durable, strict=True):
            change = kernel.snapshot()
            for name in change.dropped:
                chunks.pop(name, None)
            chunks.update({name: table.nbytes for name, table in change.added.items()})
    held = sum(kernel.rows for kernel in chain)
    return held, sum(sum(chunks.values()) for chunks in durable), sum(len(pickle.dumps(k)) for k in chain)


def _claim(kind: str, states: list[tuple[int, int, int]]) -> Claim:
    (rows, durable, memory), *_, (last_rows, last_durable, last_memory) = states
    return Claim(
        f"state at SLIDE 10,000 is at most a hundredth of SLIDE 1's: {kind}",
        f"{last_rows:,} rows and not {rows:,}; bytes {last_durable / durable:.4f} (durable), "
        f"{last_memory / memory:.4f} (in memory)",
        last_rows * 100 <= rows and last_durable * 100 <= durable,
    )
