"""What a demo looks like: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.layout import Layout
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import Progress as ProgressBar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from millstream.cli.terminal_views import NewestRows, RateMeter, progress_table
from millstream.demo.bundle import AuctionDemo
from millstream.demo.sender import Sender
from millstream.runtime.queries.query_progress import Progress
from millstream.runtime.queries.running_query import RunningQuery

_RATE_SECONDS = 5.0
_LINE_SECONDS = 5.0
_SAMPLES = 3
_BARS = " ▁▂▃▄▅▆▇█"
_BOXED_HEIGHT = 32
"""Lines of a terminal from which on there is room for boxes."""

_KEYWORDS = (
    "AS|BAD|BY|CREATE|FROM|FUNCTION|INTERVAL|INTO|JOIN|ON|OPTIONS|ORDER|SECONDS|SELECT|SLACK|SOURCE|STREAM"
    "|TABLE|USING|WHERE"
)
_STYLES = (
    (r"\b\d+(\.\d+)?\b", "magenta"),
    (rf"\b({_KEYWORDS})\b", "bold cyan"),
    (r"\b(INT|STRING|DOUBLE|TIMESTAMP)\b", "blue"),
    (r"'[^'\n]*'", "green"),
    (r"--.*", "not bold italic bright_black"),
)


@dataclass
class DemoRun:
    """A demo while it plays, and what there was to see when it is over."""

    demo: AuctionDemo
    queries: Sequence[RunningQuery]
    newest: Sequence[NewestRows]
    sender: Sender
    seconds: int
    live_since: float | None = None
    """When the first rows were there."""
    is_ending: bool = False
    progress: dict[str, Progress] = field(default_factory=dict)

    def elapsed(self) -> float:
        """Seconds since the first rows."""
        return 0.0 if self.live_since is None else time.monotonic() - self.live_since

    def finish(self) -> None:
        """Write down how far everything has come, before it is gone."""
        self.progress = {query.name: query.progress for query in self.queries}

    def bad(self) -> int:
        """Lines that could not be read. Several queries may have met the same."""
        streams: dict[str, int] = {}
        for progress in self.progress.values() or [query.progress for query in self.queries]:
            for stream, count in progress.bad.items():
                streams[stream] = max(streams.get(stream, 0), count)
        return sum(streams.values())


class View(Protocol):
    """Where a demo is shown."""

    def introduce(self, demo: AuctionDemo) -> None:
        """What it is, and the script."""

    def starting(self) -> AbstractContextManager[Callable[[str], None]]:
        """While everything starts; what is given tells what is being done."""

    def playing(self, show: DemoRun) -> AbstractContextManager[Callable[[], None]]:
        """While it plays; what is given brings the view up to date."""

    def conclude(self, demo: AuctionDemo, show: DemoRun | None) -> None:
        """What there was to see, and what to do next."""


def view() -> View:
    """The view that standard output is good for."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    console = _Console(highlight=False)
    return _Screen(console) if sys.stdout.isatty() and not console.is_dumb_terminal else _Lines(console)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # The command line knows what to do.
        raise BrokenPipeError


# ---------------------------------------------------------------- on a terminal


@dataclass
class _Screen:
    console: Console

    def introduce(self, demo: AuctionDemo) -> None:
        title = f"[bold cyan]Millstream[/] · {demo.title}"
        self.console.print(Rule(title, align="left", style="cyan"), "")
        self.console.print(_coloured(demo.shown), no_wrap=True, overflow="ellipsis", crop=True)
        # Below the script, because its beginning is out of sight on many terminals.
        self.console.print(Panel(demo.about, box=box.ROUNDED, border_style="cyan"))

    @contextmanager
    def starting(self) -> Iterator[Callable[[str], None]]:
        columns = (SpinnerColumn(style="cyan"), TextColumn("{task.description}"), TimeElapsedColumn())
        with ProgressBar(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda text: bar.update(task, description=text)

    @contextmanager
    def playing(self, show: DemoRun) -> Iterator[Callable[[], None]]:
        screen = _LiveScreen(show)
        with Live(screen, console=self.console, screen=True, auto_refresh=False) as live:
            yield live.refresh

    def conclude(self, demo: AuctionDemo, show: DemoRun | None) -> None:
        _conclude(self.console, demo, show)


class _LiveScreen:
    """All of the terminal: the time, the queries, and a panel for the newest rows of each."""

    def __init__(self, show: DemoRun) -> None:
        self._show = show
        self._rates = RateMeter(_RATE_SECONDS)
        self._arrivals = _Sparkline()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        show = self._show
        panels = [_RowsPanel(*each) for each in zip(show.queries, show.newest, _titles(show), strict=True)]
        boxed = options.max_height >= _BOXED_HEIGHT
        layout = Layout()
        layout.split_column(
            Layout(self._head(), size=2),
            Layout(progress_table(show.queries, self._rates, show.demo.titles), size=len(panels) + 1),
            *(_row(panels[i : i + 2], boxed) for i in range(0, len(panels), 2)),
            Layout(self._foot(), size=1),
        )
        yield layout

    def _head(self) -> Table:
        show = self._show
        self._arrivals.add(show.sender.sent)
        line = Table.grid(expand=True, padding=(0, 1))
        line.add_column(no_wrap=True, ratio=1)
        line.add_column(no_wrap=True, justify="right")
        line.add_row(
            f"[bold cyan]Millstream[/] · {show.demo.title}",
            f"{show.sender.sent:,} lines in  [cyan]{self._arrivals}[/]  "
            f"{_clock(min(show.elapsed(), show.seconds))} of {_clock(show.seconds)}",
        )
        return line

    def _foot(self) -> Text:
        if self._show.live_since is None:
            text = "Spark compiles the queries: the first rows take some seconds"
        else:
            text = "the last lines are being read" if self._show.is_ending else "Ctrl-C ends it sooner"
        return Text(text, style="dim", justify="right", no_wrap=True)


def _row(panels: Sequence[_RowsPanel], boxed: bool) -> Layout:
    row = Layout()
    for panel in panels:
        panel.boxed = boxed
        panel.margin = 0 if panel is panels[-1] else 2
    row.split_row(*(Layout(panel) for panel in panels))
    return row


@dataclass
class _RowsPanel:
    """The newest rows of a query, as many as there is room for."""

    query: RunningQuery
    newest: NewestRows
    title: str
    boxed: bool = False
    margin: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or options.max_height
        rows = height - (3 if self.boxed else 2)
        waiting = Text("waiting for the first rows ...", style="dim")
        body = self.newest.table(rows, tight=not self.boxed) if len(self.newest) else waiting
        title = f"[bold]{self.query.name}[/] {self.title}"
        if self.boxed:
            yield Panel(
                body, title=title, title_align="left", box=box.ROUNDED, border_style="cyan", height=height
            )
        else:
            yield Padding(Group(Rule(title, align="left", style="cyan"), body), (0, self.margin, 0, 0))


class _Sparkline:
    """How many came in each of the last seconds, as little bars."""

    def __init__(self, seconds: int = 12) -> None:
        self._counts: deque[int] = deque([0] * seconds, maxlen=seconds)
        self._due = time.monotonic() + 1
        self._before = 0

    def add(self, total: int) -> None:
        if time.monotonic() >= self._due:
            self._due += 1
            self._counts.append(total - self._before)
            self._before = total

    def __str__(self) -> str:
        highest = max(1, *self._counts)
        return "".join(_BARS[round(count / highest * (len(_BARS) - 1))] for count in self._counts)


def _coloured(script: str) -> Text:
    text = Text(script)
    for pattern, style in _STYLES:
        text.highlight_regex(pattern, style)
    return text


# ---------------------------------------------------------------- elsewhere


@dataclass
class _Lines:
    console: Console

    def introduce(self, demo: AuctionDemo) -> None:
        self.console.print(f"Millstream: {demo.title}\n\n{demo.about}\n")
        self.console.print(Text(demo.shown), soft_wrap=True)

    @contextmanager
    def starting(self) -> Iterator[Callable[[str], None]]:
        started = time.monotonic()
        yield lambda text: self._say(f"[{time.monotonic() - started:4.0f} s] {text}")

    @contextmanager
    def playing(self, show: DemoRun) -> Iterator[Callable[[], None]]:
        self.console.print(f"\nThe auction is open, for {show.seconds} s from the first rows on.")
        started = time.monotonic()
        due = started + _LINE_SECONDS

        def refresh() -> None:
            nonlocal due
            now = time.monotonic()
            if now >= due:
                due += _LINE_SECONDS
                out = ", ".join(f"{query.name} {query.progress.rows_out:,}" for query in show.queries)
                counts = f"{show.sender.sent:,} lines in; rows out: {out}; bad: {show.bad():,}"
                self._say(f"[{now - started:4.0f} s] {counts}")

        yield refresh

    def conclude(self, demo: AuctionDemo, show: DemoRun | None) -> None:
        if show is not None:
            for query, newest, title in zip(show.queries, show.newest, _titles(show), strict=True):
                self.console.print(f"\n{query.name}: {title}")
                self.console.print(newest.table(_SAMPLES))
        _conclude(self.console, demo, show)

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)


# ---------------------------------------------------------------- for both


def _conclude(console: Console, demo: AuctionDemo, show: DemoRun | None) -> None:
    if show is None:
        console.print("Ended before the auction began.")
        return
    console.print()
    out = sum(progress.rows_out for progress in show.progress.values())
    console.print(
        f"[bold]The auction is over.[/] {show.sender.sent:,} lines came in and {out:,} rows came out.\n"
        f"{show.bad():,} lines could not be read: they are counted, and stop nothing."
    )
    console.print()
    console.print(_totals(demo.titles, show.progress))
    console.print()
    console.print("[bold]What to try next[/]")
    command, script = _command(), _relative(demo.path)
    for what, how in (
        ("how each query is run", f"{command} explain {script}"),
        ("a longer auction", f"{command} demo --seconds 300"),
        ("a query of your own", f"""echo "SELECT 6 * 7 AS answer" | {command} run -"""),
    ):
        console.print(f"  {what}:", style="dim")
        console.print(Text(f"    {how}", style="cyan"), soft_wrap=True)


def _totals(titles: Mapping[str, str], progress: Mapping[str, Progress]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("query")
    table.add_column("about")
    for title in ("rows in", "rows out", "bad"):
        table.add_column(title, justify="right")
    for name, made in progress.items():
        counts = (made.rows_in, made.rows_out, made.bad_total)
        table.add_row(name, titles.get(name, ""), *(f"{count:,}" for count in counts))
    return table


def _titles(show: DemoRun) -> list[str]:
    return [show.demo.titles.get(query.name, "") for query in show.queries]


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _command() -> str:
    """How this program is called from here."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_relative(Path(sys.executable))} -m millstream"
    found = shutil.which("millstream")
    return "millstream" if found and Path(found).samefile(called) else _relative(called)


def _relative(path: Path) -> str:
    """A path as one writes it here, if it is below."""
    path, here = path.absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) and here != here.parent else path)
