"""The rate and the state of a query along a long stream: neither should change once windows are full."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import SparkSession

from benchmarks.engine.data import BUILD, ROWS_PER_HOUR, START, Shape, columns
from benchmarks.growth.running import run
from millstream.runtime.queries.query_progress import Progress

KEYS = 1_000
ROWS_PER_FILE = 125_000
FILES_PER_BATCH = 4
QUERY = "SELECT k, ts, v, sum(v) OVER (PARTITION BY k RANGE INTERVAL 60 SECONDS PRECEDING) AS total FROM s"


def measure(spark: SparkSession, rows: int) -> list[list[str]]:
    """A heading, and a line for each tenth of the stream."""
    path = _make(rows)
    # Compilation is not measured.
    run(spark, QUERY, _make(4 * ROWS_PER_FILE), FILES_PER_BATCH)
    seen: list[tuple[float, Progress, int]] = []
    run(spark, QUERY, path, FILES_PER_BATCH, lambda p: seen.append((time.perf_counter(), p, _memory())))
    table = [["million rows", "rows/s", "tuples in the state", "state in the store", "memory of all"]]
    before = seen[0]
    for tenth in range(1, 11):
        at = next((s for s in seen if s[1].rows_in >= rows * tenth // 10), seen[-1])
        rate = (at[1].rows_in - before[1].rows_in) / max(at[0] - before[0], 1e-9)
        table.append(
            [
                f"{at[1].rows_in / 1e6:.1f}",
                f"{rate:,.0f}",
                f"{at[1].state_rows:,}",
                f"{at[1].state_bytes / 1e6:,.1f} MB",
                f"{at[2] / 1e9:.1f} GB",
            ]
        )
        before = at
    return table


def _make(rows: int) -> Path:
    """The stream of the engine's benchmark, hour after hour, for as long as it takes."""
    directory = BUILD / "growth" / f"{rows}-rows"
    if (directory / "whole").exists():
        return directory / "parquet"
    (directory / "parquet").mkdir(parents=True, exist_ok=True)
    shape = Shape(min(rows, ROWS_PER_HOUR), KEYS)
    k, ts, v = columns(shape)
    table = pa.table({"k": k, "ts": pa.array(ts - START).cast(pa.duration("us")), "v": v})
    first = pa.scalar(START.item(), pa.timestamp("us", "UTC"))
    for number, begin in enumerate(range(0, rows, ROWS_PER_FILE)):
        hour, place = divmod(begin, shape.rows)
        part = table.slice(place, min(ROWS_PER_FILE, rows - begin))
        moved = pc.add(first, pc.add(part["ts"], pa.scalar(hour * shape.seconds * 10**6, pa.duration("us"))))
        path = directory / "parquet" / f"part-{number:05}.parquet"
        parquet.write_table(part.set_column(1, "ts", moved), path)
        os.utime(path, (1_767_225_600 + number,) * 2)
    (directory / "whole").touch()
    return directory / "parquet"


def _memory() -> int:
    """Bytes of this process and all below it: the JVM and its Python workers."""
    parents: dict[int, int] = {}
    pages: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                pages[int(entry.name)] = int((entry / "statm").read_text().split()[1])
            except (OSError, ValueError):
                continue
            parents[int(entry.name)] = int(fields[1])
    total, family = 0, {os.getpid()}
    for _ in range(6):
        family |= {child for child, parent in parents.items() if parent in family}
    for member in family:
        total += pages.get(member, 0)
    return total * os.sysconf("SC_PAGE_SIZE")
