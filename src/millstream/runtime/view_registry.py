"""Running views: their queries, and their current results as tables of Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from millstream.catalog.entries import Relation, View
from millstream.errors import ExecutionError
from millstream.plan import nodes
from millstream.plan.builder import build, definition_of
from millstream.runtime.queries.running_query import RunningQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ViewRegistry:
    """The running views of a connection, by name.

    With ``until_stopped``, views over unbounded input are also read after their end: the caller stops them,
    as a run of a script does.
    """

    def __init__(self, relation: Callable[[str], Relation | None], *, until_stopped: bool = False) -> None:
        self._relation = relation
        self._until_stopped = until_stopped
        self._running: dict[str, RunningQuery] = {}
        self.entering = threading.RLock()
        """Held while a query is lowered, so that the names that it reads do not change meanwhile."""

    def add(self, query: RunningQuery) -> None:
        self._running[query.name.lower()] = query

    def drop(self, name: str) -> None:
        """Stop a view; queries that have read it keep their rows."""
        query = self._running.pop(name.lower(), None)
        if query is not None:
            query.close()
        forget(name)

    def stop(self) -> None:
        """Stop all views; their last results can still be read."""
        for query in self._running.values():
            query.stop()

    def clear(self) -> None:
        """Forget all views without stopping them."""
        self._running.clear()

    def running(self, name: str) -> RunningQuery:
        query = self._running.get(name.lower())
        if query is None:
            raise ExecutionError(f"no view '{name}' is running", hint="CREATE VIEW starts one")
        return query

    def read_by(self, plan: nodes.Node) -> list[RunningQuery]:
        """Return the running views that a query reads, also through views of views."""
        views = dict.fromkeys(self._views(plan))
        return [self.running(view.name) for view in views if view.maintained]

    def evaluated(self, plan: nodes.Node) -> list[View]:
        """Return the views that are evaluated for a query; each follows those that it reads."""
        return [view for view in dict.fromkeys(self._views(plan)) if not view.maintained]

    def _views(self, plan: nodes.Node) -> Iterator[View]:
        for node in plan.walk():
            if isinstance(node, nodes.TableScan):
                yield from self._with_read(node.table)
            elif isinstance(node, nodes.SparkQuery):
                for name in node.tables:
                    yield from self._with_read(self._relation(name))

    def _with_read(self, relation: Relation | None) -> Iterator[View]:
        """Yield a view, after those that its definition reads."""
        if isinstance(relation, View):
            definition = definition_of(relation)
            if definition is not None:
                yield from self._views(build(definition))
            yield relation

    def wait_for_ends(self, plan: nodes.Node) -> None:
        """Wait for the end of bounded views that a stream is joined with."""
        for view in self.read_by(plan):
            if view.is_bounded:
                view.wait()

    def unfinished(self, views: Iterable[RunningQuery]) -> list[RunningQuery]:
        """Return the views that a query has to wait for.

        A view over bounded input is read after its end, so that results are deterministic.
        """
        return [view for view in views if view.is_active and (view.is_bounded or self._until_stopped)]


def forget(name: str) -> None:
    """Drop the temporary view of Spark for a view that is dropped."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.catalog.dropTempView(name)


def enter(views: Iterable[RunningQuery], spark: SparkSession) -> None:
    """Register the current results of views as tables of Spark, under their names."""
    for view in views:
        spark.createDataFrame(view.snapshot()).createOrReplaceTempView(view.name)
