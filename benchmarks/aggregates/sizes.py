"""Figures 4 and 5 of the ESL paper: an average, and frequencies of items, against the size of the window."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.aggregates.by_hand import AverageByHand, FrequencyByHand
from benchmarks.aggregates.hashed_by_hand import FrequencyWithHashTables
from benchmarks.aggregates.kernels import base, catalog_of, over_rows
from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.windows.chains import AT_ONCE, Batch, process, timed
from millstream.catalog import Catalog
from millstream.kernels.core.kernel import Frontier, Kernel, Tuples
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.specs import AggregateSpec, OverSpec
from millstream.types import BIGINT

ROWS, REPEATS = 1_000_000, 3
WINDOWS = (100, 1_000, 10_000, 100_000)
SCANNED = 100_000_000
"""Tuples that the naive way may look at in all: beyond that it gets fewer of them."""

AGREEING = 2_000
"""Tuples of which all ways must have the same results."""

FACTORS = np.array([7919, 104729, 15487])
SLOTS = 1021
EXPIRE, BY_HAND, OWN, NAIVE, PYTHON = (
    "A: ESL with EXPIRE",
    "B: by hand",
    "C: ESL, deltas without EXPIRE",
    "D: ESL, naive",
    "E: a class in Python",
)
BUILT_IN = "built in"
HASHED = "by hand, with hash tables"
HERE = Path(__file__).parent
ABOUT = f"""\
The kernels alone, one partition, `OVER (ROWS n - 1 PRECEDING)`, batches of {AT_ONCE:,} tuples as arrow
tables, and after each batch the question what of the state changed. By hand means a compiled loop for this
one aggregate with a ring for its tuples, as one would write it in C, but with what is asked of every kernel:
any number of partitions, NULLs and sums that do not fit; deltas without EXPIRE means a base
aggregate that keeps a window of its own in a table. Items are drawn from 5,000 by Zipf's law; their
frequencies are the least count of three hash tables with {SLOTS:,} slots each. For these B has arrays, as it
knows the slots; the same loop with hash tables stands beside it, which is what the query asks for. All ways
give the same results, which is checked first. The naive way gets fewer tuples, at most {SCANNED:,} visits to
tuples of windows that are full."""

Make = Callable[[int], Kernel]


def measure(size: Size, directory: Path) -> Section:
    tables, panels, claims = [], [], []
    for number, title, ways, values in (
        (4, "average", _averages(), _amounts(size.rows)),
        (5, "frequent items", _frequencies(), _items(size.rows)),
    ):
        _compare(ways, values[:AGREEING])
        seconds = {way: _curve(way, make, values, size.repeats) for way, make in ways.items()}
        tables.append(_table(f"**Figure {number}, {title}**: nanoseconds for a tuple", seconds))
        panels.append(
            Panel(f"figure {number}: {title}", "tuples in the window", "ns for a tuple", _curves(seconds),
                  log_x=True, log_y=True)
        )  # fmt: skip
        claims += _claims(title, seconds)
    picture = draw(panels, directory / "sizes.png")
    return Section("Average and frequent items against the window", ABOUT, claims, tables, [picture])


def _averages() -> dict[str, Make]:
    catalog = catalog_of((HERE / "averages.esl").read_text())
    return _in_esl(catalog) | {
        BY_HAND: AverageByHand,
        PYTHON: lambda rows: over_rows(catalog, "in_python", [BIGINT], rows, ["v"]),
        BUILT_IN: lambda rows: OverAggregate(
            (OverSpec(AggregateSpec("avg", "v", "r0", pa.float64()), rows=rows - 1),), None
        ),
    }


def _frequencies() -> dict[str, Make]:
    catalog = catalog_of((HERE / "frequencies.esl").read_text())
    return _in_esl(catalog) | {
        BY_HAND: lambda rows: FrequencyByHand(rows, FACTORS, SLOTS),
        HASHED: lambda rows: FrequencyWithHashTables(rows, FACTORS, SLOTS),
    }


def _in_esl(catalog: Catalog) -> dict[str, Make]:
    return {
        EXPIRE: lambda rows: over_rows(catalog, "with_expire", [BIGINT], rows, ["v"]),
        OWN: lambda rows: base(catalog, "own_window", [BIGINT, BIGINT], ["v", "size"]),
        NAIVE: lambda rows: over_rows(catalog, "naive", [BIGINT], rows, ["v"]),
    }


def _amounts(rows: int) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 1_000, rows)


def _items(rows: int) -> np.ndarray:
    return np.random.default_rng(6).zipf(1.3, rows) % 5_000


def _batches(values: np.ndarray, window: int) -> Iterator[Batch]:
    for start in range(0, len(values), AT_ONCE):
        own = values[start : start + AT_ONCE]
        number = np.arange(start, start + len(own))
        columns = pa.table({"v": own, "size": np.full(len(own), window)})
        yield Tuples(columns, number, np.zeros(len(own), np.int32), number), Frontier(int(number[-1]), 0)


def _compare(ways: dict[str, Make], values: np.ndarray) -> None:
    """Compare the results of all, which also compiles them."""
    results = {way: process([make(50)], next(_batches(values, 50))) for way, make in ways.items()}
    right = results[BY_HAND].columns["r0"].to_numpy()
    for way, found in results.items():
        if not np.array_equal(found.columns["r0"].to_numpy(), right):
            raise AssertionError(f"{way} has other results than {BY_HAND}")


def _curve(way: str, make: Make, values: np.ndarray, repeats: int) -> dict[int, float]:
    """Seconds for a tuple, by window."""
    found = {}
    for window in WINDOWS:
        if way == NAIVE:
            found[window] = _of_full_window(make(window), values, window)
            continue
        batches = list(_batches(values, window))
        found[window] = statistics.median(timed([make(window)], batches) for _ in range(repeats)) / len(
            values
        )
    return found


def _of_full_window(kernel: Kernel, values: np.ndarray, window: int) -> float:
    """Seconds for a tuple once the window is full, from as many as there is time for."""
    count = min(len(values) - window, SCANNED // window)
    process([kernel], next(_batches(values[:window], window)))
    return timed([kernel], _batches(values[window : window + count], window)) / count


def _curves(seconds: dict[str, dict[int, float]]) -> dict[str, list[tuple[float, float]]]:
    return {way: [(n, 1e9 * here) for n, here in found.items()] for way, found in seconds.items()}


def _table(title: str, seconds: dict[str, dict[int, float]]) -> Figures:
    rows = [["window", *(f"{window:,}" for window in WINDOWS)]]
    rows += [[way, *(f"{1e9 * here:,.0f}" for here in found.values())] for way, found in seconds.items()]
    return Figures(title, rows)


def _claims(title: str, seconds: dict[str, dict[int, float]]) -> list[Claim]:
    esl = seconds[EXPIRE]
    flat = max(esl.values()) / min(esl.values())
    by_hand = statistics.geometric_mean(esl[n] / seconds[BY_HAND][n] for n in WINDOWS)
    growth = seconds[NAIVE][WINDOWS[-1]] / seconds[NAIVE][WINDOWS[0]]
    claims = [
        Claim(f"{title}: with EXPIRE the cost does not depend on the window", f"within {flat:.2f} times",
              flat <= 1.3),
        Claim(f"{title}: at most 1.2 times the kernel that is written by hand (the paper: 1.1 to 1.2)",
              f"{by_hand:.2f} times", by_hand <= 1.2),
        Claim(f"{title}: without EXPIRE it costs more",
              f"{statistics.geometric_mean(seconds[OWN][n] / esl[n] for n in WINDOWS):.2f} times",
              all(seconds[OWN][n] > esl[n] for n in WINDOWS)),
        Claim(f"{title}: the naive way grows with the window", f"{growth:,.0f} times from 100 to 100,000",
              growth > 100),
    ]  # fmt: skip
    if HASHED in seconds:
        hashed = statistics.geometric_mean(esl[n] / seconds[HASHED][n] for n in WINDOWS)
        claims.append(
            Claim(f"{title}: at most 1.2 times the kernel by hand that has hash tables too",
                  f"{hashed:.2f} times", hashed <= 1.2)
        )  # fmt: skip
    if PYTHON in seconds:
        slower = min(seconds[PYTHON][n] / esl[n] for n in WINDOWS)
        claims.append(
            Claim(f"{title}: at least 20 times as fast as a class in Python", f"{slower:.0f} times",
                  slower >= 20)
        )  # fmt: skip
    if BUILT_IN in seconds:
        ratio = statistics.geometric_mean(esl[n] / seconds[BUILT_IN][n] for n in WINDOWS)
        claims.append(
            Claim(f"{title}: at most 1.3 times the built-in kernel", f"{ratio:.2f} times", ratio <= 1.3)
        )
    return claims
