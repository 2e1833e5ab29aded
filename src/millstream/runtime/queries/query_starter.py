"""Start of queries: each as a Spark query of its own, or several as one if they read the same streams."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from millstream.catalog.entries import (
    Reader,
    ScalarFunction,
    Sink,
    Stream,
)
from millstream.errors import MillstreamError
from millstream.physical.node import PhysicalNode
from millstream.physical.query_plan import QueryPlan
from millstream.physical.scan_sharing import share_groups
from millstream.plan.builder import build
from millstream.plan.plan_identity import described, function_described, functions_in, modes_described
from millstream.plan.relation_variance import ISTREAM
from millstream.plan.views import rows_beside
from millstream.runtime.checkpoints.checkpoint import Checkpoint
from millstream.runtime.checkpoints.query_identity import Identity
from millstream.runtime.port_listeners import PortListeners
from millstream.runtime.queries.heartbeat_schedules import has_active_expiration, schedules
from millstream.runtime.queries.heartbeats import HeartbeatSender
from millstream.runtime.queries.input_cleanup import InputCleaner
from millstream.runtime.queries.query_progress import ProgressCounter
from millstream.runtime.queries.query_request import QueryRequest
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.queries.spark_query import Member, SparkQuery
from millstream.runtime.results.materialized_result import MaterializedResult, latest
from millstream.runtime.results.result_log import ResultLog
from millstream.runtime.results.sinks import check_sink, remove_leftovers, stream_writer, write_batch
from millstream.runtime.view_registry import ViewRegistry
from millstream.scratch import remove_with_scratch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.spark.host.control_stream import ControlStream
    from millstream.spark.lowering.lowered_queries import LoweredQueries
    from millstream.spark.lowering.lowerer import Lowerer
    from millstream.stage.program_discovery import Compiling


def ignore_message(name: str, seconds: float | None) -> None:
    """Ignore messages about compilation."""


def lower_query(request: QueryRequest, lowerer: Lowerer, compiling: Compiling = ignore_message) -> DataFrame:
    """Lower a query to a DataFrame with hidden columns, and compile its programs."""
    return lower_together([request], [lowerer.plan(request.plan)], lowerer, compiling).frame


def lower_together(
    requests: Sequence[QueryRequest], plans: Sequence[QueryPlan], lowerer: Lowerer, compiling: Compiling
) -> LoweredQueries:
    """Lower queries that run as one query of Spark, and compile their programs."""
    from millstream.spark.errors.error_chain import FAILURES
    from millstream.spark.lowering.lowered_queries import lower_queries
    from millstream.stage.precompile_stages import warm_up
    from millstream.stage.program_discovery import compile_programs, programs

    try:
        lowered = lower_queries([lowerer.bind(plan) for plan in plans], lowerer.to)
    except FAILURES as error:
        raise requests[0].explain(error) from None
    if lowered.stages:
        warm_up()
    compile_programs(programs([stage.kernels for stage in lowered.stages]), compiling)
    return lowered


class MakeLowerer(Protocol):
    """Factory of lowerers."""

    def __call__(self, *request: QueryRequest, control: ControlStream | None = None) -> Lowerer: ...


@dataclass(frozen=True)
class QueryStarter:
    """Starts queries on a session; ``lowerer`` makes the translator of their plans to DataFrames."""

    spark: SparkSession
    lowerer: MakeLowerer
    planner: Callable[[QueryRequest], QueryPlan]
    checkpoint: Path | None
    views: ViewRegistry
    ports: PortListeners
    cleaner: InputCleaner
    functions: Callable[[str], ScalarFunction | None]
    compiling: Compiling = ignore_message

    def start_all(self, requests: Sequence[QueryRequest]) -> list[RunningQuery]:
        """Start queries; those that can share a scan run as one Spark query."""
        from millstream.spark.session.session import tuned

        started: dict[int, RunningQuery] = {}
        try:
            with tuned(self.spark):
                plans = [self._planned(one) for one in requests]
                for group in share_groups([_shared(*one) for one in zip(requests, plans, strict=True)]):
                    members = self._start([requests[i] for i in group], [plans[i] for i in group])
                    started |= zip(group, members, strict=True)
        except MillstreamError:
            for query in started.values():
                query.close()
            raise
        return [started[i] for i in range(len(requests))]

    def _planned(self, request: QueryRequest) -> QueryPlan:
        from millstream.spark.errors.error_chain import FAILURES

        try:
            return self.planner(request)
        except FAILURES as error:
            raise request.explain(error) from None

    def _start(self, requests: Sequence[QueryRequest], plans: Sequence[QueryPlan]) -> list[RunningQuery]:
        """Start queries as one query of Spark, or a query over tables as a job."""
        from millstream.spark.host.control_stream import ControlStream

        names, sink = [one.name for one in requests], requests[0].sink
        checkpoint = self._checkpoint_of(*names)
        control = None
        facts = requests[0].query.facts
        if facts is not None and not facts.stored:
            control = ControlStream(self.spark, checkpoint.control)
            for one in requests:
                self.views.wait_for_ends(one.plan)
        with self.views.entering:
            lowerer = self.lowerer(*requests, control=control)
            lowered = lower_together(requests, plans, lowerer, self.compiling)
        if sink is not None and checkpoint.is_new:
            check_sink(sink, self.spark)
        continues = checkpoint.durable and not checkpoint.is_new
        ports = self.ports.behind(lowerer.metrics.values())
        if checkpoint.durable:
            identity = Identity.together(map(self._identity, requests, plans))
            checkpoint.claim(", ".join(names), identity, self._partitions(), ports)
        metrics = {metric: stream.name for metric, stream in lowerer.metrics.items()}
        members = [
            Member(_running(one, lowered, i, checkpoint, metrics), lowered.results[i])
            for i, one in enumerate(requests)
        ]
        _remember_to_remove(lowered.tokens)
        ending = contextlib.ExitStack()
        ending.callback(checkpoint.remove)
        self._clean_behind(checkpoint, ending, ports)
        ending.callback(_forget, lowered.tokens)
        if lowered.frame.isStreaming:
            if sink is not None:
                self._clean(sink, checkpoint, ending, now=continues)
            heartbeats = None
            if control is not None and lowered.stages:
                heartbeats = self._heartbeats(lowered, lowerer.metrics.values(), control, requests, members)
            self._start_stream(requests, lowered.frame, members, checkpoint, heartbeats, ending)
        else:
            self._start_batch(requests[0], lowered.frame, members[0].query, ending)
        for member in members:
            self.ports.watch(ports, member.query)
        return [member.query for member in members]

    def _start_stream(
        self,
        requests: Sequence[QueryRequest],
        frame: DataFrame,
        members: Sequence[Member],
        checkpoint: Checkpoint,
        heartbeats: HeartbeatSender | None,
        ending: contextlib.ExitStack,
    ) -> None:
        from millstream.spark.errors.error_chain import FAILURES
        from millstream.spark.sources.hidden_columns import shown

        sink, spark = requests[0].sink, checkpoint.spark
        bounded = all(one.bounded for one in requests)
        host = SparkQuery(frame, members, spark, heartbeats, bounded=bounded, on_end=ending.close)
        try:
            host.start(None if sink is None else lambda frame: stream_writer(shown(frame), sink))
        except FAILURES as error:
            for member in members:
                member.query.finish(error)
            ending.close()
            raise requests[0].explain(error) from None

    def _start_batch(
        self,
        request: QueryRequest,
        frame: DataFrame,
        running: RunningQuery,
        ending: contextlib.ExitStack,
    ) -> None:
        sink = request.sink
        running.on_end(ending.close)
        if sink is None:
            running.start_batch(lambda: self._complete(request, frame).toArrow())
        else:
            running.start_batch(lambda: write_batch(self._complete(request, frame), sink))

    def _clean_behind(
        self, checkpoint: Checkpoint, ending: contextlib.ExitStack, ports: Sequence[int]
    ) -> None:
        """Register input files for removal once read; a query that will not continue keeps none."""
        spark, control = Path(checkpoint.spark), Path(checkpoint.control)
        self.ports.read_by(ports, spark)
        if checkpoint.visible:
            self.cleaner.add(control, spark)
            ending.callback(self.cleaner.leave, control)
        if not checkpoint.durable:
            ending.callback(self.cleaner.drop, spark)

    def _clean(self, sink: Sink, checkpoint: Checkpoint, ending: contextlib.ExitStack, *, now: bool) -> None:
        """Remove files that killed batches left in a sink, before a query continues and after its end."""
        from millstream.spark.errors.error_chain import FAILURES

        since = checkpoint.since

        def clean() -> None:
            # Leftover files are no reason to fail; the next run tries again.
            with contextlib.suppress(*FAILURES):
                remove_leftovers(sink, self.spark, since)

        if now:
            clean()
        ending.callback(clean)

    def _complete(self, request: QueryRequest, frame: DataFrame) -> DataFrame:
        """Lower a query over tables again after the views that it reads have ended."""
        unfinished = self.views.unfinished(self.views.read_by(request.plan))
        if not unfinished:
            return frame
        for view in unfinished:
            view.wait()
        with self.views.entering:
            return lower_query(request, self.lowerer(request), self.compiling)

    def _heartbeats(
        self,
        lowered: LoweredQueries,
        streams: Iterable[Stream],
        control: ControlStream,
        requests: Sequence[QueryRequest],
        members: Sequence[Member],
    ) -> HeartbeatSender:
        from millstream.spark.sources.file_paths import described

        bounded = all(one.bounded for one in requests)
        counter = members[0].query.counter
        read = {one.source.name for stage in lowered.stages for one in stage.sources if one.source.name}
        streams = tuple(streams)
        expires = any(has_active_expiration(one.plan) for one in requests)
        beats = schedules(streams, self.ports.complete_until, latent=expires)
        ending = {}
        for stream in streams:
            path = stream.origin.option("path") if isinstance(stream.origin, Reader) else None
            if path is not None and stream.is_bounded and stream.name in read and not bounded:
                ending[stream.name] = described(path, self.spark)
        return HeartbeatSender(
            control,
            sorted(read),
            beats,
            lambda name: counter.progress.rows.get(name, 0),
            bounded,
            ending,
        )

    def _identity(self, request: QueryRequest, physical: QueryPlan) -> Identity:
        """Return the identity of a query for its checkpoint: its plan and the user's code in it."""
        plan = described(request.plan, exact_names=request.sink is not None)
        modes = modes_described(physical.programs)
        called = {function_described(function) for function in functions_in(plan, self.functions)}
        text = request.source.text[request.span[0] : request.span[1] + 1]
        return Identity((text,), (*plan, *modes, *sorted(called)))

    def _partitions(self) -> int:
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)

    def _checkpoint_of(self, *names: str) -> Checkpoint:
        if self.checkpoint is None:
            return Checkpoint.temporary()
        # Spark may resolve the path on another file system.
        files = self.spark._jsc.hadoopConfiguration().get("fs.defaultFS")
        return Checkpoint.for_queries(self.checkpoint, *names, visible=str(files).startswith("file:"))


def _shared(request: QueryRequest, plan: QueryPlan) -> PhysicalNode | None:
    """Return the plan of a query that may share a scan: its rows go to no sink, and no result is kept."""
    return plan.physical if request.sink is None and request.form is build else None


def _schema(frame: DataFrame, *, streaming: bool) -> pa.Schema:
    """Return the schema of results before the first row, so that an empty result has a header too."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from millstream.spark.sources.hidden_columns import ROW

    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    schema = to_arrow_schema(frame.schema, timezone=zone)
    return schema.append(pa.field(ROW, pa.int64())) if streaming else schema


def _running(
    request: QueryRequest,
    lowered: LoweredQueries,
    number: int,
    checkpoint: Checkpoint,
    metrics: dict[str, str],
) -> RunningQuery:
    """Create a query with its result log and its materialized result, as it needs them."""
    from millstream.spark.errors.error_chain import FAILURES

    frame, streaming = lowered.empty[number], lowered.frame.isStreaming
    counter = ProgressCounter(metrics, lowered.reports[number])
    log = None
    try:
        current = _current(frame, request, checkpoint, counter)
        if request.sink is None and not request.is_view:
            directory = checkpoint.results(request.name)
            log = _log(frame, directory, checkpoint.done, streaming=streaming, materialized=current)
    except FAILURES as error:
        raise request.explain(error) from None
    return RunningQuery(request.name, log, request.explain, counter, current)


def _log(
    frame: DataFrame,
    directory: Path | None,
    done: int | None,
    *,
    streaming: bool,
    materialized: MaterializedResult | None = None,
) -> ResultLog:
    """Create the result log; with a materialized result it stores only rows derived from its changes."""
    from millstream.spark.sources.hidden_columns import hidden, sort_keys

    schema = _schema(frame, streaming=streaming)
    schema = schema if materialized is None else materialized.stream_rows(schema.empty_table()).schema
    return ResultLog(
        schema, keys=sort_keys(schema.names), hidden=hidden(schema.names), kept_in=directory, done=done
    )


def _current(
    frame: DataFrame, request: QueryRequest, checkpoint: Checkpoint, counter: ProgressCounter
) -> MaterializedResult | None:
    """Create the materialized result of a query that has one."""
    from millstream.kernels.column_names import ID, ID2, OP
    from millstream.spark.sources.hidden_columns import TIME, hidden, sort_keys

    if OP not in frame.columns:
        return None
    schema = _schema(frame, streaming=True)
    kind = schema.field(TIME).type
    return MaterializedResult(
        schema,
        sort_keys(schema.names),
        (OP, ID, ID2),
        hidden(schema.names),
        rows=ISTREAM if request.is_view else rows_beside(request.query),
        newest=(lambda: latest(counter.newest(), kind)) if request.bounded else None,
        kept_in=checkpoint.current,
        done=checkpoint.done,
        arrangement=request.arrangement,
    )


def _remember_to_remove(tokens: Iterable[str]) -> None:
    """Register shared memory for removal by the next process, in case this one is killed."""
    from millstream.stage.shard_cache import place

    for token in tokens:
        remove_with_scratch(place(token))


def _forget(tokens: Iterable[str]) -> None:
    """Release an ended query's shared memory and its objects in the JVM."""
    from millstream.spark.host.query_cleanup import query_ended
    from millstream.stage.shard_cache import forget

    for token in tokens:
        forget(token)
    query_ended()
