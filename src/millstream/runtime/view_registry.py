"""Views that run: the queries behind them, and their current results as tables of Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from millstream.catalog.entries import Relation, View
from millstream.errors import ExecutionError
from millstream.plan import nodes
from millstream.runtime.queries.running_query import RunningQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ViewRegistry:
    """The views of a connection that are running, by name.

    ``until_stopped`` says that views over input without an end, too, are read when they have ended: somebody
    will stop them, as in a run of a script.
    """

    def __init__(self, relation: Callable[[str], Relation | None], *, until_stopped: bool = False) -> None:
        self._relation = relation
        self._until_stopped = until_stopped
        self._running: dict[str, RunningQuery] = {}
        self.entering = threading.RLock()
        """Held while a query is lowered: what it reads under a name is to be the same all the time."""

    def add(self, query: RunningQuery) -> None:
        self._running[query.name.lower()] = query

    def drop(self, name: str) -> None:
        """Stop a view; queries that have read it keep what they have read."""
        query = self._running.pop(name.lower(), None)
        if query is not None:
            query.close()
            forget(query)

    def stop(self) -> None:
        """Stop all views; what they show now can still be read."""
        for query in self._running.values():
            query.stop()

    def clear(self) -> None:
        """Forget all views without stopping them."""
        self._running.clear()

    def running(self, name: str) -> RunningQuery:
        query = self._running.get(name.lower())
        if query is None:
            raise ExecutionError(f"there is no view '{name}' that runs", hint="CREATE VIEW starts one")
        return query

    def read_by(self, plan: nodes.Node) -> list[RunningQuery]:
        """The views that a query reads."""
        return [self.running(name) for name in dict.fromkeys(self._names(plan))]

    def _names(self, plan: nodes.Node) -> Iterator[str]:
        for node in plan.walk():
            if isinstance(node, nodes.TableScan) and isinstance(node.table, View):
                yield node.table.name
            elif isinstance(node, nodes.SparkQuery):
                yield from (name for name in node.tables if isinstance(self._relation(name), View))

    def wait_for_ends(self, plan: nodes.Node) -> None:
        """A stream meets a view whose input ends when it has ended."""
        for view in self.read_by(plan):
            if view.is_bounded:
                view.wait()

    def unfinished(self, views: Iterable[RunningQuery]) -> list[RunningQuery]:
        """Those that a query has to wait for.

        A view over input that ends is read when it has ended, so that results do not depend on luck.
        """
        return [view for view in views if view.is_active and (view.is_bounded or self._until_stopped)]


def forget(view: RunningQuery) -> None:
    """A view that is gone is no table of Spark's either."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.catalog.dropTempView(view.name)


def enter(views: Iterable[RunningQuery], spark: SparkSession) -> None:
    """Make the current results of views tables of Spark, under their names."""
    for view in views:
        spark.createDataFrame(view.snapshot()).createOrReplaceTempView(view.name)
