"""A running query: its results, its progress, its end."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from millstream.errors import ExecutionError, MillstreamError, RejectedTuplesWarning
from millstream.runtime.queries.query_progress import Progress, ProgressCounter
from millstream.runtime.queries.rejection_warnings import FindRelation, RejectionWarnings
from millstream.runtime.results.materialized_result import MaterializedResult
from millstream.runtime.results.result_log import ResultLog

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery

Explain = Callable[[BaseException], MillstreamError]
"""Turns an exception of Spark into an error with a place in the script."""

_POLL_SECONDS = 0.2
_SETTLE_SECONDS = 10.0


class Host(Protocol):
    """The query of Spark that computes the results of one or more running queries."""

    @property
    def streaming(self) -> StreamingQuery: ...

    @property
    def bounded(self) -> bool: ...

    @property
    def failure(self) -> BaseException | None: ...

    def stop(self, query: RunningQuery) -> bool: ...

    def release(self, query: RunningQuery) -> None: ...

    def abandon(self) -> None: ...


class RunningQuery:
    """A started query.

    Returned by :meth:`millstream.Mill.start` and :meth:`millstream.Mill.execute`. Results can be read while
    the query runs; a query over files ends by itself, any other when it is stopped.
    """

    def __init__(
        self,
        name: str,
        log: ResultLog | None,
        explain: Explain,
        counter: ProgressCounter,
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
        self._is_stopping = False
        self._host: Host | None = None
        self._rows_written = 0
        self._taken = -1, 0
        """The last micro-batch collected, and the number of rows before it."""

        self._on_end: list[Callable[[], None]] = []
        self._called_over: Any = None
        """The connection over which the JVM passes micro-batches."""

        self._relation: FindRelation | None = None

    # ------------------------------------------------------------ starting

    def watch(self, host: Host) -> None:
        """Follow the query of Spark that computes the results."""
        self._host = host
        self.is_bounded = host.bounded
        threading.Thread(target=self._watch, name=f"millstream-{self.name}", daemon=True).start()

    def warn_with(self, relation: FindRelation) -> None:
        """Warn once, at the end, about late and bad tuples of streams without a clause for them."""
        self._relation = relation

    def _warn(self) -> None:
        relation, self._relation = self._relation, None
        if relation is None or self.is_active:
            self._relation = relation
            return
        for warning in RejectionWarnings((self.progress,), relation).warnings(unclaimed=True):
            # The warning names the line of the caller of the public method.
            warnings.warn(warning, RejectedTuplesWarning, stacklevel=3)

    def on_end(self, act: Callable[[], None]) -> None:
        """Call ``act`` when the query has ended, with or without an error."""
        self._on_end.append(act)

    def fail(self, error: MillstreamError) -> None:
        """End the query with an error of its input."""
        self._error = self._error or self._explain(error)
        if self._host is not None:
            with contextlib.suppress(Exception):
                self._host.streaming.stop()

    def start_batch(self, run: Callable[[], Any]) -> None:
        """Run a job over tables; its result, if it has one, goes to the log."""
        threading.Thread(target=self._run, args=(run,), name=f"millstream-{self.name}", daemon=True).start()

    def _run(self, run: Callable[[], Any]) -> None:
        try:
            result = run()
            if self.log is not None:
                self.log.append(0, result)
        except Exception as error:  # noqa: BLE001 (any exception ends the query)
            self.finish(error)
        else:
            self.finish(None)

    def take(self, frame: DataFrame, batch_id: int) -> None:
        """Collect the results of a micro-batch."""
        from millstream.spark.host.query_cleanup import own_connection
        from millstream.spark.sources.stream_sources import numbered

        self._called_over = own_connection()
        try:
            table = numbered(frame).toArrow()
            self._taken = batch_id, 0 if self.log is None else self.log.rows
            if self.current is not None:
                self.current.apply(batch_id, table)
            if self.log is not None:
                self.log.append(batch_id, table if self.current is None else self.current.stream_rows(table))
        except Exception as error:
            # foreachBatch returns only the text of an exception.
            self._record(error)
            raise

    def _watch(self) -> None:
        assert self._host is not None
        query = self._host.streaming
        error: BaseException | None = None
        try:
            while query.isActive and not self._ended.is_set():
                self.counter.update(query)
                time.sleep(_POLL_SECONDS)
            # Raises the error that ended the query, if any.
            if not query.isActive:
                query.awaitTermination()
            error = self._host.failure
            self.counter.update(query)
        except Exception as raised:  # noqa: BLE001 (any exception ends the query)
            error = raised
        self.finish(error)

    def finish(self, error: BaseException | None) -> None:
        """End the query, with an error or without; a second call changes nothing."""
        with self._finishing:
            if not self._ended.is_set():
                self._end(error)

    def _end(self, error: BaseException | None) -> None:
        if error is not None:
            self._record(error)
        if self.log is not None:
            self.log.finish(self._error)
        self._release_connection()
        for act in self._on_end:
            act()
        if self._host is not None:
            self._host.release(self)
        self._ended_at = time.monotonic()
        self._ended.set()

    def _record(self, error: BaseException) -> None:
        """Record the first error; a stopped query has none, though Spark interrupts its micro-batch."""
        if self._error is None and not self._is_stopping:
            self._error = self._explain(error)

    def _release_connection(self) -> None:
        from millstream.spark.host.query_cleanup import release_later

        if self._called_over is not None and self._host is not None:
            release_later(self._called_over, self._host.streaming)
            self._called_over = None

    # ------------------------------------------------------------ for users

    def results(self) -> Iterator[Row]:
        """Yield rows as they come, until the query ends; then raise its error."""
        from pyspark.sql import Row

        for table in self.arrow():
            make = Row(*table.schema.names)
            for values in zip(*map(_python_values, table.column_names, table.columns), strict=True):
                yield make(*values)
        self._warn()

    def arrow(self) -> Iterator[pa.Table]:
        """Return an iterator over results as Arrow tables, as they come."""
        if self.log is None:
            raise self._no_rows()
        return self.log.follow()

    def collect(self) -> pa.Table:
        """Wait for the end of the query and return its whole result in order.

        Rows are ordered by timestamp and, where timestamps are equal, by arrival.
        """
        import pyarrow as pa

        if self.log is None:
            raise self._no_rows()
        self.wait()
        return pa.concat_tables([self.schema.empty_table(), *self.log.read()])

    def snapshot(self) -> pa.Table:
        """Return the current result: all changes of the micro-batches that have ended, at one instant.

        Views have one, and queries started with ``snapshot=True``. Once the input has ended, it is the result
        at the instant of the newest tuple. Raises the query's error.
        """
        if self.current is None:
            raise MillstreamError(
                f"the current result of '{self.name}' is not materialized",
                hint="start it with mill.start(query, snapshot=True), or CREATE VIEW",
            )
        if self._error is not None:
            raise self._error
        return self.current.snapshot()

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the results."""
        if self.log is None and self.current is not None:
            return self.current.schema
        schema = self.log.schema if self.log is not None else None
        if schema is None:
            raise self._no_rows()
        return schema

    def _no_rows(self) -> MillstreamError:
        if self.current is not None:
            return MillstreamError(
                f"view '{self.name}' has only a current result, no stream of rows", hint="snapshot()"
            )
        return MillstreamError(f"the results of '{self.name}' go to its sink")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the query; return False if it still runs after ``timeout`` seconds.

        Raises the query's error.
        """
        ended = self._ended.wait(timeout)
        if self._error is not None:
            raise self._error
        self._warn()
        return ended

    def stop(self) -> None:
        """End the query after its current micro-batch."""
        self._settle()
        self._is_stopping = True
        # The last query of its host ends with it.
        if self._host is not None and not self._ended.is_set() and not self._host.stop(self):
            self.finish(None)
        self._ended.wait(30)
        self._warn()

    def _settle(self) -> None:
        """Wait for the end of a micro-batch whose rows have been shown: Spark counts its input only then."""
        patience = time.monotonic() + _SETTLE_SECONDS
        while self._taken[0] > self.counter.progress.last_batch and time.monotonic() < patience:
            if self._ended.wait(_POLL_SECONDS):
                return

    def close(self) -> None:
        """Stop the query and delete its results."""
        self.stop()
        if self.log is not None:
            self.log.close()

    def abandon(self) -> None:
        """Mark the query as ended without waiting, after its JVM was killed."""
        if self._host is not None:
            self._host.abandon()
        self._ended.set()

    @property
    def streaming(self) -> StreamingQuery | None:
        """Spark's query that computes the results; None for a query over tables."""
        return None if self._host is None else self._host.streaming

    @property
    def is_active(self) -> bool:
        return not self._ended.is_set()

    @property
    def seconds(self) -> float:
        """The running time so far, or of the whole run."""
        return (self._ended_at or time.monotonic()) - self._started_at

    @property
    def error(self) -> MillstreamError | None:
        """The error that ended the query, if any."""
        return self._error

    @property
    def progress(self) -> Progress:
        """The counts of input and output so far."""
        counted = self.counter.progress
        rows_out = self.log.rows if self.log is not None else self._rows_written
        if self.log is not None and self.is_active and self._taken[0] > counted.last_batch:
            rows_out = self._taken[1]
        if self.log is None and self.current is not None:
            rows_out = self.current.rows
        return replace(counted, rows_out=rows_out)

    @property
    def state(self) -> str:
        """``running``, ``ended`` or ``failed``."""
        return "running" if self.is_active else ("failed" if self._error else "ended")

    def __repr__(self) -> str:
        return f"<RunningQuery {self.name}: {self.state}>"


def _python_values(name: str, column: pa.ChunkedArray) -> list[Any]:
    """Convert a column of a result to Python values."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise ExecutionError(
            f"column '{name}' has a time before the year 1 or after the year 9999, which Python cannot hold",
            hint="take the result as Arrow, with arrow() or collect(), or select CAST(... AS STRING)",
        ) from error
    return values
