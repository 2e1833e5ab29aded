"""Views of running queries: their progress, their newest rows, and the screen of a demo."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.layout import Layout
from rich.live import Live
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from millstream.demo.bundle import Card, PreparedDemo
from millstream.demo.sender import Sender
from millstream.errors import MillstreamError
from millstream.runtime.queries.query_progress import Progress, most
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.results.value_formatting import texts

_REFRESH_SECONDS = 0.25
_FRESH_SECONDS = 1.0
"""Seconds for which a new row is shown in bold."""
_WIDEST = 40
"""Characters of a column that is not the last."""
_ALL = ""
"""Name of all queries together in a `RateMeter`."""
_BARS = " ▁▂▃▄▅▆▇█"
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PAGE_SECONDS = 6.0
_BESIDE_WIDTH = 100
"""Columns of a terminal from which on a result stands beside its query, not below it."""
_FEWEST_ROWS = 4
_STYLES = ((r"\b[A-Z]{2,}\b", "cyan"), (r"'[^'\n]*'", "green"), (r"--.*", "not bold italic bright_black"))


# ---------------------------------------------------------------- progress


@contextmanager
def live_progress(queries: Sequence[RunningQuery]) -> Iterator[None]:
    """Show a table of the queries on standard error until the context ends."""
    rates = RateMeter()
    with Live(
        get_renderable=lambda: progress_table(queries, rates),
        console=Console(stderr=True),
        refresh_per_second=1 / _REFRESH_SECONDS,
    ):
        yield


class RateMeter:
    """Rows per second of queries: in the last ``window`` seconds, or since they were started."""

    def __init__(self, window: float | None = None) -> None:
        self._window = window
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def rate(self, query: RunningQuery) -> float | None:
        """Return the rate of a query, the last one if it has ended; None until two counts are known."""
        if self._window is None:
            return query.progress.rows_in / max(query.seconds, _REFRESH_SECONDS)
        return self._recent(query.name, query.progress.rows_in, self._window, query.is_active)

    def total(self, rows: int, *, is_active: bool) -> float | None:
        """Return the rate of all queries together, which have read ``rows`` rows."""
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


def progress_table(queries: Sequence[RunningQuery], rates: RateMeter) -> Table:
    """Return a table with one line for each query."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("query", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for title in ("rows in", "rows out", "rows/s", "late", "bad", "lag", "time"):
        table.add_column(title, justify="right", no_wrap=True, min_width=6)
    for query in queries:
        progress = query.progress
        rate = rates.rate(query)
        lag = progress.lag_seconds(datetime.now(UTC)) if query.is_active and not query.is_bounded else None
        table.add_row(
            query.name,
            _state(query),
            *_counts(progress.rows_in, progress.rows_out),
            "" if rate is None else f"{rate:,.0f}",
            *_counts(progress.late_total, progress.bad_total, style="yellow"),
            "" if lag is None else f"{lag:,.1f} s",
            f"{query.seconds:.1f} s",
        )
    return table


def _state(query: RunningQuery) -> Text:
    if query.is_active:
        return Text("running", style="green")
    return Text("failed", style="red") if query.error else Text("done")


def _counts(*counts: int, style: str = "") -> Iterator[Text]:
    return (Text(f"{count:,}", style=style if count else "") for count in counts)


# ---------------------------------------------------------------- rows


class NewestRows:
    """Newest rows of a query, or current rows of a view. The query's log forgets rows that were read here."""

    def __init__(self, query: RunningQuery, keep: int = 50) -> None:
        self._query = query
        self._names: Sequence[str] = query.schema.names
        self._sides: list[JustifyMethod] = ["right" if _is_number(t) else "left" for t in query.schema.types]
        self._widths = [len(name) for name in self._names]
        self._rows: deque[_Row] = deque(maxlen=keep)
        self._lock = threading.Lock()
        if query.log is not None:
            threading.Thread(target=self._follow, name=f"newest-{query.name}", daemon=True).start()

    def __len__(self) -> int:
        return len(self._rows)

    def update(self) -> None:
        """Take the current result of a view."""
        if self._query.log is not None or not self._query.is_active:
            return
        try:
            current = sorted(_rows(self._query.snapshot()))
        except MillstreamError:
            # The caller of `wait` reports it.
            return
        with self._lock:
            now = time.monotonic()
            before = {row.cells: row.since for row in self._rows}
            self._rows.clear()
            self._rows.extend(_Row(cells, before.get(cells, now)) for cells in current)
            self._widen()

    def table(self, rows: int) -> Table:
        """Return the last ``rows`` rows as a table; rows that have just come in are bold."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim italic")
        with self._lock:
            shown = list(self._rows)[-rows:] if rows > 0 else []
            columns = list(zip(self._names, self._sides, self._widths, strict=True))
        for i, (name, side, width) in enumerate(columns):
            # Columns do not become narrower again, and the last one is cut if there is no room.
            least = None if i == len(columns) - 1 else min(width, _WIDEST)
            table.add_column(_cut(name), justify=side, no_wrap=True, min_width=least)
        fresh = time.monotonic() - _FRESH_SECONDS
        for row in shown:
            table.add_row(*map(_cut, row.cells), style="bold" if row.since > fresh else "")
        return table

    def _follow(self) -> None:
        assert self._query.log is not None
        try:
            for table in self._query.log.follow(forget=True):
                last = table.slice(max(0, table.num_rows - (self._rows.maxlen or 0)))
                with self._lock:
                    self._rows.extend(_Row(cells, time.monotonic()) for cells in _rows(last))
                    self._widen()
        except MillstreamError:
            # The caller of `wait` reports it.
            return

    def _widen(self) -> None:
        for row in self._rows:
            self._widths = [
                max(width, len(cell)) for width, cell in zip(self._widths, row.cells, strict=True)
            ]


@dataclass(frozen=True)
class _Row:
    cells: tuple[str, ...]
    since: float


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cut(text: str) -> Text:
    """Return a text of at most one line."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def _rows(table: pa.Table) -> Iterator[tuple[str, ...]]:
    return zip(*map(_cells, table.columns), strict=True)


def _cells(column: pa.ChunkedArray) -> list[str]:
    try:
        return [_cell(value) for value in column.to_pylist()]
    except (OverflowError, ValueError):  # times that Python cannot hold
        return [_cell(value) for value in texts(column.combine_chunks()).to_pylist()]


def _cell(value: Any) -> str:
    """Return a short text of a value: numbers with two digits, times without the day."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, datetime):
        return f"{value:%H:%M:%S}.{value.microsecond // 100_000}"
    return str(value)


# ---------------------------------------------------------------- demo


@dataclass
class DemoRun:
    """State of a demo: its step, the lines that it sends, its queries and their rows."""

    demo: PreparedDemo
    sender: Sender
    seconds: int
    step: str = ""
    tell: Callable[[str], None] = field(default=lambda text: None)
    """Function that is called with each step."""
    began: float = field(default_factory=time.monotonic)
    live_since: float | None = None
    """Time of the first rows."""
    queries: dict[str, RunningQuery] = field(default_factory=dict)
    newest: dict[str, NewestRows] = field(default_factory=dict)
    _final: dict[str, Progress] = field(default_factory=dict)

    def say(self, step: str) -> None:
        """Begin a step."""
        self.step = step
        self.tell(step)

    def compiling(self, name: str, seconds: float | None) -> None:
        """Say which program is being compiled; the first run of an aggregate takes some seconds more."""
        self.say(f"compiling {name}" if seconds is None else f"compiled {name} in {seconds:.1f} s")

    def follow(self, queries: Iterable[RunningQuery]) -> None:
        """Show the rows of queries that have been started."""
        for query in queries:
            self.newest = {**self.newest, query.name: NewestRows(query)}
            self.queries = {**self.queries, query.name: query}

    def finish(self) -> None:
        """Keep the progress of the queries, which are about to end."""
        for newest in self.newest.values():
            newest.update()
        self._final = self.progress()
        self.say("stopping Spark")

    def elapsed(self) -> float:
        """Return the seconds since the first rows."""
        return 0.0 if self.live_since is None else time.monotonic() - self.live_since

    def progress(self) -> dict[str, Progress]:
        """Return how far each query has come."""
        return self._final or {name: query.progress for name, query in self.queries.items()}

    def rejected(self) -> tuple[int, int]:
        """Return the counts of late tuples and of bad records; queries of one stream count the same ones."""
        progress = self.progress().values()
        late, bad = most([one.late for one in progress]), most([one.bad for one in progress])
        return sum(late.values()), sum(bad.values())


class DemoScreen:
    """Screen of a demo: a line about its input, and each query with its newest rows."""

    def __init__(self, run: DemoRun) -> None:
        self._run = run
        self._arrivals: deque[int] = deque([0] * 12, maxlen=12)
        self._due = time.monotonic() + 1
        self._before = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        run = self._run
        beside = options.max_width >= _BESIDE_WIDTH
        pages = _pages(run.demo.cards, options.max_height - 2, beside)
        number = int(run.elapsed() / _PAGE_SECONDS) % len(pages)
        layout = Layout()
        layout.split_column(
            Layout(self._head(), size=1),
            *(Layout(self._card(card, size, beside), size=size) for card, size in pages[number]),
            Layout(self._foot(number + 1, len(pages)), size=1),
        )
        yield layout

    def _head(self) -> RenderableType:
        run = self._run
        if time.monotonic() >= self._due:
            self._due += 1
            self._arrivals.append(run.sender.sent - self._before)
            self._before = run.sender.sent
        highest = max(1, *self._arrivals)
        bars = "".join(_BARS[round(count / highest * (len(_BARS) - 1))] for count in self._arrivals)
        late, bad = run.rejected()
        counts = f"late [yellow]{late:,}[/]  bad [yellow]{bad:,}[/]"
        return _line(
            f"[bold cyan]Millstream[/] · {run.demo.demo.title}",
            f"{run.sender.sent:,} lines in [cyan]{bars}[/]  {counts}",
        )

    def _foot(self, page: int, pages: int) -> RenderableType:
        run = self._run
        spinner = _SPINNER[int(time.monotonic() * 8) % len(_SPINNER)]
        seconds = f"{time.monotonic() - run.began:.0f} s"
        if run.live_since is not None:
            seconds = f"{min(run.elapsed(), run.seconds):.0f} of {run.seconds} s"
        turn = f"page {page} of {pages} · " if pages > 1 else ""
        return _line(f"[cyan]{spinner}[/] {run.step} [dim]({seconds})[/]", f"[dim]{turn}Ctrl-C ends[/]")

    def _card(self, card: Card, size: int, beside: bool) -> RenderableType:
        layout, body = Layout(), Layout()
        query = Layout(coloured(card.text))
        if beside:
            query.size = max(each.width for each in self._run.demo.cards) + 2
            body.split_row(query, Layout(self._result(card, size - 2)))
        else:
            query.size = card.height
            body.split_column(query, Layout(self._result(card, size - card.height - 2)))
        layout.split_column(Layout(self._title(card), size=1), body)
        return layout

    def _title(self, card: Card) -> Rule:
        progress = self._run.progress().get(card.name)
        counts = "" if progress is None else f" [dim]· {progress.rows_in:,} in, {progress.rows_out:,} out[/]"
        return Rule(f"[bold]{card.name}[/]: {escape(card.title)}{counts}", align="left", style="cyan")

    def _result(self, card: Card, rows: int) -> RenderableType:
        """Return the newest lines or rows, or the step that must end before there are any."""
        run = self._run
        if card.is_input:
            lines = run.sender.newest(rows + 1)
            shown = [Text.assemble((f"{stream} ", "dim"), line) for stream, line in lines]
            return Text("\n", no_wrap=True, overflow="ellipsis").join(
                shown or [Text(" ")]
            )  # an empty text would be drawn as a placeholder
        newest = run.newest.get(card.name)
        if newest is not None:
            newest.update()
        if newest is None or not len(newest):
            return Text("not started yet" if newest is None else "waiting for the first rows", style="dim")
        return newest.table(rows)


def _pages(cards: Sequence[Card], room: int, beside: bool) -> list[list[tuple[Card, int]]]:
    """Divide cards into pages, each with the lines that it gets.

    The last page begins with cards of the page before it, if there is room. The last card of a page gets the
    lines that are left.
    """
    sizes = [1 + max(card.height, _FEWEST_ROWS + 1) for card in cards]
    if not beside:
        sizes = [1 + card.height + _FEWEST_ROWS + 1 for card in cards]
    pages = []
    last = 0
    while last < len(cards):
        first = last
        last += 1
        while last < len(cards) and sum(sizes[first : last + 1]) <= room:
            last += 1
        while last == len(cards) and first and sum(sizes[first - 1 :]) <= room:
            first -= 1
        used = sizes[first : last - 1]
        pages.append(list(zip(cards[first:last], [*used, room - sum(used)], strict=True)))
    return pages


def _line(left: str, right: str) -> Table:
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(no_wrap=True, ratio=1)
    line.add_column(no_wrap=True, justify="right")
    line.add_row(left, right)
    return line


def coloured(script: str) -> Text:
    """Return a script with its keywords, texts and comments in colours."""
    text = Text(script, no_wrap=True, overflow="ellipsis")
    for pattern, style in _STYLES:
        text.highlight_regex(pattern, style)
    return text
