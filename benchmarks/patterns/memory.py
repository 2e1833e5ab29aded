"""State of a search for a star that grows for ten million tuples, in one partition and in a thousand."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.patterns.kernels import form_of, kernel_of
from millstream.kernels.column_names import KEY
from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.patterns.pattern_match import PatternMatch

ROWS, REPEATS = 10_000_000, 1
PARTITIONS = (1, 1_000)
POINTS, BATCHES = 20, 100
STREAM = "CREATE STREAM s (k INT, t BIGINT, v DOUBLE) ORDER BY t USING parquet OPTIONS (path 's');"
MEASURES = "count(*Y), sum(*Y.v), min(*Y.v), max(*Y.v), FIRST(Y).t, LAST(Y).v"
PATTERNS = {
    "(*Y, Z)": "Y.v >= 0 AND Z.v < 0",
    "(X, *Y, Z)": "X.v >= 0 AND Y.v >= 0 AND Z.v < 0",
    "(*Y, Z), a moving average": "Y.v >= 0 AND avg(Y.v) OVER (ROWS 9 PRECEDING) >= 0 AND Z.v < 0",
}
ABOUT = f"""\
Every tuple is taken by a star, `*Y` with Y.v >= 0, of which the query wants `{MEASURES}`; the last tuple of
each partition ends it. In the kernel alone, in {BATCHES} batches, with what a stage does after each: it asks
what of the state has changed. In (X, *Y, Z) every tuple could be an X. With the moving average
the last ten values of the star are kept too. Rows are those of the state: partitions, open attempts, and
tuples that are kept. Durable bytes are those of the chunks that a checkpoint would have, as they are in
memory; a chunk is written with every batch, and all are cleared away when much in them is out of date, so
they go up and down. Bytes in memory are those of the kernel between two batches, pickled. The results are
compared with sums over the whole input."""


@dataclass(frozen=True)
class Point:
    """The state after so many tuples; durable bytes are the most since the point before."""

    tuples: int
    rows: int
    durable: int
    memory: int


def measure(size: Size, directory: Path) -> Section:
    table = [["", "partitions", "tuples", "rows", "durable bytes", "bytes in memory", "tuples/s"]]
    claims, curves = [], {}
    for name, where in PATTERNS.items():
        for partitions in PARTITIONS:
            points, rate = _along(where, name, partitions, size.rows)
            case = f"{name}, {partitions:,} partition{'s' * (partitions > 1)}"
            claims.append(_claim(case, points))
            curves[case] = points
            for point in (points[0], points[len(points) // 2], points[-1]):
                numbers = (point.tuples, point.rows, point.durable, point.memory)
                table.append([name, f"{partitions:,}", *(f"{n:,}" for n in numbers), f"{rate:,.0f}"])
    panels = [
        Panel(
            title,
            "tuples of the star, in all partitions",
            title,
            {case: [(p.tuples, getattr(p, what)) for p in points] for case, points in curves.items()},
            log_y=True,
        )
        for what, title in (("rows", "rows"), ("durable", "durable bytes"), ("memory", "bytes in memory"))
    ]
    title = "Memory: the state of a search while a star grows"
    return Section(title, ABOUT, claims, [Figures("", table)], [draw(panels, directory / "memory.png")])


def _along(where: str, name: str, partitions: int, rows: int) -> tuple[list[Point], float]:
    """The state on the way, and tuples per second without looking at it."""
    elements = name.partition(")")[0].strip("(")
    query = f"SELECT {MEASURES} FROM s PARTITION BY k AS ({elements}) WHERE {where};"
    form = form_of(STREAM + query)
    _batch(kernel_of(form), np.zeros(1, np.int64), np.ones(1))  # compile before the measurement
    kernel, chunks = kernel_of(form), dict[str, int]()
    points: list[Point] = []
    seconds, most, total = 0.0, 0, 0.0
    random = np.random.default_rng(5)
    for numbers in np.array_split(np.arange(rows), BATCHES):
        values = random.integers(0, 1000, len(numbers)) / 4
        total += float(values.sum())
        begun = time.perf_counter()
        _batch(kernel, numbers, values, partitions)
        change = kernel.snapshot()
        seconds += time.perf_counter() - begun
        for dropped in change.dropped:
            chunks.pop(dropped, None)
        chunks.update({chunk: added.nbytes for chunk, added in change.added.items()})
        most = max(most, sum(chunks.values()))
        done = int(numbers[-1]) + 1
        if done * POINTS // rows > len(points):
            points.append(Point(done, kernel.rows, most, len(pickle.dumps(kernel))))
            most = 0
    ends = _batch(kernel, np.arange(rows, rows + partitions), np.full(partitions, -1.0), partitions)
    firsts = 0 if name.startswith("(*") else partitions
    counted, summed = (float(np.asarray(ends.columns[column]).sum()) for column in ("r0", "r1"))
    if len(ends) != partitions or counted != rows - firsts or (not firsts and summed != total):
        raise AssertionError(f"{name}: {len(ends)} matches with {counted:,.0f} tuples that come to {summed}")
    return points, rows / seconds


def _batch(kernel: PatternMatch, numbers: np.ndarray, values: np.ndarray, partitions: int = 1) -> Tuples:
    keys = numbers % partitions
    columns = pa.table({KEY: keys, "k": keys.astype(np.int32), "t": numbers, "v": values})
    tuples = Tuples(columns, numbers, np.zeros(len(numbers), np.int32), numbers)
    return kernel.process(tuples, Frontier(int(numbers[-1]), 0))


def _claim(case: str, points: list[Point]) -> Claim:
    """After the first fifth, in which chunks have been cleared away once, nothing is larger than then."""
    early = points[: len(points) // 5]
    parts = []
    flat = True
    for what, title in (("rows", "rows"), ("durable", "durable bytes"), ("memory", "bytes in memory")):
        before = max(getattr(point, what) for point in early)
        after = max(getattr(point, what) for point in points)
        parts.append(f"{after:,} {title}")
        flat &= after <= before * 1.1
    return Claim(
        f"the state is flat however long the star grows: {case}", f"at most {', '.join(parts)}", flat
    )
