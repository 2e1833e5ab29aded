"""How far a query has come: rows in and out, bad records, time, rates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class Progress:
    """A moment in the life of a query; counts are from its beginning."""

    rows_in: int = 0
    rows_out: int = 0
    bad: dict[str, int] = field(default_factory=dict)
    """Bad records by stream."""
    newest: str | None = None
    """The largest timestamp that has come in."""
    batches: int = 0
    batch_seconds: float = 0.0
    """How long the last batch took."""

    @property
    def bad_total(self) -> int:
        return sum(self.bad.values())

    def lag_seconds(self, now: datetime) -> float | None:
        """How far the newest timestamp is behind the clock, where it is a time at all."""
        if self.newest is None:
            return None
        try:
            newest = datetime.fromisoformat(self.newest)
        except ValueError:
            return None
        if newest.tzinfo is None:
            newest = newest.replace(tzinfo=now.tzinfo)
        return (now - newest).total_seconds()


class ProgressCounter:
    """Adds up what Spark reports batch by batch. ``streams`` maps the names of metrics to streams."""

    def __init__(self, streams: dict[str, str]) -> None:
        self._streams = streams
        self._last_batch = -1
        self.progress = Progress()

    def update(self, query: StreamingQuery) -> None:
        """Take in the batches that have ended since the last call."""
        last = query.lastProgress
        if last is None or last.batchId <= self._last_batch:
            return
        # All recent reports are a hundred texts of JSON: mostly the last one is enough.
        for report in [last] if last.batchId == self._last_batch + 1 else query.recentProgress:
            # While there is nothing to read Spark reports too, under the number of the batch to come.
            if report.batchId > self._last_batch and "addBatch" in report.durationMs:
                self._last_batch = report.batchId
                self._add(report)

    def _add(self, report: StreamingQueryProgress) -> None:
        before = self.progress
        bad = dict(before.bad)
        rows, newest = 0, before.newest
        for name, row in report.observedMetrics.items():
            stream = self._streams.get(name)
            if stream is None:
                continue
            counts: dict[str, Any] = row.asDict()
            rows += int(counts.get("rows") or 0)
            if counts.get("bad"):
                bad[stream] = bad.get(stream, 0) + int(counts["bad"])
            if counts.get("newest") is not None:
                newest = str(counts["newest"])
        self.progress = replace(
            before,
            rows_in=before.rows_in + rows,
            bad=bad,
            newest=newest,
            batches=before.batches + 1,
            batch_seconds=report.durationMs.get("triggerExecution", 0) / 1000,
        )
