"""Clean-up of the JVM's list of Unix sockets, which otherwise grows as long as a query runs.

For each stateful task Spark asks the JVM to remove the file of a socket when the JVM ends, though the file is
removed with the task. The JVM's list of such files would grow by some hundred bytes a micro-batch.
"""

from __future__ import annotations

import threading
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext

EVERY_SECONDS = 600.0


def forget_old_sockets(context: SparkContext) -> None:
    """Remove the files of closed sockets from the JVM's list of files to delete.

    The list is replaced and not changed: Spark may add to it concurrently, and an entry that is lost is of a
    file that the task itself removes.
    """
    jvm = context._jvm
    assert jvm is not None
    field = jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    field.setAccessible(True)
    remaining = jvm.java.util.LinkedHashSet()
    for path in field.get(None).toArray():
        if not path.endswith(".sock") or Path(path).exists():
            remaining.add(path)
    field.set(None, remaining)


def keep_forgetting(context: SparkContext) -> None:
    """Call ``forget_old_sockets`` periodically while the context exists."""

    def run() -> None:
        pause = threading.Event()
        while not pause.wait(EVERY_SECONDS) and SparkContext._active_spark_context is context:
            try:
                forget_old_sockets(context)
            except Py4JError:
                return  # the JVM forbids access: a little memory is not worth a query

    threading.Thread(target=run, daemon=True, name="millstream-sockets").start()
