"""Spool directory: lines and their times of arrival, in files that Spark's file source reads.

The files are Parquet: it keeps time and text exactly, without any quoting, Arrow writes it in one
call, and Spark reads it without parsing. (JSON lines would be escaped here and parsed there.)
"""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.errors import ExecutionError
from millstream.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT = "parquet"
"""Format in which Spark reads the directory."""
SPARK_SCHEMA = "arrival TIMESTAMP, line STRING"

FLUSH_SECONDS = 0.2
"""Shortest time between two files, unless there is much to write."""
FLUSH_BYTES = 32 * 2**20
PATIENCE_SECONDS = 10.0
"""Time to wait for a free file descriptor before giving up."""

_SCHEMA = pa.schema([("arrival", pa.timestamp("us", "UTC")), ("line", pa.string())])
_MAGIC = b"PAR1"
_LINE_OVERHEAD = 64
"""Bytes of memory that a line takes besides its text."""


class Spool:
    """Stamps lines and writes them into new files of a directory.

    Lines are in the order of (modification time, name) of their files, and of rows within each;
    arrival times strictly increase in that order, also over a restart with the same directory. A
    ``durable`` spool survives a loss of power.

    A file is named after its modification time. So a name is not given twice, even if files have been
    removed in between: Spark would take the second file for the first one, which it has read.
    """

    def __init__(self, directory: Path, *, durable: bool = False) -> None:
        self._directory = directory
        self._durable = durable
        self._lines: list[bytes] = []
        self._arrivals: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        self._bytes = 0
        self._stamping = threading.Lock()
        self._last_arrival = 0
        self._last_modified = 0
        self._flushed = -math.inf
        self._short_since: float | None = None
        self.written = 0
        """Lines that are in files."""
        self.torn: list[str] = []
        """Files of an earlier run that were not whole; they have been set aside."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._resume()
        except OSError as error:
            raise self._cannot_write(error) from error

    def _resume(self) -> None:
        """Continue after the last file of an earlier listener, even if the clock was put back.

        That file may have been removed, which the directory's modification time tells. The next file gets a
        later millisecond.
        """
        self._last_modified = self._directory.stat().st_mtime_ns // 1_000_000
        if time.time_ns() // 1_000_000 == self._last_modified:
            time.sleep(0.001)
        for path in sorted(self._directory.glob("*.parquet")):
            self._last_modified = max(
                self._last_modified, path.stat().st_mtime_ns // 1_000_000, _number(path)
            )
            if not _is_whole(path):
                self._set_aside(path)
        for path in sorted(self._directory.glob("*.parquet"), reverse=True):
            try:
                arrivals = pq.read_table(path, columns=["arrival"]).column("arrival")
                self._last_arrival = arrivals[-1].value
            except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, IndexError, KeyError):
                self._set_aside(path)
                continue
            return
        # No line can have come after its file was written.
        self._last_arrival = self._last_modified * 1000

    def _set_aside(self, path: Path) -> None:
        """Hide a file that cannot be read from Spark: its lines are lost, and those after it are not."""
        path.rename(path.with_name(f".{path.name}.torn"))
        self.torn.append(path.name)

    @property
    def waiting(self) -> int:
        """Lines that are not in a file yet."""
        return len(self._lines)

    def add(self, lines: Sequence[bytes]) -> None:
        """Stamp lines with the time of now, or just after the line before."""
        with self._stamping:
            first = max(time.time_ns() // 1000, self._last_arrival + 1)
            self._last_arrival = first + len(lines) - 1
            self._arrivals.append(np.arange(first, first + len(lines), dtype=np.int64))
        self._lines += lines
        self._bytes += sum(map(len, lines)) + _LINE_OVERHEAD * len(lines)

    def complete_until(self) -> int:
        """Return a time in microseconds: all lines that were stamped before it are in files.

        Another thread may ask.
        """
        with self._stamping:
            now = max(time.time_ns() // 1000, self._last_arrival + 1)
            return int(self._arrivals[0][0]) if self._arrivals else now

    def seconds_to_flush(self) -> float | None:
        """Return the seconds until the next file is due; None if there is nothing to write."""
        return max(0.0, self._flushed + FLUSH_SECONDS - time.monotonic()) if self._lines else None

    def flush_if_due(self) -> None:
        if self.seconds_to_flush() == 0 or (self._bytes >= FLUSH_BYTES and self._short_since is None):
            self.flush()

    def flush(self) -> None:
        """Write the lines into a new file, which Spark sees when it is complete."""
        if not self._lines:
            return
        # Spark takes files by modification time, in milliseconds: two files never share one.
        modified = max(time.time_ns() // 1_000_000, self._last_modified + 1)
        try:
            table = pa.table([pa.array(np.concatenate(self._arrivals)), _decode(self._lines)], _SCHEMA.names)

            def write(path: Path) -> None:
                pq.write_table(table.cast(_SCHEMA), path, use_dictionary=False, write_statistics=False)
                os.utime(path, ns=(modified * 1_000_000,) * 2)

            write_whole(self._directory / f"{modified:015}.parquet", write, durable=self._durable)
        except OSError as error:
            if self._may_wait(error):
                return
            raise self._cannot_write(error) from error
        self._last_modified = modified
        self.written += len(self._lines)
        with self._stamping:
            self._lines, self._arrivals, self._bytes = [], [], 0
        self._flushed = time.monotonic()
        self._short_since = None

    def _may_wait(self, error: OSError) -> bool:
        """Return True if the write is tried again, because the process may get file descriptors back."""
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            return False
        now = self._flushed = time.monotonic()
        self._short_since = now if self._short_since is None else self._short_since
        return now - self._short_since < PATIENCE_SECONDS

    @property
    def is_short(self) -> bool:
        """True while lines wait for a file descriptor."""
        return self._short_since is not None

    def _cannot_write(self, error: OSError) -> ExecutionError:
        reason = os.strerror(error.errno) if error.errno else str(error)
        lost = len(self._lines)
        total = self.written + lost
        said = f"; of {total} lines received in this run, the last {lost} are lost" if lost else ""
        return ExecutionError(
            f"lines that arrive cannot be written to {self._directory}: {reason}{said}",
            hint="check the directory, its permissions, and the space left on its disk"
            + ("; let senders send again what is lost" if lost else ""),
        )


def _number(path: Path) -> int:
    return int(path.stem) if path.stem.isdigit() else 0


def _is_whole(path: Path) -> bool:
    """Return True if a file begins and ends as Parquet files do, which is cheap to test."""
    with path.open("rb") as file:
        if file.read(4) != _MAGIC or file.seek(0, os.SEEK_END) < 3 * len(_MAGIC):
            return False
        file.seek(-4, os.SEEK_END)
        return file.read(4) == _MAGIC


def _decode(lines: Sequence[bytes]) -> pa.Array:
    try:
        return pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([line.decode(errors="replace") for line in lines], pa.string())
