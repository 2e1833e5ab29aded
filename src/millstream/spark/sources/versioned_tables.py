"""Relations that change while a stream is read: every micro-batch reads one version of them.

A version is a file. The first task of a micro-batch chooses and records the version: all tasks of the batch,
and the batch itself if Spark repeats it, read the same. Spark would list the files of a table once for a
query, and read their later content.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

Batches = Iterator[pa.RecordBatch]

_BATCH, _QUERY = "streaming.sql.batchId", "sql.streaming.queryId"
"""Local properties that Spark sets for the tasks of a micro-batch."""


class Versions:
    """A directory with versions of one relation, of which the last one is current."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._met = directory / "met"
        self._current = directory / "current"
        self._met.mkdir(parents=True, exist_ok=True)
        self._publishing = threading.Lock()
        self._count = 0

    def publish(self, table: pa.Table) -> None:
        """Publish the version that micro-batches read from now on."""
        with self._publishing:
            self._count += 1
            name = f"{self._count:012}.arrow"
            with (
                pa.OSFile(str(self.directory / name), "wb") as sink,
                pa.ipc.new_file(sink, table.schema) as file,
            ):
                file.write_table(table)
            unfinished = self.directory / "unfinished"
            unfinished.write_text(name)
            unfinished.replace(self._current)
            self._tidy(name)

    def read(self, query: str | None, batch: str | None) -> Batches:
        """Yield the version that a micro-batch of a query reads."""
        name = self._current.read_text() if query is None or batch is None else self._settled(query, batch)
        with pa.memory_map(str(self.directory / name)) as source:
            yield from pa.ipc.open_file(source).read_all().to_batches()

    def _settled(self, query: str, batch: str) -> str:
        note = self._met / f"{query}.{batch}"
        if not note.exists():
            mine = self._met / f".{query}.{batch}.{os.getpid()}.{threading.get_ident()}"
            mine.write_text(self._current.read_text())
            # Creating a link is atomic, and only the first one succeeds.
            with contextlib.suppress(FileExistsError):
                os.link(mine, note)
            mine.unlink()
        return note.read_text()

    def _tidy(self, current: str) -> None:
        """Remove versions that no micro-batch can read any more; that of each query's last batch stays."""
        last: dict[str, int] = {}
        notes = [path for path in self._met.iterdir() if not path.name.startswith(".")]
        for note in notes:
            query, batch = note.name.rsplit(".", 1)
            last[query] = max(int(batch), last.get(query, 0))
        met = {current}
        for note in notes:
            query, batch = note.name.rsplit(".", 1)
            if int(batch) < last[query]:
                note.unlink(missing_ok=True)
            else:
                met.add(note.read_text())
        for path in self.directory.glob("*.arrow"):
            if path.name not in met:
                path.unlink(missing_ok=True)


def live_frame(versions: Versions, schema: StructType, spark: SparkSession) -> DataFrame:
    """Return a relation that is read again in every micro-batch."""
    return spark.range(1, numPartitions=1).mapInArrow(_reader(str(versions.directory)), schema)


def _reader(directory: str) -> Callable[[Batches], Batches]:
    def read(batches: Batches) -> Batches:
        for _ in batches:
            pass
        task = TaskContext.get()
        query_and_batch = (
            (None, None) if task is None else (task.getLocalProperty(_QUERY), task.getLocalProperty(_BATCH))
        )
        return Versions(Path(directory)).read(*query_and_batch)

    return read
