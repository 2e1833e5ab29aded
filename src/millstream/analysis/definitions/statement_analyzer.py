"""Statements: what each asks for, checked against the catalog and entered into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from millstream.analysis.definitions.create_aggregate import analyse_aggregate, python_name
from millstream.analysis.definitions.create_stream import (
    analyse_sink,
    analyse_stream,
    analyse_table,
    columns,
    ordered,
    refresh_of,
    with_clauses,
)
from millstream.analysis.definitions.fence import check_fence
from millstream.analysis.definitions.library_aggregates import stock
from millstream.analysis.definitions.ordered_query import selecting
from millstream.analysis.definitions.query_columns import told_apart
from millstream.analysis.definitions.settings import Setting, analyse_setting
from millstream.analysis.definitions.table_changes import (
    ChangeAnalyser,
    TableChange,
    instead_of_insert,
    reads_changing,
)
from millstream.analysis.definitions.table_function import table_function
from millstream.analysis.error_collector import ErrorCollector, error_at
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.query_analyzer import analyse_query
from millstream.analysis.queries.resolved_query import Query
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.queries.view_queries import order_of_view, require_current, without_order
from millstream.analysis.types.coercion import stores
from millstream.analysis.types.data_types import from_datatype
from millstream.catalog import Catalog, kind_of
from millstream.catalog.entries import (
    Aggregate,
    Derived,
    Entry,
    ScalarFunction,
    Sink,
    Stored,
    Stream,
    Table,
    View,
)
from millstream.catalog.functions import builtin
from millstream.errors import (
    AnalysisError,
    MillstreamError,
    Source,
    Span,
    UnknownNameError,
    did_you_mean,
)
from millstream.syntax import ParsedStatement, nodes
from millstream.syntax.spans import span_of
from millstream.types import Type


@dataclass(frozen=True)
class Definition:
    """A definition: an entry that is added to the catalog."""

    entries: tuple[Entry, ...]
    fill: TableChange | None = None
    """The rows of a table that is filled when it is created."""

    @property
    def views(self) -> Iterator[tuple[View, Query]]:
        """The views, and what they show."""
        for entry in self.entries:
            if isinstance(entry, View):
                assert isinstance(entry.definition, Query)
                yield entry, entry.definition

    @property
    def maintained(self) -> Iterator[tuple[View, Query]]:
        """The views over streams, whose results are maintained."""
        return ((view, query) for view, query in self.views if view.maintained)


@dataclass(frozen=True)
class RunQuery:
    """A bare SELECT, whose results go to the caller of the script."""

    query: Query


@dataclass(frozen=True)
class InsertQuery:
    sink: Sink
    query: Query


@dataclass(frozen=True)
class ExplainQuery:
    mode: str
    query: Query


@dataclass(frozen=True)
class ShowList:
    what: str


@dataclass(frozen=True)
class DescribeOne:
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Dropped:
    entries: tuple[Entry, ...]


Meaning = (
    Definition
    | RunQuery
    | InsertQuery
    | TableChange
    | ExplainQuery
    | ShowList
    | DescribeOne
    | Dropped
    | Setting
)


@dataclass(frozen=True)
class AnalysedStatement:
    """A statement and what it means."""

    meaning: Meaning
    source: Source
    span: Span


def analyse(statement: ParsedStatement, catalog: Catalog) -> AnalysedStatement:
    """Check a statement; what it defines, drops or sets is in the catalog afterwards."""
    stock(catalog)
    try:
        check_fence(statement, catalog)
        meaning = _StatementAnalyser(catalog, statement.source).meaning(statement.tree)
    except MillstreamError as error:
        for one in error.all:
            one.span = one.span or statement.span
        raise error.locate(statement.source) from None
    except RecursionError:
        hint = "split it up, for instance with WITH or CREATE STREAM"
        too_deep = AnalysisError("this is nested too deeply", span=statement.span, hint=hint)
        raise too_deep.locate(statement.source) from None
    return AnalysedStatement(meaning, statement.source, statement.span)


class _StatementAnalyser:
    def __init__(self, catalog: Catalog, source: Source) -> None:
        self.catalog = catalog
        self.source = source

    def meaning(self, node: exp.Expr) -> Meaning:
        match node:
            case nodes.CreateStream():
                return self._define(node, *self._stream(node))
            case nodes.CreateTable():
                return self._defined_table(node)
            case nodes.CreateSink():
                return self._define(node, analyse_sink(node))
            case nodes.CreateView():
                return self._define(node, self._view(node))
            case nodes.CreateFunction():
                return self._define(node, self._function(node))
            case nodes.CreateAggregate():
                return self._define(node, analyse_aggregate(node, self.catalog, self.source))
            case nodes.SplitStream():
                return self._split(node)
            case nodes.InsertInto():
                return self._insert(node)
            case exp.Update():
                return ChangeAnalyser(self.catalog, self.source).update(node)
            case exp.Delete():
                return ChangeAnalyser(self.catalog, self.source).delete(node)
            case nodes.Explain():
                return ExplainQuery(node.args.get("mode") or "LOGICAL", self._query(node.this))
            case nodes.ShowEntries():
                return ShowList(str(node.this))
            case nodes.DescribeEntry():
                return DescribeOne(self._known(node))
            case nodes.DropEntry():
                return self._drop(node)
            case nodes.SetOption():
                return self._set(node)
            case _:
                return RunQuery(self._query(node))

    def _query(self, node: exp.Expr) -> Query:
        return analyse_query(node, self.catalog, self.source)

    # ------------------------------------------------------------ definitions

    def _define(self, node: exp.Expression, *entries: Entry) -> Definition:
        kept: list[Entry] = []
        for entry in entries:
            known = self._namesake(entry)
            if known is not None and node.args.get("exists"):
                continue
            if known is not None and not node.args.get("replace"):
                otherwise = f"say CREATE OR REPLACE {_label(known).upper()}"
                raise name_taken(known, otherwise, span=span_of(node.this))
            kept.append(entry)
        return self._enter(node, kept)

    def _enter(self, node: exp.Expression, entries: list[Entry]) -> Definition:
        """Enter into the catalog, with the place of the definition for errors at its use."""
        span = span_of(node)
        place = self.source.place(span) if span else None
        placed = [replace(e, place=place) if isinstance(e, Stream | Table | Sink) else e for e in entries]
        for entry in placed:
            self.catalog.add(entry)
        return Definition(tuple(placed))

    def _namesake(self, entry: Entry) -> Entry | None:
        match entry:
            case Aggregate():
                return self.catalog.own_aggregate(entry.name, window=entry.window) or self.catalog.function(
                    entry.name
                )
            case ScalarFunction():
                return self.catalog.function(entry.name) or self.catalog.own_aggregate(entry.name)
            case _:
                return self.catalog.named(entry.name)

    def _stream(self, node: nodes.CreateStream) -> tuple[Stream, ...]:
        query = node.args.get("query")
        if query is None:
            return analyse_stream(node, self.catalog, self.source)
        is_ordered = node.args.get("order_by") is not None
        own = ("order_by", "clauses", "late", "bad") if is_ordered else ()
        for argument in ("columns", "order_by", "format", "source", "clauses", "late", "bad"):
            if argument in own:
                continue
            given = node.args.get(argument)
            if given:
                part = given[0] if isinstance(given, list) else given
                raise error_at(
                    part,
                    f"a stream made by a query takes no {_clause_name(argument)}",
                    hint=_INSTEAD_IN_DERIVED.get(argument, "its columns and order are those of the query"),
                )
        derived = self._derived(node.this, query)
        if is_ordered:
            return with_clauses(node, selecting(derived, node), self.catalog, self.source, ErrorCollector())
        return (derived,)

    def _derived(self, name: exp.Expr, node: exp.Expr) -> Stream:
        query = self._query(node)
        if query.facts is None:
            raise error_at(
                node,
                f"'{name.name}' would not be a stream, because its query reads none",
                hint=f"CREATE TABLE {name.name} AS ...",
            )
        fields = told_apart(name.name, query, node)
        return Stream(name.name, fields, Derived(query, query.facts.bounded), query.facts.timestamp)

    def _defined_table(self, node: nodes.CreateTable) -> Definition:
        table = self._table(node)
        definition = self._define(node, table)
        query = node.args.get("query")
        if query is None or not isinstance(table.origin, Stored) or not definition.entries:
            return definition
        change = ChangeAnalyser(self.catalog, self.source).filled(table, self._query(query))
        return replace(definition, fill=change)

    def _table(self, node: nodes.CreateTable) -> Table:
        return ordered(self._unordered_table(node), node)

    def _unordered_table(self, node: nodes.CreateTable) -> Table:
        if node.args.get("query") is None:
            return analyse_table(node, self.catalog, self.source)
        if node.args.get("columns") or node.args.get("format"):
            raise error_at(node.this, "a table made by a query takes no columns and no USING")
        query = self._query(node.args["query"])
        if query.facts is not None:
            raise error_at(
                node.args["query"],
                f"'{node.name}' would not be a table, because its query reads a stream",
                hint=f"CREATE STREAM {node.name} AS ..., or CREATE VIEW over a window",
            )
        if reads_changing(node.args["query"], self.catalog):
            # It is filled with the rows of now. Files of tables do not change, so others can be read later.
            if node.args.get("refresh") is not None:
                raise error_at(
                    node.args["refresh"],
                    f"table '{node.name}' is filled once, because its query reads what changes",
                    hint=f"leave REFRESH EVERY out, or write CREATE VIEW {node.name} AS ..., which follows",
                )
            fields = None if query.fields is None else told_apart(node.name, query, node.args["query"])
            return Table(node.name, fields, Stored())
        return Table(node.name, query.fields, Derived(query, is_bounded=True), refresh=refresh_of(node))

    def _view(self, node: nodes.CreateView) -> View:
        written = node.args["query"]
        if not any(isinstance(self.catalog.named(t.name), Stream) for t in written.find_all(exp.Table)):
            query = self._query(written)
            fields = None if query.fields is None else told_apart(node.name, query, written)
            return View(node.name, fields, query, maintained=False)
        query = analyse_query(without_order(written), self.catalog, self.source, in_view=True)
        require_current(query, written)
        fields = told_apart(node.name, query, written)
        return View(node.name, fields, query, order_of_view(written, fields))

    def _function(self, node: nodes.CreateFunction) -> ScalarFunction:
        if builtin(node.name) is not None:
            raise error_at(node.this, f"'{node.name}' is a built-in function")
        parameters = columns(node.args.get("parameters") or ())
        for parameter, declared in zip(parameters, node.args.get("parameters") or (), strict=True):
            if not parameter.type.is_known:
                raise error_at(declared, f"parameter '{parameter.name}' needs a type")
        if node.args.get("columns"):
            return table_function(node, parameters, self.catalog, self.source)
        returns = from_datatype(node.args["returns"])
        python = node.args.get("python")
        if python is not None:
            return ScalarFunction(node.name, parameters, returns, python=python_name(python, self.catalog))
        body = node.args["body"]
        resolver = Resolver(
            Scope([ScopeRelation("", parameters)]), self.catalog, self.source, on_subquery=_no_subquery
        )
        given = resolver.resolve(body)
        if not stores(given.type, returns):
            raise error_at(
                body, f"'{node.name}' returns {returns}, but its expression is of type {given.type}"
            )
        return ScalarFunction(node.name, parameters, returns, body=given.sql)

    def _split(self, node: nodes.SplitStream) -> Definition:
        entry = self.catalog.relation(node.name)
        if not isinstance(entry, Stream):
            raise UnknownNameError(
                "stream",
                node.name,
                span=span_of(node.this),
                hint=did_you_mean(node.name, self.catalog.relation_names()),
            )
        entries: list[Entry] = []
        for branch in node.args["branches"]:
            reads = [t.name.lower() for t in branch.args["query"].find_all(exp.Table)]
            if entry.name.lower() not in reads:
                raise error_at(
                    branch,
                    f"branch '{branch.name}' does not read '{entry.name}'",
                    hint=f"a branch is a query on the split stream: SELECT ... FROM {entry.name} WHERE ...",
                )
            derived = self._derived(branch.this, branch.args["query"])
            if self.catalog.named(derived.name) or any(
                derived.name.lower() == e.name.lower() for e in entries
            ):
                raise error_at(branch.this, f"the name '{derived.name}' is taken")
            entries.append(derived)
        return self._enter(node, entries)

    # ------------------------------------------------------------ the rest

    def _insert(self, node: nodes.InsertInto) -> InsertQuery | TableChange:
        sink = self.catalog.sink(node.name)
        if sink is None:
            other = self.catalog.named(node.name)
            if isinstance(other, Table):
                return ChangeAnalyser(self.catalog, self.source).insert(node)
            names = [e.name for kind in (Sink, Table) for e in self.catalog.entries(kind)]
            hint = did_you_mean(node.name, names) or instead_of_insert(node.name, other)
            if other is None:
                raise UnknownNameError("sink or table", node.name, span=span_of(node.this), hint=hint)
            raise error_at(node.this, f"'{node.name}' is {_article(kind_of(other))}, not a sink", hint=hint)
        if node.args.get("values") or node.args.get("columns"):
            raise error_at(node.this, "a sink takes the rows of a query, with the query's own columns")
        query = self._query(node.args["query"])
        names = [f.name.lower() for f in query.fields or ()]
        for name in names:
            if names.count(name) > 1:
                raise AnalysisError(
                    f"two columns are called '{name}'", span=query.span, hint="rename one of them with AS"
                )
        return InsertQuery(sink, query)

    def _known(self, node: exp.Expression, kind: str | None = None) -> tuple[Entry, ...]:
        name = node.name
        found: list[Entry | None] = [
            self.catalog.named(name),
            self.catalog.function(name),
            self.catalog.aggregate(name),
            self.catalog.aggregate(name, window=True),
        ]
        entries = tuple(e for e in found if e is not None and (kind is None or _is_kind(e, kind)))
        if not entries:
            other = next((e for e in found if e is not None), None)
            if other is not None:
                raise error_at(
                    node.this,
                    f"'{name}' is {_article(_label(other))}, not {_article(str(kind))}",
                    hint=f"DROP {_label(other).upper()} {name}",
                )
            names = self.catalog.relation_names() + self.catalog.function_names()
            raise UnknownNameError(
                kind or "name", name, span=span_of(node.this), hint=did_you_mean(name, names)
            )
        return entries

    def _drop(self, node: nodes.DropEntry) -> Dropped:
        kind = str(node.args["kind"]).lower()
        if kind == "query":
            raise error_at(node.this, "queries are stopped where they run", hint="query.stop()")
        try:
            entries = self._known(node, kind)
        except AnalysisError:
            if node.args.get("exists"):
                return Dropped(())
            raise
        for entry in entries:
            if isinstance(entry, Aggregate) and not self.catalog.own_aggregate(
                entry.name, window=entry.window
            ):
                raise error_at(
                    node.this,
                    f"'{entry.name}' is in the library and cannot be dropped",
                    hint="an aggregate of the same name takes its place: CREATE AGGREGATE",
                )
            self.catalog.remove(entry)
        return Dropped(entries)

    def _set(self, node: nodes.SetOption) -> Setting:
        try:
            setting = analyse_setting(node.this.name, node.args["value"].name)
        except AnalysisError as error:
            error.span = span_of(node.this)
            raise
        self.catalog.settings[setting.key] = setting.value
        return setting


def _no_subquery(query: exp.Query, scope: Scope) -> Type:
    raise error_at(query, "a function cannot contain a query")


def name_taken(known: Entry, otherwise: str, *, span: Span | None = None) -> AnalysisError:
    """Make the error for a name that an entry has; ``otherwise`` says how to replace the entry."""
    return AnalysisError(
        f"the name '{known.name}' is taken by {_article(_label(known))}",
        span=span,
        hint=f"choose another name, or {otherwise}",
    )


def _label(entry: Entry) -> str:
    return entry.label if isinstance(entry, Aggregate) else kind_of(entry)


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _is_kind(entry: Entry, kind: str) -> bool:
    if isinstance(entry, Aggregate):
        return kind == "aggregate" or (kind == "window aggregate" and entry.window)
    return kind_of(entry) == kind


_INSTEAD_IN_DERIVED = {
    "columns": "name them in the query: SELECT a AS b",
    "clauses": "the stream that it reads promises: put the clause there, or add ORDER BY column here",
    "late": "the stream that it reads has late tuples: put LATE there, or add ORDER BY column here",
    "bad": "the stream that it reads has bad records: put BAD INTO there, or add ORDER BY column here",
    "format": "a query reads streams and tables: declare a stream with USING, and read that",
    "source": "a query reads streams and tables: declare a stream with SOURCE, and read that",
}


def _clause_name(argument: str) -> str:
    return {"columns": "columns", "format": "USING", "clauses": "promise about disorder"}.get(
        argument, argument.upper().replace("_", " ")
    )
