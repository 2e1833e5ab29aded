"""A streaming query of Spark that computes the results of one query, or of several over the same streams."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.runtime.queries.heartbeats import HeartbeatSender
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.queries.start_throttle import BEGINNINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True)
class Member:
    """A query with the function that computes its result from a micro-batch of all members."""

    query: RunningQuery
    finish: Callable[[DataFrame], DataFrame]


class SparkQuery:
    """Runs a streaming DataFrame for its members, and ends with the last of them.

    ``directory`` is Spark's part of the checkpoint. ``on_end`` is called once, after the end of all members.
    With ``heartbeats``, their sender ends a bounded query when all windows have closed.
    """

    def __init__(
        self,
        frame: DataFrame,
        members: Sequence[Member],
        directory: str,
        heartbeats: HeartbeatSender | None,
        *,
        bounded: bool,
        on_end: Callable[[], object],
    ) -> None:
        self._frame = frame
        self._members = tuple(members)
        self._directory = directory
        self._on_end = on_end
        self._heartbeats = heartbeats
        self.bounded = bounded
        self._active = [member.query for member in members]
        self._unreleased = list(self._active)
        self._lock = threading.Lock()
        self._streaming: StreamingQuery | None = None

    @property
    def streaming(self) -> StreamingQuery:
        assert self._streaming is not None, "it has been started"
        return self._streaming

    @property
    def failure(self) -> BaseException | None:
        """The error that kept a heartbeat or an end marker from the query."""
        return None if self._heartbeats is None else self._heartbeats.failure

    def start(self, into: Callable[[DataFrame], DataStreamWriter] | None = None) -> None:
        """Start it, with results into a sink or to its members."""
        writer = self._frame.writeStream.foreachBatch(self._collect) if into is None else into(self._frame)
        writer = writer.option("checkpointLocation", self._directory).outputMode("append")
        if self.bounded and self._heartbeats is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime="0 seconds")
        self._streaming = BEGINNINGS.start(writer)
        if self._heartbeats is not None:
            self._heartbeats.start(self._streaming)
        for member in self._members:
            member.query.watch(self)

    def _collect(self, batch: DataFrame, batch_id: int) -> None:
        active = [member for member in self._members if member.query in self._active]
        # Each further member would compute the stages of all of them again.
        shared = batch.persist() if len(active) > 1 else batch
        try:
            for member in active:
                member.query.take(member.finish(shared), batch_id)
        finally:
            if shared.is_cached:
                shared.unpersist()

    def stop(self, query: RunningQuery) -> bool:
        """Stop a member; return True if it was the last, so that Spark's query ends too."""
        with self._lock:
            self._active = _without(query, self._active)
            last = not self._active
        if last and self._streaming is not None:
            with contextlib.suppress(Exception):
                self._streaming.stop()
        return last

    def release(self, query: RunningQuery) -> None:
        """Release a member that has ended, and everything with the last one."""
        self.stop(query)
        with self._lock:
            self._unreleased = _without(query, self._unreleased)
            last = not self._unreleased
        if last:
            self.abandon()
            self._on_end()

    def abandon(self) -> None:
        """Send nothing more, as Spark has been killed."""
        if self._heartbeats is not None:
            self._heartbeats.stop()


def _without(query: RunningQuery, queries: list[RunningQuery]) -> list[RunningQuery]:
    return [one for one in queries if one is not query]
