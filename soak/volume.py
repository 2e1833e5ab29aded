"""Many rows through windows of every kind: all are counted, and the state stays as large as the windows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import millstream as ms
from soak.report import Finding
from tests.recovery import sinks

KEYS = 1000
PER_SECOND = 1000
FILES = 40
RANGE_SECONDS = 20
ROWS_BEFORE = 9
_FIRST = 1_767_261_600_000_000
"""2026-01-01 10:00:00 in microseconds."""
_TOLERATED = 1.1
"""How much larger the state may be at the end than after a tenth: chunks are merged now and then."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """A stream by its columns, in order."""

    k: Ints
    v: Ints
    t: Ints


def soak(directory: Path, rows: int, seed: int, say: Callable[[str], None]) -> list[Finding]:
    stream = _stream(rows, seed)
    _write(directory / "rows", stream)
    over = "SELECT k, sum(v) OVER (PARTITION BY k"
    range_ = f"ORDER BY t RANGE INTERVAL {RANGE_SECONDS} SECONDS PRECEDING) AS s FROM r"
    window = f"SELECT k, sum(v) AS s FROM r [RANGE {RANGE_SECONDS} SECONDS SLIDE 1 SECOND] GROUP BY k"
    queries = [
        ("OVER RANGE", f"{over} {range_}", _over_range(stream)),
        ("OVER ROWS", f"{over} ROWS {ROWS_BEFORE} PRECEDING) AS s FROM r", _over_rows(stream)),
        ("sliding window", window, _windows(stream)),
    ]
    return [_run(directory, i, *query, stream, say) for i, query in enumerate(queries)]


def _run(
    directory: Path,
    number: int,
    name: str,
    query: str,
    should: tuple[int, int],
    stream: Rows,
    say: Callable[[str], None],
) -> Finding:
    began = time.monotonic()
    sink = directory / f"sink{number}"
    state: list[int] = []
    with ms.connect(checkpoint=directory / f"checkpoint{number}") as mill:
        [running] = mill.execute(f"""
            CREATE STREAM r (k INT, v BIGINT, t TIMESTAMP) ORDER BY t
                USING parquet OPTIONS (path '{directory / "rows"}', maxFilesPerTrigger '1');
            CREATE SINK s USING parquet OPTIONS (path '{sink}');
            INSERT INTO s {query};
        """)
        batches = 0
        while not running.wait(0.05):
            now = running.progress
            if now.batches > batches:
                batches = now.batches
                state.append(now.state_bytes)
                say(f"{name}: {now.rows_in:,} rows, {now.state_bytes:,} bytes of state")
    rows, total = _sums(sink)
    tenth = max(2, len(state) // 10)
    early, late = max(state[:tenth]), max(state[-tenth - 1 : -1])
    wrong = "" if total == should[1] else f"the sum is {total}, not {should[1]}"
    if late > early * _TOLERATED:
        wrong = wrong or "the state grows"
    seconds = time.monotonic() - began
    detail = f"state {early:,} B after a tenth, {late:,} B at the end; {len(stream.t) / seconds:,.0f} rows/s"
    missing = should[0] - rows
    return Finding(name, f"{len(stream.t):,} rows", seconds, max(missing, 0), max(-missing, 0), detail, wrong)


def _stream(rows: int, seed: int) -> Rows:
    chance = np.random.default_rng(seed)
    t = _FIRST + np.arange(rows, dtype=np.int64) * (1_000_000 // PER_SECOND)
    return Rows(chance.integers(0, KEYS, rows), chance.integers(0, 100, rows), t)


def _write(directory: Path, stream: Rows) -> None:
    directory.mkdir(parents=True)
    cuts = np.linspace(0, len(stream.t), FILES + 1).astype(int)
    for number, (start, end) in enumerate(pairwise(cuts)):
        table = pa.table(
            {
                "k": pa.array(stream.k[start:end], pa.int32()),
                "v": pa.array(stream.v[start:end]),
                "t": pa.array(stream.t[start:end], pa.timestamp("us", "UTC")),
            }
        )
        path = directory / f"{number:06}.parquet"
        pq.write_table(table, path)
        os.utime(path, (_FIRST / 1e6 + number,) * 2)


def _sums(sink: Path) -> tuple[int, int]:
    """Return the number of results, and their sum."""
    rows = total = 0
    for path in sinks.committed(sink):
        column = pq.ParquetFile(path).read(columns=["s"]).column("s")
        rows += len(column)
        total += int(np.sum(column.to_numpy(), dtype=np.int64))
    return rows, total


# ------------------------------------------------------------ expected results, computed in one piece


def _by_key(stream: Rows) -> list[tuple[Ints, Ints]]:
    order = np.argsort(stream.k, kind="stable")
    cuts = np.searchsorted(stream.k[order], np.arange(1, KEYS))
    return list(zip(np.split(stream.v[order], cuts), np.split(stream.t[order], cuts), strict=True))


def _over_range(stream: Rows) -> tuple[int, int]:
    total = 0
    for v, t in _by_key(stream):
        until = np.concatenate([[0], np.cumsum(v)])
        first = np.searchsorted(t, t - RANGE_SECONDS * 1_000_000)
        total += int(np.sum(until[1:] - until[first]))
    return len(stream.t), total


def _over_rows(stream: Rows) -> tuple[int, int]:
    total = 0
    for v, _ in _by_key(stream):
        until = np.concatenate([[0], np.cumsum(v)])
        first = np.maximum(np.arange(len(v)) - ROWS_BEFORE, 0)
        total += int(np.sum(until[1:] - until[first]))
    return len(stream.t), total


def _windows(stream: Rows) -> tuple[int, int]:
    """Every row is in as many windows as there are slides in the range; a result is a window with rows."""
    results = 0
    for _, t in _by_key(stream):
        seconds = np.unique(t // 1_000_000)
        # A row at second s is in the windows that end at s + 1, ..., s + RANGE: count the union.
        gaps = np.minimum(np.diff(seconds), RANGE_SECONDS)
        results += int(np.sum(gaps)) + RANGE_SECONDS * (len(seconds) > 0)
    return results, int(np.sum(stream.v)) * RANGE_SECONDS
