"""Versions of tables with REFRESH EVERY and of views, as streaming queries read them."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.catalog.entries import Reader, Table
from millstream.errors import ExecutionError, MillstreamError
from millstream.runtime.queries.running_query import RunningQuery
from millstream.scratch import scratch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.spark.sources.versioned_tables import Versions

ReadTable = Callable[[Table], "DataFrame"]
"""Reads the present content of a table."""

_ATTEMPTS = 3


class RefreshedTable:
    """A table that is read again periodically until it is stopped.

    A table that cannot be read, or changes while it is read, makes no version: the last good one stays in
    use.
    """

    def __init__(self, table: Table, versions: Versions, read: ReadTable, spark: SparkSession) -> None:
        self.table = table
        self._spark = spark
        self.versions = versions
        self.problem: MillstreamError | None = None
        """Error of the last refresh, if it failed."""

        self._read = read
        self._state: Hashable = None
        self._refreshing = threading.Lock()
        self._stopped = threading.Event()
        self.schema = read(table).schema
        self.refresh()
        threading.Thread(target=self._keep_refreshing, name=f"refresh-{table.name}", daemon=True).start()

    def refresh(self) -> None:
        """Read the table if it has changed."""
        from millstream.spark.errors.error_chain import FAILURES, translate

        with self._refreshing:
            try:
                self._take()
            except FAILURES as error:
                self.problem = translate(error)
                self.problem.place = self.problem.place or self.table.place
                raise self.problem from None
            self.problem = None

    def stop(self) -> None:
        self._stopped.set()

    def _take(self) -> None:
        """Read the table, again if it was replaced meanwhile: that may happen as often as it is read."""
        for _ in range(_ATTEMPTS):
            if self._is_taken():
                return
        raise ExecutionError(
            f"table '{self.table.name}' was being written while it was read",
            hint="write a new file beside the old one, and rename it",
        )

    def _is_taken(self) -> bool:
        """Publish the present version; return False if the table changed while it was read."""
        before = self._files()
        if before is not None and before == self._state:
            return True
        frame = self._read(self.table)
        if frame.schema != self.schema:
            raise ExecutionError(
                f"table '{self.table.name}' has other columns than before",
                hint="queries that run were made for the old ones: start them again",
            )
        rows = frame.toArrow()
        if self._files() != before:
            return False
        self.versions.publish(rows)
        self._state = before
        return True

    def _files(self) -> Hashable:
        """Return a fingerprint of the table's files; None if it has no files."""
        from millstream.spark.sources.file_paths import state_of

        path = self.table.origin.option("path") if isinstance(self.table.origin, Reader) else None
        return None if path is None else state_of(path, self._spark)

    def _keep_refreshing(self) -> None:
        assert self.table.refresh is not None
        while not self._stopped.wait(self.table.refresh.microseconds / 1e6):
            try:
                self.refresh()
            except MillstreamError:
                # The error is stored in ``problem``; the next attempt may succeed.
                continue


class VersionedRelations:
    """Relations that the streaming queries of a connection read in versions, by name."""

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._tables: dict[str, RefreshedTable] = {}
        self._views: dict[str, tuple[RunningQuery, Versions]] = {}
        self._own: dict[str, tuple[pa.Schema, Versions]] = {}
        self._made = 0

    def table(self, table: Table, read: ReadTable, spark: SparkSession) -> DataFrame:
        from millstream.spark.sources.versioned_tables import live_frame

        refreshed = self._tables.get(table.name.lower())
        if refreshed is None or refreshed.table is not table:
            if refreshed is not None:
                refreshed.stop()
            refreshed = self._tables[table.name.lower()] = RefreshedTable(
                table, self._versions(), read, spark
            )
        return live_frame(refreshed.versions, refreshed.schema, spark)

    def view(self, view: RunningQuery, spark: SparkSession) -> DataFrame:
        """Return a view for streaming queries; each of its batches from now on is a version."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from millstream.spark.sources.versioned_tables import live_frame

        assert view.current is not None
        entry = self._views.get(view.name.lower())
        if entry is None or entry[0] is not view:
            entry = self._views[view.name.lower()] = view, self._versions()
            view.current.follow(entry[1].publish)
        return live_frame(entry[1], from_arrow_schema(view.current.schema), spark)

    def own(self, name: str, rows: pa.Table, spark: SparkSession) -> DataFrame:
        """Return a table of the session for streaming queries; each change of it makes a version."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from millstream.spark.sources.versioned_tables import live_frame

        versions = self._own.get(name.lower())
        if versions is None or versions[0] != rows.schema:
            versions = self._own[name.lower()] = rows.schema, self._versions()
            versions[1].publish(rows)
        return live_frame(versions[1], from_arrow_schema(rows.schema), spark)

    def publish(self, name: str, rows: pa.Table) -> None:
        """Take the new rows of a table of the session, if a streaming query reads it."""
        versions = self._own.get(name.lower())
        if versions is not None and versions[0] == rows.schema:
            versions[1].publish(rows)

    def refresh(self, name: str) -> None:
        """Read a table again now, if a streaming query reads it."""
        refreshed = self._tables.get(name.lower())
        if refreshed is not None:
            refreshed.refresh()

    def problems(self) -> dict[str, MillstreamError]:
        """Return the tables whose last refresh failed, with the errors."""
        problems = {refreshed.table.name: refreshed.problem for refreshed in self._tables.values()}
        return {name: problem for name, problem in problems.items() if problem is not None}

    def stop(self) -> None:
        for refreshed in self._tables.values():
            refreshed.stop()
        self._tables.clear()
        self._views.clear()
        self._own.clear()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def _versions(self) -> Versions:
        from millstream.spark.sources.versioned_tables import Versions

        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="tables-", dir=scratch())
        self._made += 1
        return Versions(Path(self._directory.name, str(self._made)))
