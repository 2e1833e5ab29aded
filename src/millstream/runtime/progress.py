"""How far a query has come: rows in and out, bad records, time, rates."""

from __future__ import annotations

import json
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
    late: dict[str, int] = field(default_factory=dict)
    """Late tuples by stream."""
    rows: dict[str, int] = field(default_factory=dict)
    """Rows by stream, those included that the query does not want."""
    newest: str | None = None
    """The largest timestamp that has come in."""
    frontier: float | None = None
    """How far everything is final: the last punctuation, as the number in which the stream is ordered."""
    state_rows: int = 0
    state_bytes: int = 0
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds of the last batch by what they went into: Spark, pack, kernel, state."""
    batches: int = 0
    batch_seconds: float = 0.0
    """How long the last batch took."""

    @property
    def bad_total(self) -> int:
        return sum(self.bad.values())

    @property
    def late_total(self) -> int:
        return sum(self.late.values())

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
    """Adds up what Spark reports batch by batch.

    ``streams`` maps the names of metrics to streams, ``stages`` those of the reports of stages to the streams
    that each stage reads.
    """

    def __init__(self, streams: dict[str, str], stages: dict[str, tuple[str, ...]] | None = None) -> None:
        self._streams = streams
        self._stages = stages or {}
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
        bad, late, rows = dict(before.bad), dict(before.late), dict(before.rows)
        newest = before.newest
        count = 0
        for name, row in report.observedMetrics.items():
            stream = self._streams.get(name)
            if stream is None:
                continue
            counts: dict[str, Any] = row.asDict()
            here = int(counts.get("rows") or 0)
            count += here
            rows[stream] = rows.get(stream, 0) + here
            if counts.get("bad"):
                bad[stream] = bad.get(stream, 0) + int(counts["bad"])
            if counts.get("newest") is not None:
                newest = str(counts["newest"])
        batch_seconds = report.durationMs.get("triggerExecution", 0) / 1000
        self.progress = replace(
            before,
            rows_in=before.rows_in + count,
            rows=rows,
            bad=bad,
            late=late,
            newest=newest,
            batches=before.batches + 1,
            batch_seconds=batch_seconds,
        )
        if self._stages:
            self._add_stages(report, batch_seconds)

    def _add_stages(self, report: StreamingQueryProgress, batch_seconds: float) -> None:
        late = dict(self.progress.late)
        state_rows = state_bytes = 0
        timings = dict.fromkeys(("pack", "kernel", "state"), 0.0)
        frontiers: list[float] = []
        found: dict[str, int] = {}
        for name, row in report.observedMetrics.items():
            streams = self._stages.get(name)
            marks = [json.loads(mark) for mark in row["reports"] or ()] if streams is not None else []
            for i, stream in enumerate(streams or ()):
                # Two stages that read the same stream find the same tuples late.
                found[stream] = max(found.get(stream, 0), sum(mark["late"][i] for mark in marks))
            state_rows += sum(mark["state_rows"] for mark in marks)
            state_bytes += sum(mark["state_bytes"] for mark in marks)
            for part in timings:
                # Shards work at the same time, so the slowest counts.
                timings[part] += max((mark[f"{part}_ms"] for mark in marks), default=0.0) / 1000
            frontiers += [mark["frontier"][0] for mark in marks if mark["frontier"]]
        for stream, count in found.items():
            if stream and count:
                late[stream] = late.get(stream, 0) + count
        timings["spark"] = max(0.0, batch_seconds - sum(timings.values()))
        self.progress = replace(
            self.progress,
            late=late,
            state_rows=state_rows,
            state_bytes=state_bytes,
            timings=timings,
            frontier=min(frontiers, default=self.progress.frontier),
        )
