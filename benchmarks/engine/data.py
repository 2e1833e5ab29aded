"""The data of the engine benchmark: made once for each shape, then kept under build/.

A row is (k INT, ts TIMESTAMP, v DOUBLE), in order of ts. Timestamps are whole milliseconds, which is what
Flink's event time can hold, and no two rows of a key share one: so ties cannot make answers differ. v is a
multiple of 0.25, so that sums are exact in whatever order they are made.

    parquet/         FILES files, each a stretch of the stream, with modification times in their order
    parquet_closed/  the same and, in the last file, one more row, far later and with the key CLOSING_KEY:
                     without it Spark's watermark never passes the last windows, and they are not results
    csv-N/           N files that take turns row by row, as N ordered partitions would: one for each reader
                     of Flink, since readers take files in no order and could not merge stretches of it
    other/           all that again for a second stream, of the same shape, for queries of two
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from benchmarks.engine.contract import FILES, OTHER, ROOT

BUILD = ROOT / "build" / "benchmarks"
START = np.datetime64("2026-01-01T00:00:00", "ms")
ROWS_PER_HOUR = 4_000_000
CLOSING_KEY = -1
CLOSING_AFTER = np.timedelta64(3_600_000, "ms")


@dataclass(frozen=True)
class Shape:
    """Size of the data: rows, keys, and seconds of stream time, by default from ROWS_PER_HOUR."""

    rows: int
    keys: int
    seconds: int = 0
    stream: int = 0
    """Which of several streams of that shape."""

    def __post_init__(self) -> None:
        if not self.seconds:
            object.__setattr__(self, "seconds", math.ceil(self.rows * 3600 / ROWS_PER_HOUR))
        if self.rows < FILES or self.keys < 1:
            raise ValueError(f"there must be at least {FILES} rows and one key")
        if self.keys < self.rows_per_millisecond:
            raise ValueError(
                f"{self.rows:,} rows in {self.seconds:,} s are {self.rows_per_millisecond} in a millisecond, "
                f"which must not be more than the keys ({self.keys})"
            )

    @property
    def rows_per_millisecond(self) -> int:
        return math.ceil(self.rows / (self.seconds * 1000))

    @property
    def directory(self) -> Path:
        first = BUILD / "engine" / f"{self.rows}-rows-{self.keys}-keys-{self.seconds}-s"
        return first / OTHER if self.stream else first

    @property
    def other(self) -> Shape:
        """The second stream of that shape."""
        return replace(self, stream=1)


def columns(shape: Shape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys, timestamps in milliseconds, and values."""
    seed = [shape.rows, shape.keys, shape.seconds]
    random = np.random.default_rng([*seed, shape.stream] if shape.stream else seed)
    number = np.arange(shape.rows, dtype=np.int64)
    millisecond = number * (shape.seconds * 1000) // shape.rows
    # Rows of one millisecond get keys at equal distances from a random one.
    place = number - np.searchsorted(millisecond, millisecond)
    distance = shape.keys // shape.rows_per_millisecond
    first = random.integers(0, shape.keys, shape.seconds * 1000)
    k = ((first[millisecond] + place * distance) % shape.keys).astype(np.int32)
    v = random.integers(0, 1000, shape.rows) / 4
    return k, START + millisecond.astype("timedelta64[ms]"), v


def make(shape: Shape, partitions: int, sides: int = 1) -> Path:
    """Return the directory with the data of that shape, the csv in so many files; create missing data."""
    if sides > 1:
        make(shape.other, partitions)
    closed, in_csv = shape.directory / "parquet_closed", shape.directory / f"csv-{partitions}"
    if closed.exists() and in_csv.exists():
        return shape.directory
    k, ts, v = columns(shape)
    table = pa.table({"k": k, "ts": pa.array(ts).cast(pa.timestamp("us", "UTC")), "v": v})
    if not closed.exists():
        _in_place(shape.directory / "parquet", lambda directory: _write_parquet(table, directory))
        _in_place(closed, lambda directory: _write_closed(shape.directory / "parquet", directory))
    if not in_csv.exists():
        _in_place(in_csv, lambda directory: _write_csv(table, directory, partitions))
    return shape.directory


def _in_place(directory: Path, write: Callable[[Path], None]) -> None:
    """Write a file atomically, by a rename."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(dir=directory.parent, prefix="unfinished-"))
    try:
        write(unfinished)
        unfinished.rename(directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write_parquet(table: pa.Table, directory: Path) -> None:
    edges = [len(table) * number // FILES for number in range(FILES + 1)]
    for number, (begin, end) in enumerate(itertools.pairwise(edges)):
        path = directory / f"part-{number:02}.parquet"
        parquet.write_table(table.slice(begin, end - begin), path)
        _set_time(path, number)


def _write_closed(still_open: Path, directory: Path) -> None:
    *others, last = sorted(still_open.iterdir())
    for path in others:
        (directory / path.name).hardlink_to(path)
    table = parquet.read_table(last)
    end = table["ts"][-1].as_py() + CLOSING_AFTER.item()
    closing = pa.table({"k": [CLOSING_KEY], "ts": [end], "v": [0.0]}, schema=table.schema)
    parquet.write_table(pa.concat_tables([table, closing]), directory / last.name)
    _set_time(directory / last.name, FILES - 1)


def _set_time(path: Path, number: int) -> None:
    """Seconds apart: files are taken in the order of modification times, which some file systems round."""
    time = 1_767_225_600 + number
    os.utime(path, (time, time))


def _write_csv(table: pa.Table, directory: Path, partitions: int) -> None:
    """Timestamps as milliseconds, which are quicker to parse than dates."""
    milliseconds = pc.divide(table["ts"].cast(pa.int64()), 1000)
    table = table.set_column(1, "ts", milliseconds)
    for number in range(partitions):
        part = table.take(np.arange(number, len(table), partitions))
        csv.write_csv(part, directory / f"part-{number}.csv", csv.WriteOptions(include_header=False))
