"""A spool directory: lines and the times of their arrival, in files that Spark's file source reads.

The files are Parquet: it keeps time and text exactly, without any quoting, Arrow writes it in one
call, and Spark reads it without parsing. (JSON lines would be escaped here and parsed there.)
"""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT = "parquet"
"""How Spark is to read the directory."""
SPARK_SCHEMA = "arrival TIMESTAMP, line STRING"

FLUSH_SECONDS = 0.2
"""A new file at most this often, unless there is much to write."""
FLUSH_BYTES = 32 * 2**20

_SCHEMA = pa.schema([("arrival", pa.timestamp("us", "UTC")), ("line", pa.string())])


class Spool:
    """Stamps lines and writes them into new files of a directory.

    Lines are in the order of (modification time, name) of their files, and of rows within each;
    arrival times strictly increase in that order, also over a restart with the same directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lines: list[bytes] = []
        self._arrivals: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        self._bytes = 0
        self._last_arrival = 0
        self._last_modified = 0
        self._number = 0
        self._flushed = -math.inf
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._resume()
        except OSError as error:
            raise _cannot_write(directory, error) from error

    def _resume(self) -> None:
        """Go on after the last file of an earlier listener, even if the clock was put back."""
        files = sorted(self._directory.glob("*.parquet"))
        if files:
            self._number = int(files[-1].stem)
            self._last_modified = files[-1].stat().st_mtime_ns // 1_000_000
            arrivals = pq.read_table(files[-1], columns=["arrival"]).column("arrival")
            self._last_arrival = arrivals[-1].value

    def add(self, lines: Sequence[bytes]) -> None:
        """Stamp lines with the time of now, or just after the line before."""
        first = max(time.time_ns() // 1000, self._last_arrival + 1)
        self._last_arrival = first + len(lines) - 1
        self._arrivals.append(np.arange(first, first + len(lines), dtype=np.int64))
        self._lines += lines
        self._bytes += sum(map(len, lines))

    def seconds_to_flush(self) -> float | None:
        """How long to wait until the next file is due; None if there is nothing to write."""
        return max(0.0, self._flushed + FLUSH_SECONDS - time.monotonic()) if self._lines else None

    def flush_if_due(self) -> None:
        if self._bytes >= FLUSH_BYTES or self.seconds_to_flush() == 0:
            self.flush()

    def flush(self) -> None:
        """Write the lines into a new file, which Spark sees when it is complete."""
        if not self._lines:
            return
        table = pa.table([pa.array(np.concatenate(self._arrivals)), _decode(self._lines)], _SCHEMA.names)
        self._number += 1
        path = self._directory / f"{self._number:012}.parquet"
        # Spark does not look at files whose names begin with a dot.
        unfinished = path.with_name(f".{path.name}")
        try:
            pq.write_table(table.cast(_SCHEMA), unfinished, use_dictionary=False, write_statistics=False)
            # Spark takes files by modification time, in milliseconds: two files never share one.
            self._last_modified = max(time.time_ns() // 1_000_000, self._last_modified + 1)
            os.utime(unfinished, ns=(self._last_modified * 1_000_000,) * 2)
            unfinished.replace(path)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise _cannot_write(self._directory, error) from error
        self._lines, self._arrivals, self._bytes = [], [], 0
        self._flushed = time.monotonic()


def _decode(lines: Sequence[bytes]) -> pa.Array:
    try:
        return pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([line.decode(errors="replace") for line in lines], pa.string())


def _cannot_write(directory: Path, error: OSError) -> ExecutionError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return ExecutionError(
        f"what arrives cannot be written to {directory}: {reason}",
        hint="check the directory, its permissions, and the space left on its disk",
    )
