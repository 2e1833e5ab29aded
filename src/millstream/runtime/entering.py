"""What Spark must know under a name before a query is lowered: functions, tables, and what changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from millstream.catalog import Catalog
from millstream.catalog.entries import Entry, Registered, ScalarFunction, Stream, Table
from millstream.plan import nodes
from millstream.plan.explain import tree
from millstream.runtime.live import LiveRelations
from millstream.runtime.views import Views, enter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.spark.control import Control
    from millstream.spark.lower import Lowerer
    from millstream.spark.sources import ReadPort


class Entrance:
    """Makes lowerers for queries, once Spark knows what they may mention."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        frames: Mapping[str, DataFrame],
        read_port: ReadPort,
        views: Views,
        live: LiveRelations,
    ) -> None:
        self._catalog = catalog
        self._frames = frames
        self._read_port = read_port
        self._views = views
        self._live = live
        self._entered: dict[str, Entry] = {}

    def lowerer(self, plans: Sequence[nodes.Node], spark: SparkSession, control: Control | None) -> Lowerer:
        """What turns these plans into DataFrames; tables and views that they read are as they are now."""
        from millstream.spark.lower import Lowerer
        from millstream.spark.translate import FAILURES, translate

        try:
            self._enter_what_stays(spark)
            live: dict[str, DataFrame] = {}
            for plan in plans:
                live |= self._enter_what_changes(plan, spark)
        except FAILURES as error:
            raise translate(error) from None
        functions = self._catalog().entries(ScalarFunction)
        python = frozenset(f.name.lower() for f in functions if isinstance(f, ScalarFunction) and f.python)
        said = None if control is None else control.frame
        return Lowerer(spark, self._read_port, self._frames, self._stream, said, python, live)

    def _enter_what_stays(self, spark: SparkSession) -> None:
        """Functions and tables of the catalog, for expressions and plain SQL."""
        from millstream.spark.functions import register_function

        for entry in self._catalog().entries(ScalarFunction, Table):
            if self._entered.get(entry.name.lower()) is entry:
                continue
            if isinstance(entry, ScalarFunction):
                register_function(entry, spark)
            elif isinstance(entry, Table) and (
                not isinstance(entry.origin, Registered) or entry.name.lower() in self._frames
            ):
                self._for_tables(spark).table(entry).createOrReplaceTempView(entry.name)
            self._entered[entry.name.lower()] = entry

    def _enter_what_changes(self, plan: nodes.Node, spark: SparkSession) -> dict[str, DataFrame]:
        """Views, and tables with REFRESH EVERY: for a streaming query in versions, by name."""
        live: dict[str, DataFrame] = {}
        views = self._views.read_by(plan)
        if plan.streaming:
            live = {view.name.lower(): self._live.view(view, spark) for view in views}
        else:
            enter(views, spark)
        for table in self._refreshed(plan):
            read = self._for_tables(spark).table
            frame = self._live.table(table, read, spark) if plan.streaming else read(table)
            frame.createOrReplaceTempView(table.name)
            if plan.streaming:
                live[table.name.lower()] = frame
        return live

    def _refreshed(self, plan: nodes.Node) -> Iterator[Table]:
        """Tables with REFRESH EVERY that a plan may read: queries in expressions are texts."""
        mentioned = set(re.findall(r"\w+", tree(plan).lower()))
        for node in plan.walk():
            if isinstance(node, nodes.SparkQuery):
                mentioned |= {name.lower() for name in node.tables}
        for entry in self._catalog().entries(Table):
            if isinstance(entry, Table) and entry.refresh and entry.name.lower() in mentioned:
                yield entry

    def _for_tables(self, spark: SparkSession) -> Lowerer:
        from millstream.spark.lower import Lowerer

        return Lowerer(spark, self._read_port, self._frames, self._stream)

    def _stream(self, name: str) -> Stream | None:
        entry = self._catalog().relation(name)
        return entry if isinstance(entry, Stream) else None
