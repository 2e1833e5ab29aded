"""A live view of running queries on the terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live
from rich.table import Table

from millstream.runtime.query import RunningQuery

_REFRESH_SECONDS = 0.25


@contextmanager
def live_progress(queries: Sequence[RunningQuery]) -> Iterator[None]:
    """Show a table of the queries on standard error until the context ends."""
    console = Console(stderr=True)
    rates = RateMeter()
    done = threading.Event()
    with Live(progress_table(queries, rates), console=console, auto_refresh=False) as live:

        def refresh() -> None:
            while not done.wait(_REFRESH_SECONDS):
                live.update(progress_table(queries, rates), refresh=True)

        thread = threading.Thread(target=refresh, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            live.update(progress_table(queries, rates), refresh=True)


class RateMeter:
    """Rows per second since a query was first seen."""

    def __init__(self) -> None:
        self._started: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def seconds(self, query: RunningQuery) -> float:
        now = time.monotonic()
        start = self._started.setdefault(query.name, now)
        end = now if query.is_active else self._ended.setdefault(query.name, now)
        return max(end - start, 1e-3)


def progress_table(queries: Sequence[RunningQuery], rates: RateMeter) -> Table:
    """One line a query."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("query", "state"):
        table.add_column(title)
    for title in ("rows in", "rows out", "rows/s", "bad", "lag", "batch"):
        table.add_column(title, justify="right")
    for query in queries:
        progress = query.progress
        state = "[green]running" if query.is_active else ("[red]failed" if query.error else "done")
        rate = progress.rows_in / rates.seconds(query)
        lag = progress.lag_seconds(datetime.now(UTC)) if query.is_active and not query.is_bounded else None
        table.add_row(
            query.name,
            state,
            f"{progress.rows_in:,}",
            f"{progress.rows_out:,}",
            f"{rate:,.0f}",
            f"[yellow]{progress.bad_total:,}" if progress.bad_total else "0",
            "" if lag is None else f"{lag:,.1f} s",
            f"{progress.batch_seconds:.1f} s",
        )
    return table
