"""A live view of running queries on the terminal: how far they have come, and their newest rows."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from rich.console import Console, JustifyMethod
from rich.live import Live
from rich.table import Table
from rich.text import Text

from millstream.errors import MillstreamError
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.results.value_formatting import texts

_REFRESH_SECONDS = 0.25
_FRESH_SECONDS = 1.0
"""How long a row is a new one to the eye."""
_WIDEST = 40
"""Characters of a column that is not the last."""
_ALL = ""
"""Stands for all queries where rates have the names of queries."""
_NOTHING: Mapping[str, str] = {}


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
    """Rows per second of queries: in the last ``window`` seconds, or since they were started."""

    def __init__(self, window: float | None = None) -> None:
        self._window = window
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def rate(self, query: RunningQuery) -> float | None:
        """The rate of a query, the last one if it has ended; None until it can be told."""
        if self._window is None:
            return query.progress.rows_in / max(query.seconds, _REFRESH_SECONDS)
        return self._recent(query.name, query.progress.rows_in, self._window, query.is_active)

    def total(self, rows: int, *, is_active: bool) -> float | None:
        """Rate of all queries together, which have read so many rows."""
        return None if self._window is None else self._recent(_ALL, rows, self._window, is_active)

    def _recent(self, name: str, rows: int, window: float, is_active: bool) -> float | None:
        seen = self._seen.setdefault(name, deque())
        if is_active or len(seen) < 2:
            now = time.monotonic()
            seen.append((now, rows))
            while now - seen[0][0] > window:
                seen.popleft()
        (first, before), (last, after) = seen[0], seen[-1]
        return (after - before) / (last - first) if last - first >= _REFRESH_SECONDS else None


def progress_table(
    queries: Sequence[RunningQuery], rates: RateMeter, titles: Mapping[str, str] = _NOTHING
) -> Table:
    """One line a query; ``titles`` say what queries of some names are about."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("query", no_wrap=True)
    # Where there is something better to say, the state is just a colour.
    table.add_column("about" if titles else "state", no_wrap=True)
    for title in ("rows in", "rows out", "rows/s", "late", "bad", "lag", "batch" if titles else "time"):
        table.add_column(title, justify="right", no_wrap=True, min_width=6)
    for query in queries:
        progress = query.progress
        state, style = _state(query)
        rate = rates.rate(query)
        lag = progress.lag_seconds(datetime.now(UTC)) if query.is_active and not query.is_bounded else None
        table.add_row(
            Text(query.name, style=style if titles else ""),
            Text(titles[query.name]) if query.name in titles else Text(state, style=style),
            f"{progress.rows_in:,}",
            f"{progress.rows_out:,}",
            "" if rate is None else f"{rate:,.0f}",
            f"[yellow]{progress.late_total:,}" if progress.late_total else "0",
            f"[yellow]{progress.bad_total:,}" if progress.bad_total else "0",
            "" if lag is None else f"{lag:,.1f} s",
            f"{progress.batch_seconds if titles else query.seconds:.1f} s",
        )
    return table


def _state(query: RunningQuery) -> tuple[str, str]:
    if query.is_active:
        return "running", "green"
    return ("failed", "red") if query.error else ("done", "")


class NewestRows:
    """The newest rows of a query without end. What has been seen here is forgotten by the query's log."""

    def __init__(self, query: RunningQuery, keep: int = 50) -> None:
        self.names: Sequence[str] = query.schema.names
        self.is_number = [_is_number(kind) for kind in query.schema.types]
        self._widths = [len(name) for name in self.names]
        self._rows: deque[_Row] = deque(maxlen=keep)
        self._query = query
        self._lock = threading.Lock()
        threading.Thread(target=self._follow, name=f"newest-{query.name}", daemon=True).start()

    def __len__(self) -> int:
        return len(self._rows)

    def table(self, rows: int, *, tight: bool = False) -> Table:
        """The last rows to be looked at, those that have just come in brighter than the others."""
        gap = 1 if tight else 2
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim italic")
        with self._lock:
            shown = list(self._rows)[-rows:] if rows > 0 else []
            columns = list(zip(self.names, self.is_number, self._widths, strict=True))
        for name, right, width in columns[:-1]:
            # As wide as ever, or else columns would jump about.
            side: JustifyMethod = "right" if right else "left"
            table.add_column(_cut(name), justify=side, no_wrap=True, min_width=min(width, _WIDEST))
        for name, right, _ in columns[-1:]:
            # If there is no room it is this one that is cut.
            table.add_column(_cut(name), justify="right" if right else "left")
        fresh = time.monotonic() - _FRESH_SECONDS
        for row in shown:
            table.add_row(*map(_cut, row.cells), style="bold" if row.since > fresh else "")
        return table

    def _follow(self) -> None:
        assert self._query.log is not None
        try:
            for table in self._query.log.follow(forget=True):
                self._add(table)
        except MillstreamError:
            # Reported by whoever waits for the query.
            return

    def _add(self, table: pa.Table) -> None:
        last = table.slice(max(0, table.num_rows - (self._rows.maxlen or 0)))
        columns = [_cells(column) for column in last.columns]
        with self._lock:
            self._rows.extend(_Row(cells) for cells in zip(*columns, strict=True))
            for i, cells in enumerate(columns):
                self._widths[i] = max(self._widths[i], *map(len, cells))


@dataclass(frozen=True)
class _Row:
    cells: tuple[str, ...]
    since: float = field(default_factory=time.monotonic)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cut(text: str) -> Text:
    """A text that is never more than a line."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def _cells(column: pa.ChunkedArray) -> list[str]:
    try:
        return [_cell(value) for value in column.to_pylist()]
    except (OverflowError, ValueError):  # times that Python cannot hold
        return [_cell(value) for value in texts(column.combine_chunks()).to_pylist()]


def _cell(value: Any) -> str:
    """A value at a glance: of numbers two digits, of times no day."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, datetime):
        return f"{value:%H:%M:%S}.{value.microsecond // 100_000}"
    return str(value)
