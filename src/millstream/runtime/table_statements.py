"""Statements about tables of the session's own: CREATE, INSERT, UPDATE, DELETE and DROP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.analysis.definitions.statement_analyzer import AnalysedStatement, Definition, Dropped
from millstream.analysis.definitions.table_changes import TableChange
from millstream.analysis.queries.resolved_query import Query
from millstream.catalog import Catalog
from millstream.catalog.entries import Stored, Table
from millstream.errors import MillstreamError
from millstream.runtime.own_tables import OwnTables, stored_schema
from millstream.types import Field

Evaluate = Callable[[Query, AnalysedStatement, tuple[Field, ...] | None], tuple[pa.Table, tuple[Field, ...]]]
"""Returns the rows of a query over tables, converted to columns if these are known, and the columns."""


@dataclass(frozen=True)
class TableStatements:
    """Performs statements about tables; ``evaluate`` runs the queries in them."""

    tables: OwnTables
    evaluate: Evaluate

    def concerns(self, statement: AnalysedStatement) -> bool:
        """Return whether a statement makes, changes or drops a table of the session."""
        return isinstance(statement.meaning, TableChange) or any(_own(statement))

    def perform(self, statement: AnalysedStatement, catalog: Catalog, *, once: bool = True) -> None:
        """Perform a statement; one that runs ``once`` may have been performed by an earlier run."""
        try:
            self._perform(statement, catalog, once=once)
        except MillstreamError as error:
            error.span = error.span or statement.span
            raise error.locate(statement.source) from None

    def _perform(self, statement: AnalysedStatement, catalog: Catalog, *, once: bool) -> None:
        text = statement.source.text[statement.span[0] : statement.span[1] + 1] if once else None
        if text is not None and self.tables.skips(text):
            for table in _own(statement):
                if table.schema is None and isinstance(statement.meaning, Definition):
                    _learn(catalog, table, self.tables.rows(table.name))
            return
        match statement.meaning:
            case TableChange() as change:
                self._change(change, statement, catalog, text)
            case Definition(fill=TableChange() as change):
                self._change(change, statement, catalog, text, is_new=True)
            case Definition():
                for table in _own(statement):
                    self.tables.create(table, text)
            case Dropped():
                for table in _own(statement):
                    self.tables.drop(table.name, text)

    def _change(
        self,
        change: TableChange,
        statement: AnalysedStatement,
        catalog: Catalog,
        text: str | None,
        *,
        is_new: bool = False,
    ) -> None:
        table = change.table
        fields = table.schema
        targets = None if fields is None else tuple(fields[i] for i in change.columns)
        rows, known = self.evaluate(change.query, statement, targets)
        if fields is None:
            fields, columns = known, tuple(range(len(known)))
            catalog.add(replace(table, schema=known))
        else:
            columns = change.columns
        schema = stored_schema(fields)
        given = dict(zip(columns, rows.columns, strict=True))
        arrays = [
            given[i].cast(column.type) if i in given else pa.nulls(rows.num_rows, column.type)
            for i, column in enumerate(schema)
        ]
        new = pa.Table.from_arrays(arrays, schema=schema)
        if change.adds and not is_new:
            new = pa.concat_tables([self.tables.rows(table.name), new])
        self.tables.change(table.name, new.combine_chunks(), text)


def _own(statement: AnalysedStatement) -> Iterator[Table]:
    if isinstance(statement.meaning, Definition | Dropped):
        for entry in statement.meaning.entries:
            if isinstance(entry, Table) and isinstance(entry.origin, Stored):
                yield entry


def _learn(catalog: Catalog, table: Table, rows: pa.Table) -> None:
    """Enter the columns of a table that an earlier run has made."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from millstream.spark.session.spark_types import fields_of

    catalog.add(replace(table, schema=fields_of(from_arrow_schema(rows.schema))))
