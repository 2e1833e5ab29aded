"""``demo``: a bundled example that plays itself."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Self

from millstream.cli.demo_views import DemoRun, View, view
from millstream.cli.terminal_views import NewestRows
from millstream.demo.bundle import AuctionDemo, auction_demo
from millstream.errors import ExecutionError, MillstreamError
from millstream.runtime.connection import Mill
from millstream.runtime.queries.running_query import RunningQuery

DEMOS = {"auction": auction_demo}

_TICK = 0.25
_QUIET = 1.5
"""Seconds without a new row, after which everything that was sent must have been read."""
_LONGEST_WAIT = 120.0
_SETTINGS = {
    # A demo is over before thorough compilation has paid off: it would take half of two cores.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # Batches are small: one task, and no second thoughts about its plan.
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.adaptive.enabled": "false",
}


def run_demo(name: str, seconds: int) -> None:
    """Show a demo that is live for some seconds, or until Ctrl-C."""
    if name not in DEMOS:
        raise MillstreamError(f"there is no demo '{name}'", hint=f"the demos are: {', '.join(DEMOS)}")
    screen = view()
    with (
        Mill(settings=_SETTINGS, warns=False) as mill,
        DEMOS[name](mill.listen) as demo,
        _Interrupt() as interrupt,
    ):
        screen.introduce(demo)
        queries = _start(mill, demo, screen, interrupt)
        show = None if interrupt.asked else _play(demo, queries, seconds, screen, interrupt)
        mill.stop()
        screen.conclude(demo, show)


class _Interrupt:
    """Makes Ctrl-C a wish to end in order. Once more, it ends everything at once.

    That must not happen while Spark starts, or its JVM would be left behind: ``answer`` asks for patience.
    """

    def __init__(self) -> None:
        self.asked = False
        self.answer: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.answer is not None:
            self.answer()
        elif self.asked:
            raise KeyboardInterrupt
        self.asked = True


def _start(mill: Mill, demo: AuctionDemo, screen: View, interrupt: _Interrupt) -> list[RunningQuery]:
    """Start Spark and the queries, unless somebody has had enough of it."""
    queries: list[RunningQuery] = []
    with screen.starting() as say:
        interrupt.answer = lambda: say("ending, as soon as Spark has started")
        say("checking the script")
        statements = mill.analyse(demo.text, demo.path.name)
        say("starting Spark on this machine, which takes some seconds")
        _ = mill.spark
        if not interrupt.asked:
            say(f"starting {len(demo.titles)} queries")
            outcomes = mill.perform_all(statements)
            queries = [outcome for outcome in outcomes if isinstance(outcome, RunningQuery)]
        interrupt.answer = None
    return queries


def _play(
    demo: AuctionDemo, queries: list[RunningQuery], seconds: int, screen: View, interrupt: _Interrupt
) -> DemoRun:
    """Send events to the queries and show what they make of them."""
    newest = [NewestRows(query) for query in queries]
    with demo.sender() as sender:
        show = DemoRun(demo, queries, newest, sender, seconds)
        with screen.playing(show) as refresh:
            for _ in _while_live(show):
                if interrupt.asked:
                    break
                _check(show)
                refresh()
                time.sleep(_TICK)
            show.finish()
    return show


def _while_live(show: DemoRun) -> Iterator[None]:
    """Until the first rows, then as long as the demo is to last, then until everything has been read."""
    waiting_since = time.monotonic()
    while not all(query.progress.rows_in for query in show.queries):
        if time.monotonic() > waiting_since + _LONGEST_WAIT:
            raise ExecutionError(
                f"no query has read anything for {_LONGEST_WAIT:.0f} seconds",
                hint="this machine may be too busy: try again later",
            )
        yield
    show.live_since = time.monotonic()
    while show.elapsed() < show.seconds:
        yield
    show.sender.stop()
    show.is_ending = True
    ending_since = quiet_since = time.monotonic()
    seen = 0
    while time.monotonic() < min(quiet_since + _QUIET, ending_since + _LONGEST_WAIT):
        rows = sum(query.progress.rows_in for query in show.queries)
        if rows != seen:
            quiet_since, seen = time.monotonic(), rows
        yield


def _check(show: DemoRun) -> None:
    """Raise what has gone wrong, if anything has."""
    show.sender.check()
    for query in show.queries:
        if query.wait(0):
            raise ExecutionError(f"query {query.name} has ended before the demo")
