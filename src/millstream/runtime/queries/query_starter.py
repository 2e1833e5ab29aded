"""Start of queries: each as a Spark query of its own, or several as one if they read the same streams."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from millstream.analysis.queries.resolved_query import Query
from millstream.catalog.entries import (
    HeartbeatPromise,
    Promise,
    Reader,
    ScalarFunction,
    Sink,
    SlackPromise,
    Stream,
)
from millstream.errors import MillstreamError, Place, Source, Span
from millstream.physical.node import PhysicalNode
from millstream.physical.nodes import Stage, stages_of
from millstream.physical.query_plan import QueryPlan
from millstream.physical.scan_sharing import share, share_groups
from millstream.plan import nodes
from millstream.plan.builder import build
from millstream.plan.plan_identity import described, function_described, functions_in, modes_described
from millstream.plan.planner import best_plan
from millstream.plan.refusals import require_executable
from millstream.plan.relation_variance import ISTREAM
from millstream.plan.views import build_view, rows_beside
from millstream.quantity import Duration
from millstream.runtime.checkpoints.checkpoint import Checkpoint
from millstream.runtime.checkpoints.query_identity import Identity
from millstream.runtime.port_listeners import PortListeners
from millstream.runtime.queries.heartbeats import HeartbeatSchedule, HeartbeatSender
from millstream.runtime.queries.input_cleanup import InputCleaner
from millstream.runtime.queries.query_progress import ProgressCounter
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.queries.shared_query import Member, SharedQuery
from millstream.runtime.results.materialized_result import MaterializedResult, latest
from millstream.runtime.results.result_log import ResultLog
from millstream.runtime.results.sinks import check_sink, remove_leftovers, stream_writer, write_batch
from millstream.runtime.view_registry import ViewRegistry
from millstream.scratch import remove_with_scratch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.spark.host.control_stream import ControlStream
    from millstream.spark.lowering.lowerer import Lowerer
    from millstream.stage.program_discovery import Compiling


Form = Callable[[Query], nodes.Node]


@dataclass(frozen=True)
class QueryRequest:
    """A query to start: its place, its name, its sink, and the form of its plan."""

    query: Query
    source: Source
    span: Span
    name: str
    sink: Sink | None = None
    form: Form = build
    """Plan builder: for the rows of the query, or for its current result."""

    @cached_property
    def plan(self) -> nodes.Node:
        return plan_query(self.query, self.source, self.form)

    @property
    def is_view(self) -> bool:
        """Return whether only its current result is requested."""
        return self.form is build_view

    @property
    def bounded(self) -> bool:
        return self.query.facts is not None and self.query.facts.bounded

    def explain(self, error: BaseException) -> MillstreamError:
        """Translate an error, with its place in the query or else the place of the query."""
        return explain_error(error, self.source, self.span, self._declared)

    @property
    def _declared(self) -> Place | None:
        """Return the declaration of the source that is read through options, if there is only one."""
        scans = (node.stream for node in self.form(self.query).walk() if isinstance(node, nodes.StreamScan))
        places = {stream.name: stream.place for stream in scans if isinstance(stream.origin, Reader)}
        return next(iter(places.values())) if len(places) == 1 else None


def plan_query(query: Query, source: Source, form: Form = build) -> nodes.Node:
    """Plan a query; raise an error if it cannot be run."""
    try:
        plan = best_plan(query, form)
        require_executable(plan, query)
    except MillstreamError as error:
        raise error.locate(source) from None
    return plan


def ignore_message(name: str, seconds: float | None) -> None:
    """Ignore messages about compilation."""


def lower_query(request: QueryRequest, lowerer: Lowerer, compiling: Compiling = ignore_message) -> DataFrame:
    """Lower a query to a DataFrame with hidden columns, and compile its programs."""
    return translate_plan(request, lowerer.plan(request.plan), lowerer, compiling)


def translate_plan(
    request: QueryRequest, plan: QueryPlan, lowerer: Lowerer, compiling: Compiling
) -> DataFrame:
    """Return the DataFrame of a physical plan, and compile its programs."""
    from millstream.spark.errors.error_chain import FAILURES

    try:
        physical = lowerer.bind(plan)
        frame = lowerer.to.frame(physical)
    except FAILURES as error:
        raise request.explain(error) from None
    compile_all(stages_of(physical), compiling)
    return frame


def compile_all(stages: Sequence[Stage], compiling: Compiling) -> None:
    """Compile the kernels and programs of stages."""
    from millstream.stage.precompile_stages import warm_up
    from millstream.stage.program_discovery import compile_programs, programs

    if stages:
        warm_up()
    compile_programs(programs([stage.kernels for stage in stages]), compiling)


def explain_error(
    error: BaseException, source: Source, span: Span, declared: Place | None = None
) -> MillstreamError:
    """Translate an error, with its place in the text or else the place of the whole text.

    A mistake in the declaration of a source has the place of the declaration.
    """
    from millstream.spark.errors.error_chain import translate
    from millstream.spark.session.session import log_with_details

    if isinstance(error, MillstreamError) and error.place is not None:
        return error
    text = source.text[span[0] : span[1] + 1]
    translated = translate(error, text=text, log=log_with_details, declared=declared)
    inner = translated.span
    inside = inner is not None and not isinstance(error, MillstreamError)
    translated.span = (span[0] + inner[0], span[0] + inner[1]) if inside and inner else inner or span
    return translated.locate(source)


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
                    if len(group) == 1:
                        started[group[0]] = self._start(requests[group[0]], plans[group[0]])
                        continue
                    members = self._start_group([requests[i] for i in group], [plans[i] for i in group])
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

    def _start(self, request: QueryRequest, plan: QueryPlan) -> RunningQuery:
        from millstream.spark.errors.error_chain import FAILURES
        from millstream.spark.host.control_stream import ControlStream
        from millstream.spark.sources.hidden_columns import shown

        query, sink = request.query, request.sink
        checkpoint = self._checkpoint_of(request.name)
        control = ControlStream(self.spark, checkpoint.control) if query.facts is not None else None
        if query.facts is not None:
            self.views.wait_for_ends(request.plan)
        with self.views.entering:
            lowerer = self.lowerer(request, control=control)
            frame = translate_plan(request, plan, lowerer, self.compiling)
        stages = stages_of(plan.physical)
        if sink is not None and checkpoint.is_new:
            check_sink(sink, self.spark)
        continues = checkpoint.durable and not checkpoint.is_new
        ports = self.ports.behind(lowerer.metrics.values())
        if checkpoint.durable:
            identity = _identity(request, plan, self.functions)
            checkpoint.claim(request.name, identity, self._partitions(), ports)
        metrics = {metric: stream.name for metric, stream in lowerer.metrics.items()}
        counter = ProgressCounter(metrics, lowerer.to.stages.reports)
        try:
            current = _current(frame, request, checkpoint, counter)
            log = None
            if sink is None and not request.is_view:
                log = _log(
                    frame,
                    checkpoint.results,
                    checkpoint.done,
                    streaming=frame.isStreaming,
                    materialized=current,
                )
        except FAILURES as error:
            raise request.explain(error) from None
        running = RunningQuery(request.name, log, request.explain, counter, checkpoint, current)
        if sink is not None and frame.isStreaming:
            self._clean(sink, checkpoint, running, now=continues)
        _remember_to_remove(lowerer.to.stages.tokens)
        running.on_end(lambda: _forget(lowerer.to.stages.tokens))
        self._clean_behind(checkpoint, running, ports)
        if frame.isStreaming:
            heartbeats = None
            if control is not None and stages:
                heartbeats = self._heartbeats(
                    stages, lowerer.metrics.values(), control, counter, request.bounded
                )
            running.start_stream(
                frame if sink is None else shown(frame),
                request.bounded,
                lambda frame: stream_writer(frame, _required(sink)),
                heartbeats,
            )
        elif sink is None:
            running.start_batch(lambda: self._complete(request, frame).toArrow())
        else:
            running.start_batch(lambda: write_batch(self._complete(request, frame), sink))
        self.ports.watch(ports, running)
        return running

    def _clean_behind(self, checkpoint: Checkpoint, running: RunningQuery, ports: Sequence[int]) -> None:
        """Register input files for removal once read; a query that will not continue keeps none."""
        spark, control = Path(checkpoint.spark), Path(checkpoint.control)
        self.ports.read_by(ports, spark)
        if checkpoint.visible:
            self.cleaner.add(control, spark)
            running.on_end(lambda: self.cleaner.leave(control))
        if not checkpoint.durable:
            running.on_end(lambda: self.cleaner.drop(spark))

    def _clean(self, sink: Sink, checkpoint: Checkpoint, running: RunningQuery, *, now: bool) -> None:
        """Remove files that killed batches left in a sink, before a query continues and after its end."""
        from millstream.spark.errors.error_chain import FAILURES

        since = checkpoint.since

        def clean() -> None:
            # Leftover files are no reason to fail; the next run tries again.
            with contextlib.suppress(*FAILURES):
                remove_leftovers(sink, self.spark, since)

        if now:
            clean()
        running.on_end(clean)

    def _complete(self, request: QueryRequest, frame: DataFrame) -> DataFrame:
        """Lower a query over tables again after the views that it reads have ended."""
        unfinished = self.views.unfinished(self.views.read_by(request.plan))
        if not unfinished:
            return frame
        for view in unfinished:
            view.wait()
        with self.views.entering:
            return lower_query(request, self.lowerer(request), self.compiling)

    def _start_group(
        self, requests: Sequence[QueryRequest], plans: Sequence[QueryPlan]
    ) -> list[RunningQuery]:
        from millstream.spark.errors.error_chain import FAILURES
        from millstream.spark.host.control_stream import ControlStream
        from millstream.spark.lowering.shared_scan import share_scan

        checkpoint = self._checkpoint_of(*(one.name for one in requests))
        control = ControlStream(self.spark, checkpoint.control)
        lowerer = self.lowerer(*requests, control=control)
        try:
            shared = share([lowerer.bind(plan) for plan in plans])
            whole = share_scan(shared, lowerer.to)
        except FAILURES as error:
            raise requests[0].explain(error) from None
        ports = self.ports.behind(lowerer.metrics.values())
        if checkpoint.durable:
            identity = Identity.together(
                _identity(one, plan, self.functions) for one, plan in zip(requests, plans, strict=True)
            )
            checkpoint.claim(", ".join(one.name for one in requests), identity, self._partitions(), ports)
        stages = [one.stage for one in shared.stages]
        compile_all(stages, self.compiling)
        bounded = all(one.bounded for one in requests)
        metrics = {metric: stream.name for metric, stream in lowerer.metrics.items()}
        members: list[Member] = []
        for i, one in enumerate(requests):
            counter = ProgressCounter(metrics, whole.reports[i : i + 1])
            directory = checkpoint.results / one.name if checkpoint.results else None
            log = _log(whole.empty[i], directory, checkpoint.done, streaming=True)
            running = RunningQuery(one.name, log, one.explain, counter)
            members.append(Member(running, whole.results[i]))
        _remember_to_remove(whole.tokens)
        members[-1].query.on_end(lambda: _forget(list(whole.tokens)))
        self._clean_behind(checkpoint, members[-1].query, ports)
        heartbeats = self._heartbeats(
            stages,
            lowerer.metrics.values(),
            control,
            members[0].query.counter,
            bounded,
        )
        try:
            SharedQuery(whole, members, checkpoint).start(heartbeats, bounded=bounded)
        except FAILURES as error:
            raise requests[0].explain(error) from None
        for member in members:
            self.ports.watch(ports, member.query)
        return [member.query for member in members]

    def _heartbeats(
        self,
        stages: Iterable[Stage],
        streams: Iterable[Stream],
        control: ControlStream,
        counter: ProgressCounter,
        bounded: bool,
    ) -> HeartbeatSender:
        from millstream.spark.sources.file_paths import described

        read = {one.source.name for stage in stages for one in stage.sources if one.source.name}
        beats = []
        ending = {}
        for stream in streams:
            for on, promises in ((None, stream.own_promises), *stream.promises_on_others.items()):
                beats += [
                    HeartbeatSchedule(stream.name, promise.every.microseconds / 1e6, _slack(promises), on)
                    for promise in promises
                    if isinstance(promise, HeartbeatPromise)
                ]
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


def _slack(promises: Iterable[Promise]) -> int:
    """Return the permitted delay of tuples behind a heartbeat."""
    for promise in promises:
        if isinstance(promise, SlackPromise) and isinstance(promise.amount, Duration):
            return promise.amount.microseconds
    return 0


def _schema(frame: DataFrame, *, streaming: bool) -> pa.Schema:
    """Return the schema of results before the first row, so that an empty result has a header too."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from millstream.spark.sources.hidden_columns import ROW

    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    schema = to_arrow_schema(frame.schema, timezone=zone)
    return schema.append(pa.field(ROW, pa.int64())) if streaming else schema


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
    )


def _identity(
    request: QueryRequest,
    physical: QueryPlan,
    functions: Callable[[str], ScalarFunction | None],
) -> Identity:
    """Return the identity of a query for its checkpoint: its plan and the user's code in it."""
    plan = described(request.plan, exact_names=request.sink is not None)
    modes = modes_described(physical.programs)
    called = {function_described(function) for function in functions_in(plan, functions)}
    text = request.source.text[request.span[0] : request.span[1] + 1]
    return Identity((text,), (*plan, *modes, *sorted(called)))


def _remember_to_remove(tokens: Iterable[str]) -> None:
    """Register shared memory for removal by the next process, in case this one is killed."""
    from millstream.stage.shard_cache import place

    for token in tokens:
        remove_with_scratch(place(token))


def _forget(tokens: list[str]) -> None:
    """Release an ended query's shared memory and its objects in the JVM."""
    from millstream.spark.host.query_cleanup import query_ended
    from millstream.stage.shard_cache import forget

    for token in tokens:
        forget(token)
    query_ended()


def _required(sink: Sink | None) -> Sink:
    assert sink is not None
    return sink
