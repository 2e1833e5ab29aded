"""INSERT, UPDATE and DELETE of tables of the session's own, and CREATE TABLE AS that fills one.

Every change is a query over tables: the rows that INSERT adds, or all rows that UPDATE and DELETE leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from millstream.analysis.error_collector import ErrorCollector, error_at
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.query_analyzer import QueryAnalyser
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import (
    Output,
    Query,
    ReadTable,
    Select,
    TableQuery,
    Values,
)
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.coercion import stores
from millstream.catalog import Catalog, kind_of
from millstream.catalog.entries import Derived, Entry, Stored, Stream, Table, View
from millstream.errors import Source, UnknownNameError, did_you_mean
from millstream.syntax import nodes
from millstream.syntax.spans import span_of
from millstream.types import BOOLEAN, NULL, Field, Type


@dataclass(frozen=True)
class TableChange:
    """A change of a table: the rows of a query are added, or take the place of all rows.

    ``columns`` are the positions of the columns that the query gives; the others are NULL.
    """

    table: Table
    query: Query
    adds: bool
    columns: tuple[int, ...]


def reads_changing(node: exp.Expr, catalog: Catalog) -> bool:
    """Tell whether a query reads a view, or a table that statements change."""
    entries = (catalog.named(table.name) for table in node.find_all(exp.Table))
    return any(_changes(entry) for entry in entries)


def _changes(entry: object) -> bool:
    return isinstance(entry, View) or (isinstance(entry, Table) and isinstance(entry.origin, Stored))


def instead_of_insert(name: str, other: Entry | None) -> str:
    """Return a hint for INSERT INTO what is neither a sink nor a table."""
    if isinstance(other, Stream):
        return "a stream made by a query is CREATE STREAM s AS SELECT ...; several are UNION ALL of queries"
    if other is not None:
        return "rows of a query go to a sink: CREATE SINK s USING format OPTIONS (...)"
    return f"CREATE SINK {name} USING format OPTIONS (...), or CREATE TABLE {name} (a INT)"


class ChangeAnalyser:
    """Analyser of statements that change tables."""

    def __init__(self, catalog: Catalog, source: Source) -> None:
        self.catalog = catalog
        self.source = source

    def insert(self, node: nodes.InsertInto) -> TableChange:
        table, fields = self._target(node.this, "INSERT INTO")
        positions = self._positions(node.args.get("columns"), fields, table.name)
        if node.args.get("where") is not None:
            raise error_at(
                node.args["where"],
                "VALUES with WHERE is for the bodies of aggregates",
                hint=f"INSERT INTO {table.name} SELECT ... WHERE ...",
            )
        targets = [fields[i] for i in positions]
        if node.args.get("values"):
            return TableChange(table, self._values(node, table, targets), True, positions)
        written = node.args["query"]
        query = self._query(written, f"INSERT INTO {table.name}")
        if query.fields is not None:
            if len(query.fields) != len(targets):
                raise error_at(
                    written, _count(table.name, len(targets), f"the query has {len(query.fields)}")
                )
            for target, given in zip(targets, query.fields, strict=True):
                _check_type(target, given.type, written)
        return TableChange(table, query, True, positions)

    def update(self, node: exp.Update) -> TableChange:
        table, fields = self._target(node.this.this, "UPDATE")
        alias = node.this.alias or table.name
        mistakes = ErrorCollector()
        resolver = self._resolver(alias, fields, mistakes)
        condition = self._condition(node, resolver)
        given: dict[int, Expr] = {}
        for assignment in node.expressions:
            with mistakes.collected():
                (position,) = self._positions([assignment.this], fields, table.name)
                if position in given:
                    raise error_at(assignment.this, f"column '{fields[position].name}' is set twice")
                value = resolver.resolve(assignment.expression)
                _check_type(fields[position], value.type, assignment.expression)
                given[position] = value
        mistakes.check()
        outputs = []
        for i, field in enumerate(fields):
            column = ColumnRef(alias, field.name, field.type)
            parts = (column,) if i not in given else _changed(column, given[i], condition)
            outputs.append(Output(field.name, Expr(parts, field.type)))
        query = self._rest(table, alias, outputs, (), node)
        return TableChange(table, query, False, tuple(range(len(fields))))

    def delete(self, node: exp.Delete) -> TableChange:
        table, fields = self._target(node.this.this, "DELETE FROM")
        alias = node.this.alias or table.name
        mistakes = ErrorCollector()
        condition = self._condition(node, self._resolver(alias, fields, mistakes))
        mistakes.check()
        outputs = [Output(f.name, of_column(ColumnRef(alias, f.name, f.type))) for f in fields]
        kept = Expr(("false",), BOOLEAN)
        if condition is not None:
            kept = replace(condition, parts=("NOT coalesce((", *condition.parts, "), false)"), tree=None)
        return TableChange(
            table, self._rest(table, alias, outputs, (kept,), node), False, tuple(range(len(fields)))
        )

    def filled(self, table: Table, query: Query) -> TableChange:
        """Return the change that fills a new table."""
        return TableChange(table, query, True, tuple(range(len(table.schema or ()))))

    # ------------------------------------------------------------ parts

    def _target(self, name: exp.Expr, what: str) -> tuple[Table, tuple[Field, ...]]:
        entry = self.catalog.named(name.name)
        if entry is None:
            known = [e.name for e in self.catalog.entries(Table)]
            hint = did_you_mean(name.name, known) or f"create it first: CREATE TABLE {name.name} (...)"
            raise UnknownNameError("table", name.name, span=span_of(name), hint=hint)
        own = "a table without USING can be changed: CREATE TABLE t (a INT)"
        if not isinstance(entry, Table):
            article = "a" if isinstance(entry, Stream | View) or kind_of(entry)[0] not in "aeiou" else "an"
            raise error_at(
                name,
                f"{what} is for tables, and '{entry.name}' is {article} {kind_of(entry)}",
                hint=f"its rows follow from its query; {own}" if isinstance(entry, View) else own,
            )
        if not isinstance(entry.origin, Stored):
            derived = isinstance(entry.origin, Derived)
            origin = "made by a query" if derived else f"read from {entry.origin}"
            raise error_at(
                name,
                f"'{entry.name}' is {origin} and cannot be changed",
                hint=f"{own}; INSERT INTO t SELECT * FROM {entry.name} fills it",
            )
        if entry.schema is None:
            raise error_at(
                name,
                f"the columns of '{entry.name}' are known to Spark only",
                hint="name them: CREATE TABLE t (a INT); INSERT INTO t SELECT ...",
            )
        return entry, entry.schema

    def _query(self, node: exp.Expr, what: str) -> Query:
        query = QueryAnalyser(self.catalog, self.source).query(node)
        if query.facts is not None:
            raise error_at(
                node,
                f"{what} takes rows of tables and views, and this query reads a stream",
                hint="keep its current result in a view (CREATE VIEW), or write its rows to a sink",
            )
        return query

    def _resolver(self, alias: str, fields: tuple[Field, ...] | None, mistakes: ErrorCollector) -> Resolver:
        analyser = QueryAnalyser(self.catalog, self.source, for_spark=True)
        analyser.mistakes = mistakes
        scope = Scope([ScopeRelation(alias, fields)] if fields is not None else [])
        return analyser.resolver(scope).with_aggregates(None)

    def _condition(self, node: exp.Update | exp.Delete, resolver: Resolver) -> Expr | None:
        where = node.args.get("where")
        if where is None:
            return None
        with resolver.collected():
            return resolver.condition(where.this, "WHERE")
        return None

    def _positions(
        self, columns: Sequence[exp.Expr] | None, fields: tuple[Field, ...], table: str
    ) -> tuple[int, ...]:
        if columns is None:
            return tuple(range(len(fields)))
        names = [field.name.lower() for field in fields]
        found: list[int] = []
        for column in columns:
            if column.name.lower() not in names:
                raise error_at(
                    column,
                    f"unknown column '{column.name}' in '{table}'",
                    hint=did_you_mean(column.name, [f.name for f in fields]),
                )
            position = names.index(column.name.lower())
            if position in found:
                raise error_at(column, f"column '{column.name}' is named twice")
            found.append(position)
        return tuple(found)

    def _values(self, node: nodes.InsertInto, table: Table, targets: Sequence[Field]) -> TableQuery:
        mistakes = ErrorCollector()
        resolver = self._resolver("", None, mistakes)
        rows: list[tuple[Expr, ...]] = []
        for row in node.args["values"]:
            with mistakes.collected():
                if len(row.expressions) != len(targets):
                    raise error_at(
                        row, _count(table.name, len(targets), f"this row has {len(row.expressions)}")
                    )
                cells = []
                for target, cell in zip(targets, row.expressions, strict=True):
                    with mistakes.collected():
                        value = resolver.resolve(cell)
                        _check_type(target, value.type, cell)
                        cells.append(_as(value, target.type))
                rows.append(tuple(cells))
        mistakes.check()
        names = tuple(target.name for target in targets)
        fields = tuple(targets)
        reads = _tables_in(node)
        return TableQuery(
            _text_of_values(rows, names), reads, fields, Values(tuple(rows), fields), span=span_of(node)
        )

    def _rest(
        self, table: Table, alias: str, outputs: list[Output], where: tuple[Expr, ...], node: exp.Expr
    ) -> TableQuery:
        """Return the query of all rows that are left."""
        simple = Select(ReadTable(alias, table), (), tuple(outputs), where, span=span_of(node))
        columns = ", ".join(f"{output.expr.sql} AS `{output.name}`" for output in outputs)
        text = f"SELECT {columns} FROM `{table.name}` AS `{alias}`"
        if where:
            text += f" WHERE {where[0].sql}"
        return TableQuery(text, _tables_in(node), simple.fields, simple, span=span_of(node))


def _tables_in(node: exp.Expr) -> tuple[str, ...]:
    names: Iterator[str] = (table.name for table in node.find_all(exp.Table))
    return tuple(dict.fromkeys(names))


def _changed(column: ColumnRef, value: Expr, condition: Expr | None) -> tuple[str | ColumnRef, ...]:
    new = _as(value, column.type).parts
    if condition is None:
        return new
    return ("CASE WHEN ", *condition.parts, " THEN ", *new, " ELSE ", column, " END")


def _as(value: Expr, wanted: Type) -> Expr:
    """Convert a value to the type of its column."""
    if value.type == wanted:
        return replace(value, parts=("(", *value.parts, ")"), tree=None)
    return replace(value, parts=("CAST(", *value.parts, f" AS {wanted})"), type=wanted, tree=None)


def _text_of_values(rows: Iterable[Sequence[Expr]], names: Sequence[str]) -> str:
    """Return rows for Spark, whose inline tables take neither subqueries nor functions in Python."""
    rows = list(rows)
    if all(cell.movable and not cell.calls_python for row in rows for cell in row):
        listed = ", ".join(f"({', '.join(cell.sql for cell in row)})" for row in rows)
        return f"SELECT * FROM VALUES {listed} AS given ({', '.join(f'`{name}`' for name in names)})"
    return " UNION ALL ".join(
        f"SELECT {', '.join(f'{cell.sql} AS `{name}`' for cell, name in zip(row, names, strict=True))}"
        for row in rows
    )


def _count(table: str, wanted: int, given: str) -> str:
    return f"INSERT INTO {table} takes {wanted} {'column' if wanted == 1 else 'columns'}, and {given}"


def _check_type(target: Field, given: Type, node: exp.Expr) -> None:
    if given != NULL and not stores(given, target.type):
        raise error_at(
            node, f"'{target.name}' is {target.type} and cannot take {given}", hint="convert it with CAST"
        )
