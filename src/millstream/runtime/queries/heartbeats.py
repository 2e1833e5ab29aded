"""Heartbeats for silent sources and end markers for finished ones, sent to a running query."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.spark.host.control_stream import ControlStream


_BUSY = ("Processing", "Initializing")
"""Prefixes of Spark's status messages for a query that is working."""


_LOOK_EVERY = 0.5
"""Seconds between looks at Spark's progress."""


def now() -> int:
    """Return the time in microseconds."""
    return time.time_ns() // 1000


@dataclass(frozen=True)
class HeartbeatSchedule:
    """Heartbeat interval of a stream, and the delay of its tuples behind the clock.

    Heartbeats concern its timestamp, or the attribute ``on``.
    """

    stream: str
    seconds: float
    slack_microseconds: int = 0
    on: str | None = None
    clock: Callable[[], int] = now
    """A time in microseconds: tuples that were stamped before it can be read."""


class HeartbeatSender:
    """Runs beside a query until it ends.

    ``rows`` returns the number of rows a stream has had so far: while it grows, the stream needs no
    heartbeat. ``ending`` maps bounded streams of an unbounded query to Spark's names of their sources.
    """

    def __init__(
        self,
        control: ControlStream,
        streams: Sequence[str],
        beats: Sequence[HeartbeatSchedule],
        rows: Callable[[str], int],
        bounded: bool,
        ending: Mapping[str, str] | None = None,
    ) -> None:
        self._control = control
        self._streams = list(streams)
        self._beats = beats
        self._rows = rows
        self._bounded = bounded
        self._ending = dict(ending or {})
        self._stopped = threading.Event()
        self.failure: BaseException | None = None
        """Error that kept a message from the query, which was stopped for it."""

    def start(self, query: StreamingQuery) -> None:
        if self._bounded:
            self._beside(query, self._to_the_end)
            # A heartbeat follows the clock: it would make unread tuples late.
            return
        if self._ending:
            self._beside(query, self._tell_ends)
        for beat in self._beats:
            self._beside(query, partial(self._keep_beating, schedule=beat))

    def stop(self) -> None:
        self._stopped.set()

    def _beside(self, query: StreamingQuery, work: Callable[[StreamingQuery], None]) -> None:
        """Run ``work`` in a thread; if it fails, stop the query, which would otherwise wait for ever."""

        def run() -> None:
            try:
                work(query)
            except Exception as error:  # noqa: BLE001 (the thread that watches the query raises it)
                if query.isActive and not self._stopped.is_set():
                    self.failure = error
                    with contextlib.suppress(Exception):
                        query.stop()

        threading.Thread(target=run, daemon=True).start()

    def _to_the_end(self, query: StreamingQuery) -> None:
        """Send the end of all streams when everything has been read, let the windows close, and stop."""
        query.processAllAvailable()
        self._control.end(self._streams)
        query.processAllAvailable()
        query.stop()

    def _tell_ends(self, query: StreamingQuery) -> None:
        """Send the end of a stream over files when Spark has looked for more files in vain."""
        while self._ending and not self._stopped.wait(_LOOK_EVERY) and query.isActive:
            progress = query.lastProgress
            sources = progress.sources if progress is not None else []
            done = {s.description for s in sources if s.endOffset and s.startOffset == s.endOffset}
            ended = [stream for stream, source in self._ending.items() if source in done]
            if ended:
                self._control.end(ended)
            for stream in ended:
                del self._ending[stream]

    def _keep_beating(self, query: StreamingQuery, schedule: HeartbeatSchedule) -> None:
        rows, since = self._rows(schedule.stream), time.monotonic()
        while not self._stopped.wait(min(schedule.seconds / 4, 1.0)) and query.isActive:
            come = self._rows(schedule.stream)
            # A stream is silent if there is no input, not if reading takes long.
            if come != rows or query.status["message"].startswith(_BUSY):
                rows, since = come, time.monotonic()
            elif time.monotonic() - since >= schedule.seconds:
                since = time.monotonic()
                # The clock is read before the heartbeat is written, so tuples stamped later are newer.
                reached = schedule.clock() - schedule.slack_microseconds
                self._control.heartbeat(schedule.stream, reached, schedule.on)
