"""Scripts on the local engine: one process, bounded files, no Spark and no checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import pyarrow as pa

from millstream.analysis.definitions.library_aggregates import stock
from millstream.analysis.definitions.script_analyzer import analyse_script
from millstream.analysis.definitions.settings import Setting
from millstream.analysis.definitions.statement_analyzer import (
    AnalysedStatement,
    Definition,
    ExplainQuery,
    InsertQuery,
    RunQuery,
)
from millstream.analysis.queries.resolved_query import Arrangement, Query, Select, TableQuery, Values
from millstream.catalog import Catalog
from millstream.catalog.entries import Relation, Sink, Stream, Table, View
from millstream.errors import MillstreamError, NotExecutableError
from millstream.kernels.column_names import ID, ID2, OP
from millstream.local.course import Course
from millstream.local.frame import Frame, to_table
from millstream.local.plan_runner import LocalResult, run_plan, values_table
from millstream.local.sources import FileSources
from millstream.local.translator import converted
from millstream.plan.builder import build
from millstream.plan.views import build_view
from millstream.runtime.column_inference import inferred_columns
from millstream.runtime.explain import explanation, located_explanation
from millstream.runtime.own_tables import OwnTables
from millstream.runtime.python_registration import dump_code, python_aggregate
from millstream.runtime.queries.query_progress import Progress, most
from millstream.runtime.queries.query_request import Form, plan_query
from millstream.runtime.queries.rejection_warnings import RejectionWarnings
from millstream.runtime.results import external_sort
from millstream.runtime.results.materialized_result import MaterializedResult, latest
from millstream.runtime.script_checks import Runnable
from millstream.runtime.show import answer
from millstream.runtime.single_query import single_query
from millstream.runtime.table_statements import TableStatements
from millstream.stage.hidden_columns import is_hidden, sort_keys
from millstream.stage.pipeline import TIME
from millstream.types import Field


@dataclass(frozen=True)
class LocalQuery:
    """A query that has been run: its name, its rows in order, and its counts."""

    name: str
    rows: pa.Table
    progress: Progress


@dataclass
class LocalEngine:
    """A catalog, and queries over it that run to the end of their input at once.

    ``batches`` is the number of micro-batches that the files of a stream are spread over, ``shards`` that of
    the shards of a stage; results depend on neither. ``tables`` are tables in memory by name in lower case.

    >>> engine = LocalEngine()
    >>> [query.name for query in engine.execute("SHOW STREAMS") if isinstance(query, LocalQuery)]
    []
    """

    batches: int = 1
    shards: int = 1
    catalog: Catalog = field(default_factory=Catalog)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    _names: int = 0
    _views: dict[str, pa.Table] = field(default_factory=dict)
    """The results of views at the end of their input."""

    def __post_init__(self) -> None:
        stock(self.catalog)
        self.catalog.infer = inferred_columns
        self._own = TableStatements(OwnTables(), self._rows_of)

    def table(self, name: str) -> pa.Table:
        """Return the rows of a table that statements change."""
        return self._own.tables.rows(name)

    def analyse(self, text: str, name: str = "<script>") -> list[AnalysedStatement]:
        """Check a whole script; nothing has changed if there is a mistake in it."""
        scratch = self.catalog.copy()
        statements = analyse_script(text, name, scratch, Runnable())
        self.catalog = scratch
        return statements

    def execute(self, text: str, name: str = "<script>") -> list[LocalQuery | str]:
        """Run all statements of a script; return its queries, and the answers to SHOW and its kin."""
        return list(self.perform(self.analyse(text, name)))

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
        """Add an aggregate in Python to the catalog, as :meth:`millstream.Mill.aggregate_function` does."""
        self.catalog.add(
            python_aggregate(self.catalog, name, subject, returns, parameters, methods, window=window)
        )

    def explain(self, query: str, mode: str = "logical") -> str:
        """Return the plan of a query as text, as :meth:`millstream.Mill.explain` does."""
        statement, resolved = single_query(query, self.catalog)
        return located_explanation(ExplainQuery(mode.upper(), resolved), self.catalog, statement.source)

    def perform(self, statements: list[AnalysedStatement]) -> Iterator[LocalQuery | str]:
        """Run analysed statements one after the other."""
        for statement in statements:
            try:
                outcome = self._perform(statement)
            except MillstreamError as error:
                error.span = error.span or statement.span
                raise error.locate(statement.source) from None
            if outcome is not None:
                yield outcome

    def rejects(self, queries: list[LocalQuery]) -> RejectionWarnings:
        """Return the late tuples and bad records of queries, for warnings."""
        return RejectionWarnings(tuple(query.progress for query in queries), self.catalog.relation)

    def _perform(self, statement: AnalysedStatement) -> LocalQuery | str | None:
        match statement.meaning:
            case _ if self._own.concerns(statement):
                self._own.perform(statement, self.catalog)
            case RunQuery(query):
                self._names += 1
                return self._run(f"q{self._names}", query, statement)
            case InsertQuery(sink):
                _refuse_sink(sink)
            case Definition() as definition:
                for view, query in definition.maintained:
                    self._views[view.name.lower()] = self._current(view, query, statement)
            case Setting(key=key) if key.startswith("spark."):
                raise NotExecutableError(
                    f"'{key}' is a setting of Spark, which the local engine does not start",
                    hint="run without --engine local",
                )
            case ExplainQuery() as explain:
                return explanation(explain, self.catalog)
            case other:
                return answer(other, self.catalog)
        return None

    def _run(self, name: str, query: Query, statement: AnalysedStatement) -> LocalQuery:
        found, sources = self._found(query, statement)
        bad = {stream: frames.bad.count for stream, frames in sources.read.items() if frames.bad.count}
        examples = {}
        for stream in bad:
            record, reason = (column[0].as_py() for column in sources.read[stream].bad.columns[:2])
            examples[stream] = reason, record
        rows = {stream: f.good.count + f.bad.count for stream, f in sources.read.items()}
        late = most([{stream: count for stream, count in found.late.items() if count}])
        table = _shown(found.frame)
        progress = Progress(
            rows_in=sum(rows.values()),
            rows_out=table.num_rows,
            bad=bad,
            bad_records=examples,
            late=late,
            rows=rows,
        )
        return LocalQuery(name, table, progress)

    def _current(self, view: View, query: Query, statement: AnalysedStatement) -> pa.Table:
        """Return the rows of a view at the instant of the newest tuple of its streams."""
        found, _ = self._found(query, statement, build_view)
        changes = to_table(found.frame.pairs)
        kind = changes.schema.field(TIME).type
        names = changes.column_names
        order = view.arrangement
        assert order is None or isinstance(order, Arrangement)
        kept = MaterializedResult(
            changes.schema,
            sort_keys(names),
            (OP, ID, ID2),
            [name for name in names if is_hidden(name)],
            newest=lambda: latest(found.newest, kind),
            arrangement=order,
        )
        kept.apply(0, changes)
        return kept.snapshot()

    def _found(
        self, query: Query, statement: AnalysedStatement, form: Form = build
    ) -> tuple[LocalResult, FileSources]:
        """Run the plan of a query."""
        if isinstance(query, TableQuery) and isinstance(query.simple, Select):
            query = query.simple
        plan = plan_query(query, statement.source, form)
        course = Course(self.batches + 1, self.shards)
        sources = FileSources(course, {**self.tables, **self._own.tables.all, **self._views})
        found = run_plan(
            plan, sources, course, self._stream, self._table, dumps=dump_code, catalog=self.catalog
        )
        return found, sources

    def _rows_of(
        self, query: Query, statement: AnalysedStatement, targets: tuple[Field, ...] | None
    ) -> tuple[pa.Table, tuple[Field, ...]]:
        """Return the rows of a query in a statement about a table, converted to the types of its columns."""
        if isinstance(query, TableQuery) and isinstance(query.simple, Values):
            return values_table(query.simple, self.catalog), query.simple.fields
        frame = self._found(query, statement)[0].frame
        fields = targets or tuple(Field(ref.name, ref.type) for ref, _ in frame.shown)
        columns = [
            converted(column, ref.type, field.type)
            for (ref, column), field in zip(frame.shown, fields, strict=True)
        ]
        return pa.table(columns, names=[str(number) for number in range(len(columns))]), fields

    def _stream(self, name: str) -> Stream | None:
        entry = self._relation(name)
        return entry if isinstance(entry, Stream) else None

    def _table(self, name: str) -> Table | None:
        entry = self._relation(name)
        return entry if isinstance(entry, Table) else None

    def _relation(self, name: str) -> Relation | None:
        return self.catalog.relation(name)


def _refuse_sink(sink: Sink) -> NoReturn:
    raise NotExecutableError(
        f"'{sink.name}' is a sink of Spark, and the local engine prints results only",
        hint="leave out INSERT INTO, or run without --engine local",
    )


def _shown(frame: Frame) -> pa.Table:
    """Return the rows in order, without hidden columns; two columns may have the same name."""
    keys = _keys(frame)
    order = external_sort.argsort(pa.table([frame.hidden[k] for k in keys], names=keys)) if keys else None
    arrays = [
        column if order is None else column.take(order)
        for ref, column in frame.pairs
        if not is_hidden(ref.name)
    ]
    names = [ref.name for ref in frame.refs if not is_hidden(ref.name)]
    return pa.table(arrays, names=names)


def _keys(frame: Frame) -> list[str]:
    return sort_keys(frame.hidden)
