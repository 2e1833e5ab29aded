"""The control stream of a query: heartbeats and the end of its input, as input like any other.

It is a directory of small files beside the checkpoint. What is said there is written down before it is used,
and Spark reads it again when it repeats a batch.
"""

from __future__ import annotations

import json
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from millstream.stage.input_progress import ENDED, HEARTBEAT


class ControlStream:
    """Says things to the stages of a running query."""

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
        """What is said, as a stream."""
        # A heartbeat is small; that it is there matters more than how long the list is.
        reader = self._spark.readStream.format("text").option("maxCachedFiles", "0")
        return reader.load(self._directory.toString())

    def heartbeat(self, source: str, reached: int, on: str | None = None) -> None:
        """Nothing of this stream older than ``reached`` is still to come, by timestamp or by an attribute."""
        self._say([{"source": source, "kind": HEARTBEAT, "time": reached, "on": on}])

    def end(self, sources: list[str]) -> None:
        """Nothing of these streams is still to come."""
        self._say([{"source": source, "kind": ENDED} for source in sources])

    def _say(self, marks: list[dict[str, Any]]) -> None:
        # Files that have been read are removed. Spark would take a second one of the same name for the first.
        self._number = max(time.time_ns() // 1_000_000, self._number + 1)
        name = f"{self._number:015}.txt"
        # Spark does not look at names that begin with a dot, and a rename is seen whole or not at all.
        unfinished = self._paths(self._directory, f".{name}")
        out = self._files.create(unfinished, True)
        try:
            out.write(bytearray("".join(json.dumps(mark) + "\n" for mark in marks).encode()))
        finally:
            out.close()
        self._files.rename(unfinished, self._paths(self._directory, name))
