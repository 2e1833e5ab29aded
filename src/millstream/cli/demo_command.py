"""``demo``: a bundled example that plays itself, on a screen or as plain lines."""

from __future__ import annotations

import itertools
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from millstream.analysis.definitions.statement_analyzer import AnalysedStatement, Definition, RunQuery
from millstream.cli.terminal_views import DemoRun, DemoScreen
from millstream.demo.bundle import DEMOS, prepared
from millstream.errors import ExecutionError, MillstreamError, did_you_mean
from millstream.runtime.connection import Mill
from millstream.runtime.queries.running_query import RunningQuery

_TICK = 0.25
_QUIET = 1.5
"""Seconds without a new row, after which everything that was sent must have been read."""
_LONGEST_WAIT = 120.0
_REPORT_SECONDS = 5.0
"""Seconds between two reports where there is no terminal."""
_SAMPLES = 5
_SETTINGS = {
    # A demo is over before thorough compilation has paid off: it would take half of two cores.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # Batches are small: one task, and no second thoughts about its plan.
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}

Show = Callable[[DemoRun], AbstractContextManager[Callable[[], None]]]
"""Shows a run while the context is open; its function is called every quarter of a second."""


def list_demos() -> None:
    """Print the names of the demos, with a line about each."""
    width = max(map(len, DEMOS))
    for name, demo in DEMOS.items():
        print(f"{name.ljust(width)}  {demo.about}")  # noqa: T201


def run_demo(name: str, seconds: int, show: Show | None = None) -> None:
    """Play a demo for some seconds from its first rows on, or until Ctrl-C."""
    if name not in DEMOS:
        hint = did_you_mean(name, DEMOS) or f"the demos are: {', '.join(DEMOS)}"
        raise MillstreamError(f"there is no demo '{name}'", hint=hint)
    console = _console()
    is_screen = sys.stdout.isatty() and not console.is_dumb_terminal

    def compiling(program: str, taken: float | None) -> None:
        run.compiling(program, taken)

    mill = Mill(settings=_SETTINGS, warns=False, compiling=compiling)
    with mill, prepared(DEMOS[name], mill.listen) as demo, _Interrupt() as interrupt, demo.sender() as sender:
        run = DemoRun(demo, sender, seconds)
        with (show or (_screen if is_screen else _lines))(run) as refresh:
            for _ in _played(run, mill, interrupt):
                if interrupt.asked:
                    break
                _check(run)
                refresh()
                time.sleep(_TICK)
            run.finish()
            mill.stop()
        conclude(run, console, samples=not is_screen)


class _Interrupt:
    """Makes Ctrl-C a wish to end in order. Once more, it ends everything at once.

    That must not happen while Spark starts, or its JVM would be left behind: see `answered`.
    """

    def __init__(self) -> None:
        self.asked = False
        self._answer: Callable[[], None] | None = None

    @contextmanager
    def answered(self, answer: Callable[[], None]) -> Iterator[None]:
        """Answer every Ctrl-C within the context, which is not left before its end."""
        self._answer = answer
        try:
            yield
        finally:
            self._answer = None

    def __enter__(self) -> Self:
        self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._answer is not None:
            self._answer()
        elif self.asked:
            raise KeyboardInterrupt
        self.asked = True


# ---------------------------------------------------------------- playing


def _played(run: DemoRun, mill: Mill, interrupt: _Interrupt) -> Iterator[None]:
    """Start Spark and the queries, play for the seconds of the demo, and wait until all lines are read."""
    with interrupt.answered(lambda: run.say("ending as soon as Spark has started")):
        run.say("checking the script")
        statements = mill.analyse(run.demo.text, run.demo.demo.path.name)
        run.say("starting Spark; lines that arrive are kept")
        _ = mill.spark
    for names, part in _parts(statements):
        yield
        with interrupt.answered(lambda: run.say("ending as soon as the queries have started")):
            run.say(f"preparing {', '.join(names)}")
            queries = [one for one in mill.perform_all(part) if isinstance(one, RunningQuery)]
            run.follow(queries or map(mill.view, names))
        run.say(f"waiting for the first rows of {', '.join(names)}")
        yield from _first_rows(run, names)
    run.say("live")
    while run.elapsed() < run.seconds:
        yield
    run.sender.stop()
    run.say("reading the last lines")
    ending_since = quiet_since = time.monotonic()
    seen = 0
    while time.monotonic() < min(quiet_since + _QUIET, ending_since + _LONGEST_WAIT):
        rows = sum(progress.rows_in for progress in run.progress().values())
        if rows != seen:
            quiet_since, seen = time.monotonic(), rows
        yield


def _first_rows(run: DemoRun, names: Sequence[str]) -> Iterator[None]:
    """Wait for a row of one of the queries; the next ones get all cores while they start."""
    waiting_since = time.monotonic()
    while not any(len(run.newest[name]) for name in names):
        if time.monotonic() > waiting_since + _LONGEST_WAIT:
            raise ExecutionError(
                f"no row of {' or '.join(names)} has come for {_LONGEST_WAIT:.0f} seconds",
                hint="this machine may be too busy: try again later",
            )
        yield
        run.newest[names[0]].update()
    run.live_since = run.live_since or time.monotonic()


def _parts(statements: Sequence[AnalysedStatement]) -> Iterator[tuple[list[str], list[AnalysedStatement]]]:
    """Divide a script, so that the first queries can be seen while others start: a view is a part by itself.

    Queries between two views share the reading of their streams.
    """
    names: list[str] = []
    part: list[AnalysedStatement] = []
    number = itertools.count(1)
    for statement in statements:
        meaning = statement.meaning
        views = [view.name for view, _ in meaning.maintained] if isinstance(meaning, Definition) else []
        if views and names:
            yield names, part
            names, part = [], []
        part.append(statement)
        names += views
        if isinstance(statement.meaning, RunQuery):
            names.append(f"q{next(number)}")
        if views:
            yield names, part
            names, part = [], []
    if names:
        yield names, part


def _check(run: DemoRun) -> None:
    """Raise the error of the sender or of a query, if there is one."""
    run.sender.check()
    for query in run.queries.values():
        if query.wait(0):
            raise ExecutionError(f"query {query.name} has ended before the demo")


# ---------------------------------------------------------------- showing


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # The command line knows what to do.
        raise BrokenPipeError


def _console() -> Console:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    return _Console(highlight=False)


@contextmanager
def _screen(run: DemoRun) -> Iterator[Callable[[], None]]:
    """Fill the terminal; it is drawn by a thread, also while Spark starts."""
    with Live(DemoScreen(run), console=_console(), screen=True, refresh_per_second=5):
        yield lambda: None


@contextmanager
def _lines(run: DemoRun) -> Iterator[Callable[[], None]]:
    """Print the script, each step, and a report every few seconds."""
    console = _console()
    due = run.began + _REPORT_SECONDS

    def tell(text: str) -> None:
        console.print(Text(f"[{time.monotonic() - run.began:4.0f} s] {text}"), soft_wrap=True)

    def refresh() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + _REPORT_SECONDS
            late, bad = run.rejected()
            out = ", ".join(f"{name} {progress.rows_out:,}" for name, progress in run.progress().items())
            tell(f"{run.sender.sent:,} lines in; rows out: {out}; late {late:,}, bad {bad:,}")

    console.print(Text(f"Millstream: {run.demo.demo.title}\n{run.demo.demo.about}\n"), soft_wrap=True)
    console.print(Text(run.demo.cards[0].text + "\n"), soft_wrap=True)
    run.tell = tell
    yield refresh


def conclude(run: DemoRun, console: Console, *, samples: bool) -> None:
    """Print the last rows of each query if they are wanted, the counts, and what to do next."""
    if not run.queries:
        console.print("Ended before the first query was started.")
        return
    progress = run.progress()
    started = [card for card in run.demo.cards if card.name in progress]
    for card in started if samples else ():
        console.print(Text(f"\n-- {card.name}: {card.title}\n{card.text}\n"), soft_wrap=True)
        console.print(run.newest[card.name].table(_SAMPLES))
    late, bad = run.rejected()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("query", "shows"):
        table.add_column(title)
    for title in ("rows in", "rows out"):
        table.add_column(title, justify="right")
    for card in started:
        counts = progress[card.name]
        table.add_row(card.name, card.title, f"{counts.rows_in:,}", f"{counts.rows_out:,}")
    console.print(
        f"\n[bold]The demo is over[/] after {time.monotonic() - run.began:.0f} s. "
        f"{run.sender.sent:,} lines came in. "
        f"{late:,} late and {bad:,} bad ones were counted, and stopped nothing.\n"
    )
    console.print(table, "")
    console.print("[bold]Next[/]")
    command, script = _command(), _relative(run.demo.demo.path)
    for what, how in (
        ("its script", f"less {script}"),
        ("plans of the queries", f"{command} explain {script}"),
        ("other demos", f"{command} demo --list"),
        ("a query of your own", f'echo "SELECT 6 * 7 AS answer" | {command} run -'),
    ):
        console.print(Text.assemble(f"  {what:<21} ", (how, "cyan")), soft_wrap=True)


def _command() -> str:
    """Return the command line by which this program is called from here."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_relative(Path(sys.executable))} -m millstream"
    found = shutil.which("millstream")
    return "millstream" if found and Path(found).samefile(called) else _relative(called)


def _relative(path: Path) -> str:
    """Return a path relative to the current directory, if it is below."""
    path, here = path.absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) and here != here.parent else path)
