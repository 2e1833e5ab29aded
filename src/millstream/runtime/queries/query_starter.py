"""Starting queries: each as a query of Spark's, or several as one where they read the same streams."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
from millstream.errors import MillstreamError, Source, Span
from millstream.plan import nodes
from millstream.plan.builder import build
from millstream.plan.plan_identity import described, function_described, functions_in, modes_described
from millstream.plan.planner import best_plan
from millstream.plan.refusals import require_executable
from millstream.plan.relation_variance import ISTREAM
from millstream.plan.scan_sharing import shareable
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
    from millstream.spark.lowering.translator import Lowerer
    from millstream.stage.pipeline import Pipeline
    from millstream.stage.program_discovery import Compiling


Form = Callable[[Query], nodes.Node]


@dataclass(frozen=True)
class QueryRequest:
    """A query that is to be started: what it is, where it stands, what it is called, where its rows go."""

    query: Query
    source: Source
    span: Span
    name: str
    sink: Sink | None = None
    form: Form = build
    """What its plan is to be: that of its rows, or of its current result."""

    @property
    def plan(self) -> nodes.Node:
        return plan_query(self.query, self.source, self.form)

    @property
    def is_view(self) -> bool:
        """Whether it is asked for its current result only."""
        return self.form is build_view

    @property
    def bounded(self) -> bool:
        return self.query.facts is not None and self.query.facts.bounded

    def explain(self, error: BaseException) -> MillstreamError:
        """An error in our words, at its place in the query or else at the query itself."""
        return explain_error(error, self.source, self.span)


def plan_query(query: Query, source: Source, form: Form = build) -> nodes.Node:
    """The plan of a query, if it can be run."""
    try:
        plan = best_plan(query, form)
        require_executable(plan, query)
    except MillstreamError as error:
        raise error.locate(source) from None
    return plan


def ignore_message(name: str, seconds: float | None) -> None:
    """Says nothing about what is compiled."""


def lower_query(request: QueryRequest, lowerer: Lowerer, compiling: Compiling = ignore_message) -> DataFrame:
    """A query as a DataFrame with its hidden columns; what it runs is compiled."""
    frame = lower_without_compiling(request, lowerer)
    compile_all(lowerer.stages.pipelines, compiling)
    return frame


def lower_without_compiling(request: QueryRequest, lowerer: Lowerer) -> DataFrame:
    """The same, but others may have to be known before it can be said what it runs."""
    from millstream.spark.errors.error_chain import FAILURES

    try:
        return lowerer.lower(request.plan)
    except FAILURES as error:
        raise request.explain(error) from None


def compile_all(pipelines: Sequence[Pipeline], compiling: Compiling) -> None:
    """Compile what stages run."""
    from millstream.stage.precompile_stages import warm_up
    from millstream.stage.program_discovery import compile_programs, programs

    if pipelines:
        warm_up()
    compile_programs(programs(pipelines), compiling)


def explain_error(error: BaseException, source: Source, span: Span) -> MillstreamError:
    """An error in our words, at its place in the text or else at all of it."""
    from millstream.spark.errors.error_chain import translate
    from millstream.spark.session.session import log_with_details

    if isinstance(error, MillstreamError) and error.place is not None:
        return error
    text = source.text[span[0] : span[1] + 1]
    translated = translate(error, text=text, log=log_with_details)
    inner = translated.span
    inside = inner is not None and not isinstance(error, MillstreamError)
    translated.span = (span[0] + inner[0], span[0] + inner[1]) if inside and inner else inner or span
    return translated.locate(source)


class MakeLowerer(Protocol):
    """Makes what turns the plans of queries into DataFrames."""

    def __call__(self, *request: QueryRequest, control: ControlStream | None = None) -> Lowerer: ...


@dataclass(frozen=True)
class QueryStarter:
    """Starts queries on a session; ``lowerer`` makes what turns their plans into DataFrames."""

    spark: SparkSession
    lowerer: MakeLowerer
    checkpoint: Path | None
    views: ViewRegistry
    ports: PortListeners
    cleaner: InputCleaner
    functions: Callable[[str], ScalarFunction | None]
    compiling: Compiling = ignore_message

    def start_all(self, requests: Sequence[QueryRequest]) -> list[RunningQuery]:
        """Start queries, those together that can share what they read."""
        from millstream.spark.session.session import tuned

        started: dict[int, RunningQuery] = {}
        try:
            with tuned(self.spark):
                for group in _groups(requests):
                    if len(group) == 1:
                        started[group[0]] = self._start(requests[group[0]])
                    else:
                        started |= zip(group, self._start_group([requests[i] for i in group]), strict=True)
        except MillstreamError:
            for query in started.values():
                query.close()
            raise
        return [started[i] for i in range(len(requests))]

    def _start(self, request: QueryRequest) -> RunningQuery:
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
            frame = lower_query(request, lowerer, self.compiling)
        if sink is not None and checkpoint.is_new:
            check_sink(sink, self.spark)
        continues = checkpoint.durable and not checkpoint.is_new
        ports = self.ports.behind(lowerer.metrics.values())
        if checkpoint.durable:
            identity = _identity(request, lowerer.stages.pipelines, self.functions)
            checkpoint.claim(request.name, identity, self._partitions(), ports)
        metrics = {metric: stream.name for metric, stream in lowerer.metrics.items()}
        counter = ProgressCounter(metrics, lowerer.stages.reports)
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
        _remember_to_remove(lowerer.stages.tokens)
        running.on_end(lambda: _forget(lowerer.stages.tokens))
        self._clean_behind(checkpoint, running, ports)
        if frame.isStreaming:
            conductor = None
            if control is not None and lowerer.stages.pipelines:
                conductor = self._conductor(
                    lowerer.stages.pipelines, lowerer.metrics.values(), control, counter, request.bounded
                )
            running.start_stream(
                frame if sink is None else shown(frame),
                request.bounded,
                lambda frame: stream_writer(frame, _required(sink)),
                conductor,
            )
        elif sink is None:
            running.start_batch(lambda: self._complete(request, frame).toArrow())
        else:
            running.start_batch(lambda: write_batch(self._complete(request, frame), sink))
        self.ports.watch(ports, running)
        return running

    def _clean_behind(self, checkpoint: Checkpoint, running: RunningQuery, ports: Sequence[int]) -> None:
        """Let files be removed when the query has read them; one that will not go on needs none any more."""
        spark, control = Path(checkpoint.spark), Path(checkpoint.control)
        self.ports.read_by(ports, spark)
        if checkpoint.visible:
            self.cleaner.add(control, spark)
            running.on_end(lambda: self.cleaner.leave(control))
        if not checkpoint.durable:
            running.on_end(lambda: self.cleaner.drop(spark))

    def _clean(self, sink: Sink, checkpoint: Checkpoint, running: RunningQuery, *, now: bool) -> None:
        """Remove what killed batches left in a sink: before a query goes on, and when it has ended."""
        from millstream.spark.errors.error_chain import FAILURES

        since = checkpoint.since

        def clean() -> None:
            # Leftovers are no reason for a failure; the next run tries again.
            with contextlib.suppress(*FAILURES):
                remove_leftovers(sink, self.spark, since)

        if now:
            clean()
        running.on_end(clean)

    def _complete(self, request: QueryRequest, frame: DataFrame) -> DataFrame:
        """A query over tables, when the views among them are what they are to be read as."""
        unfinished = self.views.unfinished(self.views.read_by(request.plan))
        if not unfinished:
            return frame
        for view in unfinished:
            view.wait()
        with self.views.entering:
            return lower_query(request, self.lowerer(request), self.compiling)

    def _start_group(self, requests: Sequence[QueryRequest]) -> list[RunningQuery]:
        from millstream.spark.errors.error_chain import FAILURES
        from millstream.spark.host.control_stream import ControlStream
        from millstream.spark.lowering.shared_scan import can_share, share_scan
        from millstream.spark.planning.stage_builder import StageRequest, empty_result

        checkpoint = self._checkpoint_of(*(one.name for one in requests))
        control = ControlStream(self.spark, checkpoint.control)
        first = self.lowerer(*requests, control=control)
        wanted: list[StageRequest] = []
        frames: list[DataFrame] = []
        for one in requests:
            mine: list[StageRequest] = []

            def stand_in(request: StageRequest, mine: list[StageRequest] = mine) -> DataFrame:
                mine.append(request)
                return empty_result(request)

            frames.append(lower_without_compiling(one, first.standing_in(stand_in)))
            if not can_share(mine):
                checkpoint.remove()
                return [self._start(one) for one in requests]
            wanted += mine
        ports = self.ports.behind(first.metrics.values())
        if checkpoint.durable:
            identity = Identity.together(
                _identity(one, [want.pipeline], self.functions)
                for one, want in zip(requests, wanted, strict=True)
            )
            checkpoint.claim(", ".join(one.name for one in requests), identity, self._partitions(), ports)
        whole = share_scan(wanted, control.frame)
        compile_all([bundle.wanted.pipeline for bundle in whole.bundles], self.compiling)
        bounded = all(one.bounded for one in requests)
        metrics = {metric: stream.name for metric, stream in first.metrics.items()}
        members: list[Member] = []
        for tag, (one, frame) in enumerate(zip(requests, frames, strict=True)):
            counter = ProgressCounter(metrics, whole.reports[tag : tag + 1])
            kept = checkpoint.results / one.name if checkpoint.results else None
            log = _log(frame, kept, checkpoint.done, streaming=True)
            running = RunningQuery(one.name, log, one.explain, counter)

            def finish(results: DataFrame, plan: nodes.Node = one.plan) -> DataFrame:
                return first.standing_in(lambda want: results).lower(plan)

            members.append(Member(running, finish))
        _remember_to_remove(whole.tokens)
        members[-1].query.on_end(lambda: _forget(list(whole.tokens)))
        self._clean_behind(checkpoint, members[-1].query, ports)
        conductor = self._conductor(
            [want.pipeline for want in wanted],
            first.metrics.values(),
            control,
            members[0].query.counter,
            bounded,
        )
        try:
            SharedQuery(whole, members, checkpoint).start(conductor, bounded=bounded)
        except FAILURES as error:
            raise requests[0].explain(error) from None
        for member in members:
            self.ports.watch(ports, member.query)
        return [member.query for member in members]

    def _conductor(
        self,
        pipelines: Iterable[Pipeline],
        streams: Iterable[Stream],
        control: ControlStream,
        counter: ProgressCounter,
        bounded: bool,
    ) -> HeartbeatSender:
        from millstream.spark.sources.file_paths import described

        read = {source.name for pipeline in pipelines for source in pipeline.inputs if source.name}
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
        # The name of a directory may mean one on another file system to Spark.
        files = self.spark._jsc.hadoopConfiguration().get("fs.defaultFS")
        return Checkpoint.kept(self.checkpoint, *names, visible=str(files).startswith("file:"))


def _groups(requests: Sequence[QueryRequest]) -> list[list[int]]:
    """Queries by number; those that have a stream in common, directly or through others, together."""
    groups: list[tuple[set[str], list[int]]] = []
    for i, one in enumerate(requests):
        alone = one.sink is not None or one.form is not build
        streams = set() if alone else shareable(one.plan)
        mine = [group for group in groups if group[0] & streams]
        together = (
            streams.union(*(g[0] for g in mine)),
            sorted([i, *(n for g in mine for n in g[1])]),
        )
        groups = [group for group in groups if group not in mine] + [together]
    return sorted(members for _, members in groups)


def _slack(promises: Iterable[Promise]) -> int:
    """How far tuples may be behind a heartbeat."""
    for promise in promises:
        if isinstance(promise, SlackPromise) and isinstance(promise.amount, Duration):
            return promise.amount.microseconds
    return 0


def _schema(frame: DataFrame, *, streaming: bool) -> pa.Schema:
    """What comes, known before the first row does, so that an empty result has a header too."""
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
    """Where rows are kept; those that are ``materialized`` of a result are not all that come."""
    from millstream.spark.sources.hidden_columns import hidden, sort_keys

    schema = _schema(frame, streaming=streaming)
    schema = schema if materialized is None else materialized.told(schema.empty_table()).schema
    return ResultLog(
        schema, keys=sort_keys(schema.names), hidden=hidden(schema.names), kept_in=directory, done=done
    )


def _current(
    frame: DataFrame, request: QueryRequest, checkpoint: Checkpoint, counter: ProgressCounter
) -> MaterializedResult | None:
    """What keeps the current result, where somebody may ask for it."""
    from millstream.kernels.relational.incremental_relation import ID, ID2, OP
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
    pipelines: Iterable[Pipeline],
    functions: Callable[[str], ScalarFunction | None],
) -> Identity:
    """Return what a query is, for its checkpoint: its plan, and what the user's code in it does."""
    from millstream.stage.program_discovery import programs

    plan = described(request.plan, exact_names=request.sink is not None)
    modes = modes_described(programs(list(pipelines)))
    called = {function_described(function) for function in functions_in(plan, functions)}
    text = request.source.text[request.span[0] : request.span[1] + 1]
    return Identity((text,), (*plan, *modes, *sorted(called)))


def _remember_to_remove(tokens: Iterable[str]) -> None:
    """Let the next process remove what this one leaves in shared memory if it is killed."""
    from millstream.stage.shard_cache import place

    for token in tokens:
        remove_with_scratch(place(token))


def _forget(tokens: list[str]) -> None:
    """Release what an ended query has left in shared memory and in the JVM."""
    from millstream.spark.host.query_cleanup import query_ended
    from millstream.stage.shard_cache import forget

    for token in tokens:
        forget(token)
    query_ended()


def _required(sink: Sink | None) -> Sink:
    assert sink is not None
    return sink
