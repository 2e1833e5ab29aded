"""Registration of functions, tables and views in the Spark session before a query is lowered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from millstream.analysis.queries.resolved_query import Query
from millstream.catalog import Catalog
from millstream.catalog.entries import (
    Aggregate,
    Derived,
    Entry,
    Registered,
    ScalarFunction,
    Stored,
    Stream,
    Table,
)
from millstream.physical.programs import Programs
from millstream.physical.query_plan import QueryPlan, python_functions_of, stream_named
from millstream.plan import nodes
from millstream.plan.builder import build, definition_of
from millstream.runtime.own_tables import OwnTables
from millstream.runtime.table_refresh import VersionedRelations
from millstream.runtime.view_registry import ViewRegistry, enter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.spark.host.control_stream import ControlStream
    from millstream.spark.lowering.lowerer import Lowerer
    from millstream.spark.sources.stream_sources import ReadPort


class SessionRegistry:
    """Makes lowerers for queries after registering the functions and tables that they may mention."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        frames: Mapping[str, DataFrame],
        read_port: ReadPort,
        views: ViewRegistry,
        live: VersionedRelations,
        own: OwnTables,
    ) -> None:
        self._own = own
        self._catalog = catalog
        self._frames = frames
        self._read_port = read_port
        self._views = views
        self._live = live
        self._entered: dict[str, Entry] = {}

    def lowerer(
        self, plans: Sequence[nodes.Node], spark: SparkSession, control: ControlStream | None
    ) -> Lowerer:
        """Return a lowerer for these plans; it reads tables and views in their present version."""
        from millstream.spark.errors.error_chain import FAILURES, translate
        from millstream.spark.lowering.lowerer import Lowerer

        try:
            for plan in plans:
                self._enter_functions(spark, _words(plan))
                read = [plan, *self._below(plan)]
                mentioned = set().union(*map(_mentioned, read))
                self._enter_tables(spark, mentioned | self._in_bodies(_words(plan)))
            live: dict[str, DataFrame] = {}
            for plan in plans:
                live |= self._enter_what_changes(plan, spark)
        except FAILURES as error:
            raise translate(error) from None
        control_frame = None if control is None else control.frame
        python = python_functions_of(self._catalog())
        return Lowerer(
            spark, self._read_port, self._frames, self._stream, control_frame, python, live, zone_of(spark)
        )

    def plan(self, logical: nodes.Node, spark: SparkSession) -> QueryPlan:
        """Return the physical plan of a query, which runs on a session."""
        from pyspark.cloudpickle import dumps

        python = python_functions_of(self._catalog())
        return QueryPlan(logical, self._stream, Programs(dumps), python, zone_of(spark))

    def _enter_functions(self, spark: SparkSession, mentioned: Set[str]) -> None:
        """Register the functions of the catalog; a failure to load one concerns only its callers."""
        from millstream.spark.errors.error_chain import FAILURES
        from millstream.spark.session.scalar_functions import register_function

        for entry in self._catalog().entries(ScalarFunction):
            if self._entered.get(entry.name.lower()) is entry:
                continue
            assert isinstance(entry, ScalarFunction)
            try:
                register_function(entry, spark)
            except FAILURES:
                if entry.name.lower() in mentioned:
                    raise
                continue
            self._entered[entry.name.lower()] = entry

    def _in_bodies(self, words: Set[str]) -> set[str]:
        """Return the words in the bodies of the aggregates among ``words`` and of those that they call."""
        mentioned: set[str] = set()
        aggregates = {entry.name.lower(): entry for entry in self._catalog().entries(Aggregate)}
        pending = [name for name in aggregates if name in words]
        while pending:
            entry = aggregates.pop(pending.pop(), None)
            if isinstance(entry, Aggregate):
                inside = set(re.findall(r"\w+", repr(entry.definition).lower()))
                mentioned |= inside
                pending += [name for name in aggregates if name in inside]
        return mentioned

    def _enter_tables(self, spark: SparkSession, mentioned: Set[str]) -> None:
        """Register the tables that a plan reads by name in Spark, for expressions and plain SQL.

        Other tables are skipped: they may be missing, broken, or slow to open.
        """
        for entry in self._catalog().entries(Table):
            name = entry.name.lower()
            if name not in mentioned or self._entered.get(name) is entry:
                continue
            assert isinstance(entry, Table)
            if isinstance(entry.origin, Stored):
                continue
            if isinstance(entry.origin, Derived):
                self._enter_tables(spark, _mentioned(_plan(entry.origin)))
            if not isinstance(entry.origin, Registered) or name in self._frames:
                self._for_tables(spark).table(entry).createOrReplaceTempView(entry.name)
            self._entered[name] = entry

    def _enter_what_changes(self, plan: nodes.Node, spark: SparkSession) -> dict[str, DataFrame]:
        """Register views and refreshed tables; return their versioned frames for a streaming query."""
        live: dict[str, DataFrame] = {}
        views = self._views.read_by(plan)
        if plan.streaming:
            for view in views:
                live[view.name.lower()] = frame = self._live.view(view, spark)
                frame.createOrReplaceTempView(view.name)
        else:
            enter(views, spark)
        for table in self._refreshed(plan):
            read = self._for_tables(spark).table
            frame = self._live.table(table, read, spark) if plan.streaming else read(table)
            frame.createOrReplaceTempView(table.name)
            if plan.streaming:
                live[table.name.lower()] = frame
        for table in self._stored(plan):
            rows = self._own.rows(table.name)
            frame = self._live.own(table.name, rows, spark) if plan.streaming else spark.createDataFrame(rows)
            frame.createOrReplaceTempView(table.name)
            live[table.name.lower()] = frame
        for evaluated in self._views.evaluated(plan):
            frame = self._for_tables(spark, live).table(evaluated)
            frame.createOrReplaceTempView(evaluated.name)
            if plan.streaming:
                live[evaluated.name.lower()] = frame
        return live

    def _stored(self, plan: nodes.Node) -> Iterator[Table]:
        """Yield the tables of the session's own that a plan may read, also in the bodies of aggregates."""
        mentioned = set().union(*map(_mentioned, [plan, *self._below(plan)])) | self._in_bodies(_words(plan))
        for entry in self._catalog().entries(Table):
            if (
                isinstance(entry, Table)
                and isinstance(entry.origin, Stored)
                and entry.name.lower() in mentioned
            ):
                yield entry

    def _below(self, plan: nodes.Node) -> list[nodes.Node]:
        """Return the plans of the views that are evaluated for a query."""
        definitions = map(definition_of, self._views.evaluated(plan))
        return [build(definition) for definition in definitions if definition is not None]

    def _refreshed(self, plan: nodes.Node) -> Iterator[Table]:
        """Yield the tables with REFRESH EVERY that a plan may read."""
        mentioned = set().union(*map(_mentioned, [plan, *self._below(plan)]))
        for entry in self._catalog().entries(Table):
            if isinstance(entry, Table) and entry.refresh and entry.name.lower() in mentioned:
                yield entry

    def _for_tables(self, spark: SparkSession, live: Mapping[str, DataFrame] | None = None) -> Lowerer:
        from millstream.spark.lowering.lowerer import Lowerer

        zone = zone_of(spark)
        return Lowerer(spark, self._read_port, self._frames, self._stream, live=live or {}, zone=zone)

    def _stream(self, name: str) -> Stream | None:
        return stream_named(self._catalog(), name)


def zone_of(spark: SparkSession) -> str:
    """Return the time zone in which a session reads times without one."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def _mentioned(plan: nodes.Node) -> set[str]:
    """Return the names of tables that a plan may read, in lower case.

    Queries in expressions are texts: any of their words may be a name.
    """
    names = {name.lower() for node in plan.walk() for name in _tables(node)}
    words = _words(plan)
    is_plain_sql = isinstance(plan, nodes.SparkQuery)
    return names | words if "select" in words and not is_plain_sql else names


def _words(plan: nodes.Node) -> set[str]:
    return set(re.findall(r"\w+", repr(plan).lower()))


def _plan(origin: Derived) -> nodes.Node:
    assert isinstance(origin.definition, Query)
    return build(origin.definition)


def _tables(node: nodes.Node) -> Iterable[str]:
    match node:
        case nodes.TableScan(table):
            return (table.name,)
        case nodes.SparkQuery(_, tables):
            return tables
        case _:
            return ()
