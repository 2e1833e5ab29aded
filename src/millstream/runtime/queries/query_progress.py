"""Progress of a query: rows in and out, bad records, time, rates."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.spark.host.shard_reports import Report, ShardReports


@dataclass(frozen=True)
class Progress:
    """Counts of a query since its start, at one moment."""

    rows_in: int = 0
    rows_out: int = 0
    bad: dict[str, int] = field(default_factory=dict)
    """Bad records by stream."""
    bad_records: dict[str, tuple[str, str]] = field(default_factory=dict)
    """A bad record of each stream that has one: the reason and the text."""
    late: dict[str, int] = field(default_factory=dict)
    """Late tuples by stream."""
    rows: dict[str, int] = field(default_factory=dict)
    """Rows by stream, including those that the query filters out."""
    newest: str | None = None
    """The largest timestamp so far."""
    frontier: float | None = None
    """The watermark: results before it are final. A number of the stream's order."""
    state_rows: int = 0
    state_bytes: int = 0
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds of the last batch in each part: spark, pack, kernel, state."""
    batches: int = 0
    last_batch: int = -1
    """Number of the last micro-batch counted."""
    batch_seconds: float = 0.0
    """Duration of the last batch."""

    @property
    def bad_total(self) -> int:
        return sum(self.bad.values())

    @property
    def late_total(self) -> int:
        return sum(self.late.values())

    def lag_seconds(self, now: datetime) -> float | None:
        """Return the delay of the newest timestamp behind the clock; None if it is not a time."""
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
    """Adds up Spark's progress reports batch by batch.

    ``streams`` maps names of metrics to streams; ``stages`` are the reports of the stages, each with the
    streams that it reads.
    """

    def __init__(
        self, streams: dict[str, str], stages: Iterable[tuple[ShardReports, tuple[str, ...]]] = ()
    ) -> None:
        self._streams = streams
        self._stages = [_StageCounter(reports, read) for reports, read in stages]
        self._rows: dict[str, int] = {}
        self._bad: dict[str, int] = {}
        self._bad_records: dict[str, tuple[str, str]] = {}
        self._last_batch = -1
        self._updating = threading.Lock()
        self.progress = Progress()
        self.is_done = False
        """True if a batch that has ended returned the last row that LIMIT allows."""

    def newest(self) -> list[str]:
        """Return the newest timestamps of streams, including the batch whose results are being collected.

        Derived streams are included: the report of a window comes after its tuples.
        """
        with self._updating:
            for stage in self._stages:
                stage.update()
            times = [time for stage in self._stages for time in (*stage.newest.values(), *stage.derived)]
            return [time for time in times if time is not None]

    def update(self, query: StreamingQuery) -> None:
        """Add the batches that have ended since the last call."""
        last = query.lastProgress
        if last is None or last.batchId <= self._last_batch:
            return
        # Reading all recent reports parses a hundred JSON texts; mostly the last one is enough.
        for report in [last] if last.batchId == self._last_batch + 1 else query.recentProgress:
            # Spark also reports while there is no input, under the number of the next batch.
            if report.batchId > self._last_batch and "addBatch" in report.durationMs:
                self._last_batch = report.batchId
                self._add(report)

    def _add(self, batch: StreamingQueryProgress) -> None:
        before = self.progress
        newest = before.newest
        for name, row in batch.observedMetrics.items():
            stream = self._streams.get(name)
            if stream is None:
                continue
            counts: dict[str, Any] = row.asDict()
            self._rows[stream] = self._rows.get(stream, 0) + int(counts.get("rows") or 0)
            self._bad[stream] = self._bad.get(stream, 0) + int(counts.get("bad") or 0)
            if counts.get("bad_record") is not None:
                reason, _, record = str(counts["bad_record"]).partition("\n")
                self._bad_records.setdefault(stream, (reason, record))
            if counts.get("newest") is not None:
                newest = str(counts["newest"])
        for stage in self._stages:
            with self._updating:
                stage.update()
            newest = next(filter(None, stage.newest.values()), newest)
        # All readers of one stream count the same rows.
        rows = most([self._rows, *(stage.counts["seen"] for stage in self._stages)])
        batch_seconds = batch.durationMs.get("triggerExecution", 0) / 1000
        self.progress = replace(
            before,
            rows_in=sum(rows.values()),
            rows=rows,
            bad=most([self._bad, *(stage.counts["bad"] for stage in self._stages)]),
            bad_records=dict(self._bad_records),
            late=most([stage.counts["late"] for stage in self._stages]),
            newest=newest,
            batches=before.batches + 1,
            last_batch=batch.batchId,
            batch_seconds=batch_seconds,
        )
        if self._stages:
            self._add_stages(batch_seconds)

    def _add_stages(self, batch_seconds: float) -> None:
        """Add the state size, timings and watermark from the last report of each shard."""
        last = [report for stage in self._stages for report in stage.last.values()]
        self.is_done = any(report["done"] for report in last)
        timings = {
            # Shards run in parallel, so the slowest counts.
            part: sum(
                max((report[f"{part}_ms"] for report in stage.last.values()), default=0.0) / 1000
                for stage in self._stages
            )
            for part in ("pack", "kernel", "state")
        }
        timings["spark"] = max(0.0, batch_seconds - sum(timings.values()))
        frontiers = [report["frontier"][0] for report in last if report["frontier"]]
        self.progress = replace(
            self.progress,
            state_rows=sum(report["state_rows"] for report in last),
            state_bytes=sum(report["state_bytes"] for report in last),
            timings=timings,
            frontier=min(frontiers, default=self.progress.frontier),
        )


def most(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return, by stream, the largest count of any query or stage; streams without a count are omitted."""
    result: dict[str, int] = {}
    for one in counts:
        for stream, count in one.items():
            if count:
                result[stream] = max(result.get(stream, 0), count)
    return result


class _StageCounter:
    """Adds up the reports of the shards of one stage."""

    def __init__(self, reports: ShardReports, streams: tuple[str, ...]) -> None:
        self._reports = reports
        # A stage may read a stream twice; its input is counted once.
        self._places = {stream: i for i, stream in reversed(list(enumerate(streams))) if stream}
        self.last: dict[str, Report] = {}
        """The last report of each shard."""
        self.counts: dict[str, dict[str, int]] = {"seen": {}, "bad": {}, "late": {}}
        self.newest: dict[str, str | None] = {}
        self._chained = [i for i, stream in enumerate(streams) if not stream]
        self.derived: list[str | None] = []
        """The newest timestamps of derived streams that other stages send to this one."""

    def update(self) -> None:
        for report in self._reports.take():
            before = self.last.get(report["shard"])
            if before is not None and before["version"] >= report["version"]:
                # A task that Spark has run again, with the same result.
                continue
            self.last[report["shard"]] = report
            for stream, i in self._places.items():
                for name, count in self.counts.items():
                    count[stream] = count.get(stream, 0) + report[name][i]
                self.newest[stream] = report["newest"][i]
            self.derived = [report["newest"][i] for i in self._chained]
