"""Experiment 1 of the window-id paper: the cost of windows, against buffering and against a scan."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.windows.buffering import Buckets, Buffering, Doubles
from benchmarks.windows.chains import AT_ONCE
from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.specs import AggregateSpec, WindowSpec
from millstream.kernels.window_specs import RowWindows
from millstream.kernels.windows.window_aggregate import WindowAggregate

ROWS, REPEATS = 1_000_000, 3
RANGE = 4_000
SLIDES = (1, 2, 4, 10, 20, 40, 100, 200, 400, 1_000, 2_000, 4_000)
WAYS = ("WID with cells (the engine)", "WID, a bucket for each window", "buffering")
ABOUT = """\
`max` over `[RANGE 4000 ROWS SLIDE s ROWS WATTR row_num]`, ordered data, s from 1 to 4000 (section 8.2,
table 1, figure 8). Every contender reads the same parquet file, batch by batch; the scan reads it and
looks at every value once. The engine's kernel takes arrow tables and gives arrow tables with all columns
of a result. The two others are the smallest compiled loops that do it, over bare arrays: what they do
not do, they do not pay for. All three give the same maxima, which is checked."""


def measure(size: Size, directory: Path) -> Section:
    with tempfile.TemporaryDirectory(prefix="windows-") as scratch:
        path = _write(size.rows, Path(scratch))
        for way in WAYS:
            list(_contender(way, 10)(path))  # compile before the measurement
        scans = [_timed(_scan, path)[0] for _ in range(size.repeats)]
        seconds = {slide: _compare(slide, path, size.repeats) for slide in SLIDES}
    scan = statistics.median(scans)
    return _section(seconds, scan, directory)


def _compare(slide: int, path: Path, repeats: int) -> dict[str, float]:
    """Every way in turn, and whether they agree."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(repeats):
        answers = []
        for way in WAYS:
            seconds, answer = _timed(_contender(way, slide), path)
            times[way].append(seconds)
            answers.append(answer)
        if not all(np.array_equal(answers[0], answer) for answer in answers):
            raise AssertionError(f"not all have the same maxima at SLIDE {slide}")
    return {way: statistics.median(of_way) for way, of_way in times.items()}


def _timed(contender: Callable[[Path], Iterator[Doubles]], path: Path) -> tuple[float, Doubles]:
    start = time.perf_counter()
    results = list(contender(path))
    return time.perf_counter() - start, np.concatenate(results)


def _contender(way: str, slide: int) -> Callable[[Path], Iterator[Doubles]]:
    if way == WAYS[0]:
        return lambda path: _engine(slide, path)
    plain = Buckets if way == WAYS[1] else Buffering

    def run(path: Path) -> Iterator[Doubles]:
        contender = plain(RANGE, slide)
        for batch in _read(path):
            yield contender.process(np.asarray(batch["v"]))

    return run


def _engine(slide: int, path: Path) -> Iterator[Doubles]:
    largest = AggregateSpec("max", "v", "largest", pa.float64())
    kernel = WindowAggregate(WindowSpec(RowWindows(RANGE, slide), pa.int64(), (), (largest,)))
    for batch in _read(path):
        ts = np.asarray(batch["ts"])
        tuples = Tuples(pa.table({"v": batch["v"]}), ts, np.zeros(len(ts), np.int32), ts)
        yield np.asarray(kernel.process(tuples, Frontier(int(ts[-1]), 0)).columns["largest"])


def _scan(path: Path) -> Iterator[Doubles]:
    for batch in _read(path):
        yield np.array([np.asarray(batch["ts"]).max(), np.asarray(batch["v"]).max()])


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    with parquet.ParquetFile(path) as file:
        yield from file.iter_batches(AT_ONCE)


def _write(rows: int, directory: Path) -> Path:
    """Readings in the order of their time, with the columns of the paper's traffic stream."""
    random = np.random.default_rng(2)
    columns = {
        "segment": random.integers(0, 100, rows, dtype=np.int32),
        "v": random.normal(60, 15, rows),
        "ts": np.arange(rows),
    }
    path = directory / "readings.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


def _section(seconds: dict[int, dict[str, float]], scan: float, directory: Path) -> Section:
    engine, buckets, buffering = WAYS
    table = [["SLIDE", *(f"{way}, ms" for way in WAYS), "buffering / engine", "engine / scan"]]
    for slide, times in seconds.items():
        ratio = times[buffering] / times[engine]
        table.append(
            [
                f"{slide:,}",
                *(f"{times[way] * 1000:,.0f}" for way in WAYS),
                f"{ratio:.1f}x",
                f"{times[engine] / scan:.1f}x",
            ]
        )
    ratios = {slide: times[buffering] / times[engine] for slide, times in seconds.items()}
    better = [slide for slide, ratio in ratios.items() if ratio > 1]
    paper = [slide for slide, times in seconds.items() if times[buckets] < times[buffering]]
    first, last = SLIDES[0], SLIDES[-1]
    claims = [
        Claim(
            "WID in general takes less time than buffering",
            f"the engine at {len(better)} of {len(ratios)} slides ({_listed(better)}); "
            f"WID by bare loops at {len(paper)}",
            True if len(better) == len(ratios) else None if better else False,
        ),
        Claim(
            "the more so the larger RANGE / SLIDE is",
            f"buffering takes {ratios[first]:.1f} times as long at SLIDE {first:,}, "
            f"{ratios[last]:.2f} times at {last:,}",
            ratios[first] > ratios[last],
        ),
    ]
    curves = {way: [(slide, times[way] * 1000) for slide, times in seconds.items()] for way in WAYS}
    curves["scan"] = [(slide, scan * 1000) for slide in seconds]
    zoomed = {way: [(s, t) for s, t in points if s >= 100] for way, points in curves.items()}
    panels = [
        Panel("figure 8 (a): overview", "SLIDE, rows", "ms", curves, log_x=True, log_y=True),
        Panel("figure 8 (b): zoom-in", "SLIDE, rows", "ms", zoomed),
    ]
    title = "Experiment 1 of the window-id paper: WID against buffering"
    about = f"{ABOUT} The scan took {scan * 1000:,.0f} ms."
    return Section(title, about, claims, [Figures("", table)], [draw(panels, directory / "cost.png")])


def _listed(slides: list[int]) -> str:
    return ", ".join(map(str, slides)) if slides else "none"
