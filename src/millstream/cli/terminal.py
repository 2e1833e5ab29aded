"""Terminal of a run: rows above, and below them the progress of the run.

Results go to standard output and everything else to standard error. Where both are the same screen, the
status is erased before rows are written and drawn again below them.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import BinaryIO, TextIO

from millstream.cli.terminal_views import RateMeter, live_progress
from millstream.runtime.queries.query_progress import most
from millstream.runtime.queries.running_query import RunningQuery

_REFRESH_SECONDS = 0.25
_RATE_SECONDS = 10.0
"""Seconds over which rows a second are counted."""
_ERASE = "\r\x1b[2K"


class Terminal:
    """Standard output and standard error of a run, in turns.

    A run over input that ends shows a table of its progress and its rows at the end. One over input without
    an end shows its rows as they come, and one line of status below them.
    """

    def __init__(self, out: BinaryIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout.buffer
        self._err = err or sys.stderr
        self._turn = threading.RLock()
        self._status = ""

    def write(self, piece: bytes) -> int:
        """Write rows, which end in a line break, above the status."""
        with self._turn:
            self._draw("")
            return self._out.write(piece)

    def flush(self) -> None:
        with self._turn:
            self._out.flush()

    def say(self, message: str) -> None:
        """Write a message that is no result."""
        with self._turn:
            self._draw("")
            print(message, file=self._err, flush=True)

    def compiling(self, name: str, seconds: float | None) -> None:
        """Name the program that is compiled: the first run of an aggregate takes some seconds more."""
        with self._turn:
            self._draw("")
            said = f"compiling {name} ..." if seconds is None else f" {seconds:.1f} s\n"
            print(said, end="", file=self._err, flush=True)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Show that Spark and the queries are being started until the context ends, or until more is said."""
        if not self._err.isatty():
            yield
            return
        with self._turn:
            self._draw("starting Spark ...  Ctrl-C ends")
        try:
            yield
        finally:
            with self._turn:
                self._draw("")

    @contextmanager
    def showing(self, queries: Sequence[RunningQuery]) -> Iterator[None]:
        """Show how far queries have come until the context ends."""
        if not self._err.isatty() or not queries:
            yield
        elif all(query.is_bounded for query in queries):
            with live_progress(queries):
                yield
        else:
            with self._status_line(queries):
                yield

    @contextmanager
    def _status_line(self, queries: Sequence[RunningQuery]) -> Iterator[None]:
        rates = RateMeter(_RATE_SECONDS)
        done = threading.Event()

        def refresh() -> None:
            while not done.wait(_REFRESH_SECONDS):
                with self._turn:
                    self._draw(status(queries, rates))

        thread = threading.Thread(target=refresh, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            with self._turn:
                self._draw("")

    def _draw(self, text: str) -> None:
        """Replace the status; nothing is written if it stays as it is."""
        width = shutil.get_terminal_size().columns - 1
        text = text if len(text) <= width else f"{text[: width - 3]}..."
        if text != self._status:
            self._err.write(_ERASE + text)
            self._err.flush()
            self._status = text


def status(queries: Sequence[RunningQuery], rates: RateMeter) -> str:
    """Describe in one line how far queries have come."""
    running = sum(query.is_active for query in queries)
    progress = [query.progress for query in queries]
    # Queries of one stream read the same rows.
    rows, late, bad = (
        sum(most(counts).values())
        for counts in zip(*((one.rows, one.late, one.bad) for one in progress), strict=True)
    )
    speed = rates.total(rows, is_active=running > 0)
    now = datetime.now(UTC)
    lags = [lag for one in progress if (lag := one.lag_seconds(now)) is not None]
    parts = [
        f"{running} running" if running == len(queries) else f"{running} of {len(queries)} running",
        f"{rows:,} rows in",
        f"{sum(one.rows_out for one in progress):,} out",
        f"{speed or 0:,.0f} rows/s",
        f"late {late:,}",
        f"bad {bad:,}",
        *([f"lag {max(lags):,.1f} s"] if lags else []),
        "Ctrl-C ends",
    ]
    return "  ".join(parts)
