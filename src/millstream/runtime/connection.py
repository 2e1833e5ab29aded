"""A connection: a catalog, a Spark session, and the queries that run on it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from millstream.analysis.definitions.library_aggregates import stock
from millstream.analysis.definitions.script_analyzer import analyse_script
from millstream.analysis.definitions.settings import Setting, analyse_setting
from millstream.analysis.definitions.statement_analyzer import (
    AnalysedStatement,
    Definition,
    Dropped,
    ExplainQuery,
    InsertQuery,
    RunQuery,
    name_taken,
)
from millstream.analysis.queries.resolved_query import Arrangement, Query
from millstream.catalog import Catalog
from millstream.catalog.entries import Registered, Relation, Sink, Table, View
from millstream.errors import MillstreamError, NotExecutableError, Source, Span
from millstream.plan.builder import build
from millstream.plan.views import build_kept, build_view
from millstream.runtime.column_inference import KeptColumns, inferred_columns
from millstream.runtime.explain import located_explanation
from millstream.runtime.own_tables import OwnTables
from millstream.runtime.port_listeners import PortListeners
from millstream.runtime.queries import corrupt_files
from millstream.runtime.queries.corrupt_files import CorruptFiles
from millstream.runtime.queries.input_cleanup import InputCleaner
from millstream.runtime.queries.query_request import QueryRequest, explain_error
from millstream.runtime.queries.query_starter import QueryStarter, ignore_message, lower_query
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.queries.table_evaluation import TableEvaluation
from millstream.runtime.script_checks import Runnable
from millstream.runtime.session_registry import SessionRegistry
from millstream.runtime.show import answer
from millstream.runtime.single_query import single_query
from millstream.runtime.spark_handle import SparkHandle
from millstream.runtime.statement_warnings import warn_of, warn_of_settings
from millstream.runtime.table_refresh import VersionedRelations
from millstream.runtime.table_statements import TableStatements
from millstream.runtime.view_registry import ViewRegistry
from millstream.scratch import scratch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millstream.runtime.frame_registration import Slack
    from millstream.spark.host.control_stream import ControlStream
    from millstream.spark.lowering.lowerer import Lowerer
    from millstream.stage.program_discovery import Compiling


class Mill:
    """A connection to Millstream, made by :func:`millstream.connect`."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        master: str | None = None,
        settings: Mapping[str, str] | None = None,
        checkpoint: Path | None = None,
        allow_python: bool = True,
        allow: Iterable[str] = (),
        compiling: Compiling = ignore_message,
        views_at_end: bool = False,
        warns: bool = True,
    ) -> None:
        self.catalog = Catalog(elsewhere=self._table_of_spark, allow_python=allow_python, allow=allow)
        inferring = None if checkpoint is None else KeptColumns(checkpoint / "columns.json")
        self.catalog.infer = inferring or inferred_columns
        stock(self.catalog)
        self._handle = SparkHandle(spark, master)
        self._warns = warns
        self._checkpoint = checkpoint
        self._compiling = compiling
        self._frames: dict[str, DataFrame] = {}
        self._cleaner = InputCleaner()
        self._ports = PortListeners(checkpoint, self._spool_directory, self._cleaner)
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._names = 0
        self._corrupt = CorruptFiles()
        self._live = VersionedRelations()
        self._views = ViewRegistry(self._relation, until_stopped=views_at_end)
        own = OwnTables(checkpoint, self._live.publish)
        self._entrance = SessionRegistry(
            lambda: self.catalog, self._frames, self._read_port, self._views, self._live, own
        )
        evaluation = TableEvaluation(self._lowerer, self._views, compiling)
        self._tables = TableStatements(own, evaluation)
        self.queries: list[RunningQuery] = []
        if warns:
            warn_of_settings(settings or {})
        for key, value in (settings or {}).items():
            self._set(analyse_setting(key, value), Source("<settings>", f"{key}={value}"), (0, len(key) - 1))

    # ------------------------------------------------------------ for users

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started when it is first needed."""
        return self._handle.session

    def execute(self, text: str, name: str = "<script>", *, once: bool = True) -> list[RunningQuery]:
        """Run all statements of a script and return the queries that it starts.

        The whole script is checked before the first statement runs, and suspicious statements cause warnings.
        The answers to SHOW, DESCRIBE and EXPLAIN are printed. With a checkpoint, statements that change
        tables run ``once``: a session that continues skips those of the session before.
        """
        catalog, statements = self._checked(text, name)
        warn_of(statements)
        self.catalog = catalog
        outcomes = self.perform_all(statements, once=once)
        for outcome in outcomes:
            if isinstance(outcome, str):
                print(outcome)  # noqa: T201 (the answer to SHOW, DESCRIBE or EXPLAIN)
        return [outcome for outcome in outcomes if isinstance(outcome, RunningQuery)]

    def sql(self, query: str) -> DataFrame:
        """Return a query as a Spark DataFrame, which is streaming if the query reads a stream.

        A streaming DataFrame belongs to a copy of the session with the settings that Millstream needs, so
        that the caller's session is not changed: ``frame.sparkSession.streams`` lists its queries.
        """
        from millstream.spark.session.external_session import with_settings
        from millstream.spark.sources.hidden_columns import shown

        statement, resolved = single_query(query, self.catalog)
        warn_of([statement])
        request = QueryRequest(resolved, statement.source, statement.span, "")
        for view in self._views.unfinished(self._views.read_by(request.plan)):
            view.wait()
        self._corrupt.apply(self.spark)
        with self._views.entering:
            lowerer = self._lowerer(request)
            frame = shown(lower_query(request, lowerer, self._compiling))
        self._ports.keep(lowerer.metrics.values())
        return with_settings(frame) if frame.isStreaming else frame

    def start(self, query: str, name: str | None = None, *, snapshot: bool = False) -> RunningQuery:
        """Start a query and return it; ``query.results()`` yields its rows.

        With ``snapshot``, the result of a query over windows is materialized: ``query.snapshot()`` returns
        it.
        """
        statement, resolved = single_query(query, self.catalog)
        warn_of([statement])
        form = build_kept if snapshot else build
        request = QueryRequest(
            resolved, statement.source, statement.span, name or self._next_name(), form=form
        )
        return self._start_all([request])[0]

    def stop_views(self) -> None:
        """Stop all views and keep their last results for the queries that wait for them."""
        self._views.stop()

    def view(self, name: str) -> RunningQuery:
        """Return the query of a view: ``mill.view("v").snapshot()`` is its current result."""
        return self._views.running(name)

    def table(self, name: str) -> pa.Table:
        """Return the rows of a table that statements change."""
        return self._tables.tables.rows(name)

    def explain(self, query: str, mode: str = "logical") -> str:
        """Return the plan of a query, its patterns, its stages, or the code of its aggregates as text.

        ``mode`` is ``logical``, ``pattern``, ``pattern dot``, ``pattern mermaid``, ``physical`` or ``code``.
        """
        statement, resolved = single_query(query, self.catalog)
        return located_explanation(ExplainQuery(mode.upper(), resolved), self.catalog, statement.source)

    def register_stream(
        self,
        name: str,
        frame: Any,
        order_by: str | None = None,
        *,
        slack: Slack | None = None,
        late_into: str | None = None,
        bad_into: str | None = None,
        computed: Mapping[str, str] | None = None,
        ends: bool = False,
        replace: bool = False,
    ) -> None:
        """Add a streaming DataFrame, or rows of pandas or Arrow, to the catalog as a stream.

        Args:
            name: Name of the stream in queries.
            frame: A streaming DataFrame of Spark, a DataFrame of pandas, or a table of Arrow. The latter two
                are bounded streams.
            order_by: The timestamp column; by default that of the DataFrame's watermark.
            slack: Permitted disorder: ``"10 seconds"``, a timedelta, ``"100 rows"``, or a number if the
                timestamp is one. By default the delay of the DataFrame's watermark.
            late_into: Name of a stream of its late tuples.
            bad_into: Name of a stream of its bad records.
            computed: Expressions of further columns, by their names: ``{"at": "timestamp_millis(ms)"}``.
            ends: Whether the DataFrame's input is bounded, as files are that are not added to.
            replace: Whether existing streams of these names are replaced; otherwise they are an error.
        """
        from millstream.runtime.frame_registration import Clauses, stream_of

        clauses = Clauses(order_by, slack, late_into, bad_into, ends, computed or {})
        for name_of_stream in (name, late_into, bad_into):
            existing = self.catalog.named(name_of_stream) if name_of_stream and not replace else None
            if existing is not None:
                raise name_taken(existing, "pass replace=True")
        entries, streaming = stream_of(name, frame, clauses, self._spool_directory, self.catalog)
        if streaming is not None:
            self._frames[name.lower()] = streaming
        for entry in entries:
            self.catalog.add(entry)

    def register_table(self, name: str, frame: Any, *, replace: bool = False) -> None:
        """Add a DataFrame of Spark or pandas, or a table of Arrow, to the catalog as a table.

        A name that is taken is an error unless ``replace`` is set.
        """
        from millstream.runtime.frame_registration import table_of

        known = None if replace else self.catalog.named(name)
        if known is not None:
            raise name_taken(known, "pass replace=True")
        table, self._frames[name.lower()] = table_of(name, frame, lambda: self.spark)
        self.catalog.add(table)

    def aggregate_function(
        self,
        name: str,
        subject: object = None,
        *,
        returns: str,
        parameters: str | None = None,
        window: bool = False,
        **methods: Callable[..., object],
    ) -> None:
        """Add an aggregate in Python to the catalog; it replaces an aggregate of that name.

        Args:
            name: Name of the aggregate in queries.
            subject: A class with init and add, initialize and iterate, or compute; or a function of lists.
            returns: A type, or columns with types: ``"double"``, ``"(low DOUBLE, high DOUBLE)"``.
            parameters: Parameters with types, ``"x DOUBLE, y INT"``. By default they are those of the
                Python code, with the types of the arguments of each call.
            window: Whether it is the window version of the aggregate.
            methods: Instead of a class: init, add, remove, merge and result as functions.
        """
        from millstream.runtime.python_registration import python_aggregate

        self.catalog.add(
            python_aggregate(self.catalog, name, subject, returns, parameters, methods, window=window)
        )

    def listen(self, port: int = 0) -> int:
        """Open a port for ``SOURCE 'port4445'`` before a query does; return its number. 0 takes a free one.

        Lines that arrive before the first query are stored for it.
        """
        return self._ports.listen(port)

    def refresh(self, table: str) -> None:
        """Read a table with REFRESH EVERY again now; streaming queries use it from their next batch on."""
        self._live.refresh(table)

    @property
    def stale_tables(self) -> dict[str, MillstreamError]:
        """Return the tables whose refresh failed, with the errors; their last version stays in use."""
        return self._live.problems()

    @property
    def port_warnings(self) -> list[str]:
        """Return warnings about connections refused and lines lost at ports."""
        return self._ports.warnings

    @property
    def dropped_lines(self) -> list[str]:
        """Return warnings about lines lost because this connection ended while its queries were starting."""
        return self._ports.dropped

    @property
    def corrupt_files(self) -> list[str]:
        """Return the files skipped in whole or in part with millstream.on_corrupt_file = 'skip'."""
        return self._corrupt.skipped()

    def stop(self) -> None:
        """Stop all queries, and Spark if it was started here, and close the connection."""
        self._handle.close()
        for query in self.queries:
            query.close()
        self._live.stop()
        self._cleaner.close()
        try:
            # Raises an error that no query has reported.
            self._ports.close()
        finally:
            self._handle.stop()
            self._remove_spool_directory()

    def _remove_spool_directory(self) -> None:
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def abandon(self) -> None:
        """End at once, without waiting: Spark's JVM is killed if it was started here.

        Checkpoints and sinks are as after any other kill: a later run continues from them.
        """
        self._handle.kill()
        for query in self.queries:
            query.abandon()
        self._views.clear()
        self.queries.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ------------------------------------------------------------ statements

    def analyse(self, text: str, name: str = "<script>") -> list[AnalysedStatement]:
        """Check a whole script and plan its queries; after an error the catalog is unchanged."""
        self.catalog, statements = self._checked(text, name)
        return statements

    def _checked(self, text: str, name: str) -> tuple[Catalog, list[AnalysedStatement]]:
        """Return the statements of a script, and the catalog after it."""
        scratch = self.catalog.copy()
        return scratch, analyse_script(text, name, scratch, Runnable())

    def perform_all(
        self,
        statements: Sequence[AnalysedStatement],
        collect_sinks: Callable[[Sink], bool] = lambda sink: False,
        *,
        once: bool = True,
    ) -> list[RunningQuery | str]:
        """Run the statements of an analysed script; return its queries and the answers as texts.

        Queries are started together, so that those over the same streams can share a scan.
        """
        with self._cleaner.held():
            return self._perform_all(statements, collect_sinks, once=once)

    def _perform_all(
        self, statements: Sequence[AnalysedStatement], collect_sinks: Callable[[Sink], bool], *, once: bool
    ) -> list[RunningQuery | str]:
        outcomes: list[RunningQuery | str] = []
        waiting: list[QueryRequest] = []
        try:
            for statement in statements:
                match statement.meaning:
                    case _ if self._tables.concerns(statement):
                        outcomes += self._start_all(waiting)
                        waiting = []
                        self._tables.perform(statement, self.catalog, once=once)
                    case RunQuery(query):
                        waiting.append(
                            QueryRequest(query, statement.source, statement.span, self._next_name())
                        )
                    case InsertQuery(sink, query):
                        target = None if collect_sinks(sink) else sink
                        waiting.append(
                            QueryRequest(query, statement.source, statement.span, sink.name, target)
                        )
                    case Definition() as definition:
                        for view, query in definition.views:
                            self._views.drop(view.name)
                            if view.maintained:
                                self._start_view(view, query, statement)
                    case Dropped(entries) if any(isinstance(entry, View) for entry in entries):
                        outcomes += self._start_all(waiting)
                        waiting = []
                        for entry in entries:
                            self._views.drop(entry.name)
                    case Dropped():
                        pass
                    case _:
                        # A setting applies to the statements after it, and SHOW QUERIES lists those before
                        # it.
                        outcomes += self._start_all(waiting)
                        waiting = []
                        text = self._perform(statement)
                        outcomes += [] if text is None else [text]
            outcomes += self._start_all(waiting)
        except MillstreamError:
            # The caller gets no handle on them.
            for outcome in outcomes:
                if isinstance(outcome, RunningQuery):
                    outcome.close()
            raise
        return outcomes

    def _perform(self, statement: AnalysedStatement) -> str | None:
        match statement.meaning:
            case Setting() as setting:
                self._set(setting, statement.source, statement.span)
                return None
            case ExplainQuery() as explain:
                return located_explanation(explain, self.catalog, statement.source)
            case other:
                return answer(other, self.catalog, self.queries)

    def _set(self, setting: Setting, source: Source, span: Span) -> None:
        from millstream.spark.errors.error_chain import FAILURES

        if setting == Setting("millstream.on_error", "bad"):
            raise NotExecutableError(
                "millstream.on_error = 'bad' cannot be used in this version of Millstream yet",
                span=span,
                hint="a tuple that causes an error stops its query",
            ).locate(source)
        if setting.key == corrupt_files.SETTING:
            self._corrupt.skips = setting.value == "skip"
        if not setting.key.startswith("spark."):
            return
        try:
            self._handle.configure(setting.key, setting.value)
        except FAILURES as error:
            raise explain_error(error, source, span) from None

    # ------------------------------------------------------------ starting

    def _start_all(self, requests: Sequence[QueryRequest]) -> list[RunningQuery]:
        if not requests:
            return []
        self._corrupt.apply(self.spark)
        starter = QueryStarter(
            self.spark,
            self._lowerer,
            lambda request: self._entrance.plan(request.plan, self.spark),
            self._checkpoint,
            self._views,
            self._ports,
            self._cleaner,
            self.catalog.function,
            self._compiling,
        )
        started = starter.start_all(requests)
        if self._warns:
            for query in started:
                query.warn_with(self._relation)
        self.queries += started
        return started

    def _start_view(self, view: View, query: Query, statement: AnalysedStatement) -> None:
        """Start a view, which runs from its definition on."""
        order = view.arrangement
        assert order is None or isinstance(order, Arrangement)
        request = QueryRequest(
            query, statement.source, statement.span, view.name, form=build_view, arrangement=order
        )
        self._views.add(self._start_all([request])[0])

    def _lowerer(self, *request: QueryRequest, control: ControlStream | None = None) -> Lowerer:
        return self._entrance.lowerer([one.plan for one in request], self.spark, control)

    def _next_name(self) -> str:
        self._names += 1
        return f"q{self._names}"

    # ------------------------------------------------------------ inputs of queries

    def _relation(self, name: str) -> Relation | None:
        return self.catalog.relation(name)

    def _table_of_spark(self, name: str) -> Table | None:
        """Look up a table or temporary view of the Spark session."""
        from millstream.spark.session.spark_types import fields_of

        frame = self._handle.table(name)
        if frame is None:
            return None
        self._frames[name.lower()] = frame
        return Table(name, fields_of(frame.schema), Registered(is_bounded=True))

    def _read_port(self, number: int) -> DataFrame:
        return self._ports.frame(number, self.spark)

    def _spool_directory(self) -> Path:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="ports-", dir=scratch())
        return Path(self._directory.name)
