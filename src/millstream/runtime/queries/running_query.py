"""A query that runs: its results, its progress, its end."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.errors import ExecutionError, MillstreamError, RejectedTuplesWarning
from millstream.runtime.checkpoints.checkpoint import Checkpoint
from millstream.runtime.queries.heartbeats import HeartbeatSender
from millstream.runtime.queries.query_progress import Progress, ProgressCounter
from millstream.runtime.queries.rejected_tuples import FindRelation, RejectedTuples
from millstream.runtime.queries.start_throttle import BEGINNINGS
from millstream.runtime.results.materialized_result import MaterializedResult
from millstream.runtime.results.result_log import ResultLog

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Explain = Callable[[BaseException], MillstreamError]
"""Turns an exception of Spark's into an error with a place in the script."""

_POLL_SECONDS = 0.2
_SETTLE_SECONDS = 10.0


class RunningQuery:
    """A query and what becomes of it.

    Made by :meth:`millstream.Mill.start` and :meth:`millstream.Mill.execute`. Results can be read while the
    query runs; a query over files ends by itself, any other when it is stopped.
    """

    def __init__(
        self,
        name: str,
        log: ResultLog | None,
        explain: Explain,
        counter: ProgressCounter,
        checkpoint: Checkpoint | None = None,
        current: MaterializedResult | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self.current = current
        self.is_bounded = True
        self._explain = explain
        self.counter = counter
        self._ended = threading.Event()
        self._finishing = threading.Lock()
        self._started_at = time.monotonic()
        self._ended_at: float | None = None
        self._error: MillstreamError | None = None
        self._streaming: StreamingQuery | None = None
        self._rows_written = 0
        self._taken = -1, 0
        """The last micro-batch whose results are here, and how many rows there were before."""

        self._checkpoint = checkpoint or Checkpoint.temporary()
        self._conductor: HeartbeatSender | None = None
        self._on_end: list[Callable[[], None]] = []
        self._called_over: Any = None
        """The connection over which the JVM hands in micro-batches."""

        self._stop_alone: Callable[[], bool] | None = None
        self._failure: Callable[[], BaseException | None] = lambda: None
        self._relation: FindRelation | None = None

    # ------------------------------------------------------------ starting

    def start_stream(
        self,
        frame: DataFrame,
        bounded: bool,
        sink: Callable[[DataFrame], DataStreamWriter],
        heartbeats: HeartbeatSender | None = None,
    ) -> None:
        """Run a streaming DataFrame into a sink, or where its rows are kept here.

        With a conductor it is that who ends the query, when all windows have been closed.
        """
        from millstream.spark.errors.error_chain import FAILURES

        self.is_bounded = bounded
        self._conductor = heartbeats
        try:
            taken = self.log is not None or self.current is not None
            writer = frame.writeStream.foreachBatch(self._collect) if taken else sink(frame)
            writer = writer.option("checkpointLocation", self._checkpoint.spark).outputMode("append")
            to_the_end = bounded and heartbeats is None
            writer = (
                writer.trigger(availableNow=True)
                if to_the_end
                else writer.trigger(processingTime="0 seconds")
            )
            self._streaming = BEGINNINGS.start(writer)
            if heartbeats is not None:
                self._failure = lambda: heartbeats.failure
                heartbeats.start(self._streaming)
        except FAILURES as error:
            self._finish(error)
            raise self._explain(error) from None
        threading.Thread(target=self._watch, name=f"millstream-{self.name}", daemon=True).start()

    def watch(
        self,
        streaming: StreamingQuery,
        heartbeats: HeartbeatSender,
        *,
        bounded: bool,
        stop: Callable[[], bool],
    ) -> None:
        """Be one of several that a query of Spark's is run for; ``stop`` tells whether it ends with this."""
        self._failure = lambda: heartbeats.failure
        self.is_bounded = bounded
        self._streaming = streaming
        self._stop_alone = stop
        threading.Thread(target=self._watch, name=f"millstream-{self.name}", daemon=True).start()

    def take(self, frame: DataFrame, batch_id: int) -> None:
        """Results of a micro-batch."""
        self._collect(frame, batch_id)

    def warn_with(self, relation: FindRelation) -> None:
        """Warn, once and at the end, about late and bad tuples that no clause of their stream claims."""
        self._relation = relation

    def _warn(self) -> None:
        relation, self._relation = self._relation, None
        if relation is None or self.is_active:
            self._relation = relation
            return
        for warning in RejectedTuples((self.progress,), relation).warnings(unclaimed=True):
            # At the caller's line, which calls a method that calls this one.
            warnings.warn(warning, RejectedTuplesWarning, stacklevel=3)

    def on_end(self, act: Callable[[], None]) -> None:
        """Do something when the query has ended, however it has."""
        self._on_end.append(act)

    def fail(self, error: MillstreamError) -> None:
        """End the query with an error of what it reads."""
        self._error = self._error or self._explain(error)
        if self._streaming is not None:
            with contextlib.suppress(Exception):
                self._streaming.stop()

    def start_batch(self, run: Callable[[], Any]) -> None:
        """Run a job over tables; its result, if it has one, goes to the log."""
        threading.Thread(target=self._run, args=(run,), name=f"millstream-{self.name}", daemon=True).start()

    def _run(self, run: Callable[[], Any]) -> None:
        try:
            result = run()
            if self.log is not None:
                self.log.append(0, result)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is the query's end)
            self._finish(error)
        else:
            self._finish(None)

    def _collect(self, frame: DataFrame, batch_id: int) -> None:
        from millstream.spark.host.query_cleanup import own_connection
        from millstream.spark.sources.stream_sources import numbered

        self._called_over = own_connection()
        try:
            table = numbered(frame).toArrow()
            self._taken = batch_id, 0 if self.log is None else self.log.rows
            if self.current is not None:
                self.current.apply(batch_id, table)
            if self.log is not None:
                self.log.append(batch_id, table if self.current is None else self.current.told(table))
        except Exception as error:
            # Out of foreachBatch only the text of an exception comes back.
            self._error = self._error or self._explain(error)
            raise

    def _watch(self) -> None:
        query = self._streaming
        assert query is not None
        error: BaseException | None = None
        try:
            while query.isActive and not self._ended.is_set():
                self.counter.update(query)
                time.sleep(_POLL_SECONDS)
            # Raises what ended the query, if it did not end well.
            if not query.isActive:
                query.awaitTermination()
            error = self._failure()
            self.counter.update(query)
        except Exception as raised:  # noqa: BLE001 (whatever it is, it is the query's end)
            error = raised
        self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        with self._finishing:
            if not self._ended.is_set():
                self._end(error)

    def _end(self, error: BaseException | None) -> None:
        if error is not None and self._error is None:
            self._error = self._explain(error)
        if self.log is not None:
            self.log.finish(self._error)
        if self._conductor is not None:
            self._conductor.stop()
        self._release_connection()
        for act in self._on_end:
            act()
        self._checkpoint.remove()
        self._ended_at = time.monotonic()
        self._ended.set()

    def _release_connection(self) -> None:
        from millstream.spark.host.query_cleanup import release_later

        if self._called_over is not None and self._streaming is not None:
            release_later(self._called_over, self._streaming)
            self._called_over = None

    # ------------------------------------------------------------ for users

    def results(self) -> Iterator[Row]:
        """Rows as they come, until the query ends; its error is raised then."""
        from pyspark.sql import Row

        for table in self.arrow():
            make = Row(*table.schema.names)
            for values in zip(*map(_python_values, table.column_names, table.columns), strict=True):
                yield make(*values)
        self._warn()

    def arrow(self) -> Iterator[pa.Table]:
        """Results as Arrow tables, as they come."""
        if self.log is None:
            raise self._no_rows()
        return self.log.follow()

    def collect(self) -> pa.Table:
        """Wait for the end of the query, and give its whole result in order.

        That is the order of timestamps and, where these are equal, of arrival.
        """
        import pyarrow as pa

        if self.log is None:
            raise self._no_rows()
        self.wait()
        return pa.concat_tables([self.schema.empty_table(), *self.log.read()])

    def snapshot(self) -> pa.Table:
        """The current result, as it is at one instant: all changes of the micro-batches that have ended.

        Views have it, and queries that were started with ``snapshot=True``. Once the input has ended, it is
        the result at the instant of the newest tuple. Raises the query's error.
        """
        if self.current is None:
            raise MillstreamError(
                f"the current result of '{self.name}' is not kept",
                hint="start it with mill.start(query, snapshot=True), or CREATE VIEW",
            )
        if self._error is not None:
            raise self._error
        return self.current.snapshot()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        if self.log is None and self.current is not None:
            return self.current.schema
        schema = self.log.schema if self.log is not None else None
        if schema is None:
            raise self._no_rows()
        return schema

    def _no_rows(self) -> MillstreamError:
        if self.current is not None:
            return MillstreamError(f"view '{self.name}' has a current result and no rows", hint="snapshot()")
        return MillstreamError(f"the results of '{self.name}' go to its sink")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the query; False if it is still running after ``timeout`` seconds.

        Raises the query's error.
        """
        ended = self._ended.wait(timeout)
        if self._error is not None:
            raise self._error
        self._warn()
        return ended

    def stop(self) -> None:
        """End the query after what it is doing now."""
        self._settle()
        if self._stop_alone is not None and not self._ended.is_set():
            if not self._stop_alone():
                self._finish(None)
        elif self._streaming is not None and not self._ended.is_set():
            with contextlib.suppress(Exception):
                self._streaming.stop()
        self._ended.wait(30)
        self._warn()

    def _settle(self) -> None:
        """Let a micro-batch end whose rows have been shown: Spark counts what came in only then."""
        patience = time.monotonic() + _SETTLE_SECONDS
        while self._taken[0] > self.counter.progress.last_batch and time.monotonic() < patience:
            if self._ended.wait(_POLL_SECONDS):
                return

    def close(self) -> None:
        """Stop, and forget the results."""
        self.stop()
        if self.log is not None:
            self.log.close()

    def abandon(self) -> None:
        """Be over without waiting for anything: the JVM is gone."""
        if self._conductor is not None:
            self._conductor.stop()
        self._ended.set()

    @property
    def is_active(self) -> bool:
        return not self._ended.is_set()

    @property
    def seconds(self) -> float:
        """How long the query has been running, or did run."""
        return (self._ended_at or time.monotonic()) - self._started_at

    @property
    def error(self) -> MillstreamError | None:
        """What ended the query, if it did not end well."""
        return self._error

    @property
    def progress(self) -> Progress:
        """How far the query has come: what came in, and what came out of it."""
        counted = self.counter.progress
        rows_out = self.log.rows if self.log is not None else self._rows_written
        if self.log is not None and self.is_active and self._taken[0] > counted.last_batch:
            rows_out = self._taken[1]
        if self.log is None and self.current is not None:
            rows_out = self.current.rows
        return replace(counted, rows_out=rows_out)

    @property
    def state(self) -> str:
        """Whether it is running, has ended or has failed."""
        return "running" if self.is_active else ("failed" if self._error else "ended")

    def __repr__(self) -> str:
        return f"<RunningQuery {self.name}: {self.state}>"


def _python_values(name: str, column: pa.ChunkedArray) -> list[Any]:
    """A column of a result for Python."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise ExecutionError(
            f"column '{name}' has a time before the year 1 or after the year 9999, which Python cannot hold",
            hint="take the result as Arrow, with arrow() or collect(), or select CAST(... AS STRING)",
        ) from error
    return values
