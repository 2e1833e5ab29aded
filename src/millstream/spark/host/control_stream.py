"""The control stream of a query: heartbeats and ends of input, read like any other input.

It is a directory of small files beside the checkpoint. Messages are written before they are used, and Spark
reads them again when it repeats a batch.
"""

from __future__ import annotations

import json
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from millstream.stage.blob import ENDED, HEARTBEAT


class ControlStream:
    """Sends messages to the stages of a running query."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        jvm = spark._jvm
        assert jvm is not None
        self._spark = spark
        self._paths = jvm.org.apache.hadoop.fs.Path
        self._directory = self._paths(directory)
        self._files = self._directory.getFileSystem(spark._jsc.hadoopConfiguration())
        self._files.mkdirs(self._directory)
        names = [status.getPath().getName() for status in self._files.listStatus(self._directory)]
        self._number = max((int(name[:-4]) for name in names if name[:-4].isdigit()), default=0)

    @property
    def frame(self) -> DataFrame:
        """The messages as a stream."""
        # Spark must notice new files at once, so it caches no list of files.
        reader = self._spark.readStream.format("text").option("maxCachedFiles", "0")
        return reader.load(self._directory.toString())

    def heartbeat(self, source: str, reached: int, on: str | None = None) -> None:
        """Send that no tuple before ``reached``, by timestamp or by attribute ``on``, is still to come."""
        self._say([{"source": source, "kind": HEARTBEAT, "time": reached, "on": on}])

    def end(self, sources: list[str]) -> None:
        """Send that no tuple of these streams is still to come."""
        self._say([{"source": source, "kind": ENDED} for source in sources])

    def _say(self, marks: list[dict[str, Any]]) -> None:
        # Read files are removed, so numbers must not repeat: Spark would take a new file for the old one.
        self._number = max(time.time_ns() // 1_000_000, self._number + 1)
        name = f"{self._number:015}.txt"
        # Spark ignores names that begin with a dot, and a rename is atomic.
        unfinished = self._paths(self._directory, f".{name}")
        out = self._files.create(unfinished, True)
        try:
            out.write(bytearray("".join(json.dumps(mark) + "\n" for mark in marks).encode()))
        finally:
            out.close()
        self._files.rename(unfinished, self._paths(self._directory, name))
