"""Paths on any file system that Spark supports."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from millstream.errors import ExecutionError

_MANY = 1000
"""Number of files above which they are not checked one by one."""
_GLOB = frozenset("*?[{")
_GLOB_OR_CLOSING = _GLOB | frozenset("]}")


def streamable(path: str, spark: SparkSession, what: str) -> str:
    """Return a path that Spark can stream from: a directory, a glob, or a single file as a glob.

    Spark streams directories and globs only, so the last letter of a file's name becomes a set of one letter.
    """
    target, files = _locate(path, spark)
    if _GLOB & set(path):
        if not files.exists(target):
            return path
        # The name of an existing file, not a pattern.
        path = "".join(f"\\{c}" if c in _GLOB_OR_CLOSING else c for c in path)
    if not files.exists(target):
        raise ExecutionError(f"{what} reads '{path}', which does not exist", hint=_where(path))
    return f"{path[:-1]}[{path[-1]}]" if files.getFileStatus(target).isFile() else path


def described(path: str, spark: SparkSession) -> str:
    """Return Spark's name, in the progress of a query, for the source that streams files from this path."""
    target, files = _locate(streamable(path, spark, "a stream"), spark)
    return f"FileStreamSource[{files.makeQualified(target).toString()}]"


def arrive_together(path: str, spark: SparkSession) -> bool:
    """Return whether files may have the same modification time, so that only their names give their order.

    Subdirectories are not searched: then it may be.
    """
    target, files = _locate(path, spark)
    statuses = [files.getFileStatus(target)] if files.exists(target) else list(files.globStatus(target) or ())
    times: list[int] = []
    for status in statuses:
        entries = files.listStatus(status.getPath()) if status.isDirectory() else [status]
        if len(entries) > _MANY:
            return True
        for entry in entries:
            if entry.isDirectory():
                return True
            times.append(entry.getModificationTime())
    return len(set(times)) < len(times)


def state_of(path: str, spark: SparkSession) -> frozenset[tuple[str, int, int]]:
    """Return the files at a path with sizes and times, which change when the content does."""
    target, files = _locate(path, spark)
    statuses = [files.getFileStatus(target)] if files.exists(target) else list(files.globStatus(target) or ())
    state: set[tuple[str, int, int]] = set()
    for status in statuses:
        entries = files.listFiles(status.getPath(), True)
        while entries.hasNext():
            entry = entries.next()
            state.add((entry.getPath().toString(), entry.getLen(), entry.getModificationTime()))
    return frozenset(state)


def remove_uncommitted(path: str, spark: SparkSession, since: float) -> None:
    """Remove new part files of a sink that are on no list of finished batches.

    A directory without such a list may belong to others: there, only empty files are removed.
    """
    jvm = spark._jvm
    assert jvm is not None
    target, files = _locate(path, spark)
    if not files.exists(target) or files.getFileStatus(target).isFile():
        return
    listing = jvm.org.apache.hadoop.fs.Path(target, "_spark_metadata")
    has_list = files.exists(listing)
    committed: set[str] = set()
    if has_list:
        sinks = jvm.org.apache.spark.sql.execution.streaming.sinks
        log = sinks.FileStreamSinkLog(1, spark._jsparkSession, listing.toString(), jvm.scala.Option.empty())
        committed = {status.path().rpartition("/")[2] for status in log.allFiles()}
    for status in files.listStatus(target):
        name = status.getPath().getName()
        is_new = status.getModificationTime() >= since * 1000
        is_part = status.isFile() and name.startswith("part-") and name not in committed
        if is_part and is_new and (has_list or status.getLen() == 0):
            files.delete(status.getPath(), False)


def is_occupied(path: str, spark: SparkSession) -> bool:
    """Return whether there is a file, or a directory that is not empty."""
    target, files = _locate(path, spark)
    if not files.exists(target):
        return False
    return bool(files.getFileStatus(target).isFile() or len(files.listStatus(target)) > 0)


def _locate(path: str, spark: SparkSession) -> tuple[Any, Any]:
    jvm = spark._jvm
    assert jvm is not None
    target = jvm.org.apache.hadoop.fs.Path(path)
    return target, target.getFileSystem(spark._jsc.hadoopConfiguration())


def _where(path: str) -> str | None:
    absolute = path.startswith("/") or ":" in path
    return None if absolute else "a relative path is looked up in the directory where Millstream was started"
