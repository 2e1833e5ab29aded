"""Limit on queries that start at the same time.

When a query starts, Spark starts a Python process for each of its stages and waits ten seconds for it. If all
queries of a long script start at once on a small machine, some processes miss that limit.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_AT_ONCE = max(2, (os.cpu_count() or 1) // 2)
_PATIENCE_SECONDS = 20.0
"""Time after which a slow query no longer holds up the others."""

_IDLE = ("Waiting for data to arrive", "Waiting for next trigger")


class StartThrottle:
    """Starts queries while fewer than ``at_once`` others are before the end of their first batch."""

    def __init__(self, at_once: int = _AT_ONCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._at_once = at_once
        self._clock = clock
        self._lock = threading.Lock()
        self._beginning: list[tuple[StreamingQuery, float]] = []

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start a query as soon as the limit permits."""
        with self._lock:
            while len(self._still()) >= self._at_once:
                time.sleep(0.1)
            query = writer.start()
            self._beginning.append((query, self._clock()))
            return query

    def _still(self) -> list[tuple[StreamingQuery, float]]:
        now = self._clock()
        self._beginning = [
            (query, since)
            for query, since in self._beginning
            if now - since < _PATIENCE_SECONDS and not _has_begun(query)
        ]
        return self._beginning


def _has_begun(query: StreamingQuery) -> bool:
    try:
        return not query.isActive or query.lastProgress is not None or query.status["message"] in _IDLE
    except (OSError, Py4JError):
        return True  # the JVM has ended


BEGINNINGS = StartThrottle()
