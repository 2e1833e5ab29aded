"""Queries over the same streams, run as one Spark query so that every stream is read once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.runtime.checkpoints.checkpoint import Checkpoint
from millstream.runtime.queries.heartbeats import HeartbeatSender
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.queries.start_throttle import BEGINNINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.spark.lowering.shared_scan import SharedScan


@dataclass(frozen=True)
class Member:
    """A query of a group; ``finish`` computes its result from the rows of all stages."""

    query: RunningQuery
    finish: Callable[[DataFrame], DataFrame]


class SharedQuery:
    """Several queries with one Spark query, which ends with the last of them."""

    def __init__(self, shared: SharedScan, members: Sequence[Member], checkpoint: Checkpoint) -> None:
        self._shared = shared
        self._members = list(members)
        self._checkpoint = checkpoint
        self._active = set(range(len(members)))
        self._streaming: StreamingQuery | None = None
        self._lock = threading.Lock()

    def start(self, heartbeats: HeartbeatSender, *, bounded: bool) -> None:
        writer = self._shared.frame.writeStream.foreachBatch(self._collect)
        writer = writer.option("checkpointLocation", self._checkpoint.spark).outputMode("append")
        self._streaming = BEGINNINGS.start(writer.trigger(processingTime="0 seconds"))
        heartbeats.start(self._streaming)
        for i, member in enumerate(self._members):
            member.query.on_end(lambda i=i: self._release(i, heartbeats))  # type: ignore[misc]
            member.query.watch(
                self._streaming,
                heartbeats,
                bounded=bounded,
                stop=lambda i=i: self._stop(i),  # type: ignore[misc]
            )

    def _collect(self, batch: DataFrame, batch_id: int) -> None:
        batch.persist()
        try:
            for tag, member in enumerate(self._members):
                if tag in self._active:
                    member.query.take(member.finish(batch), batch_id)
        finally:
            batch.unpersist()

    def _stop(self, tag: int) -> bool:
        """Stop one query; return True if it was the last, so that Spark's query ends too."""
        with self._lock:
            self._active.discard(tag)
            last = not self._active
        if last and self._streaming is not None:
            with contextlib.suppress(Exception):
                self._streaming.stop()
        return last

    def _release(self, tag: int, heartbeats: HeartbeatSender) -> None:
        if self._stop(tag):
            heartbeats.stop()
            self._checkpoint.remove()
