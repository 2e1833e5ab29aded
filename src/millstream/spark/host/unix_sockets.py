"""What Spark remembers of its Unix sockets for ever, and a query that runs for months had better forget.

For each stateful task Spark asks the JVM to remove the file of a socket when the JVM ends, though it is gone
with the task. The JVM keeps a list of such files, which would grow by some hundred bytes a micro-batch.
"""

from __future__ import annotations

import threading
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext

EVERY_SECONDS = 600.0


def forget_old_sockets(context: SparkContext) -> None:
    """Take the files of sockets that are gone out of the JVM's list of files to remove.

    The list is replaced and not changed: Spark may add to it in this very moment, and what then is added to
    the old one only is a file that somebody else removes.
    """
    jvm = context._jvm
    assert jvm is not None
    field = jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    field.setAccessible(True)
    kept = jvm.java.util.LinkedHashSet()
    for path in field.get(None).toArray():
        if not path.endswith(".sock") or Path(path).exists():
            kept.add(path)
    field.set(None, kept)


def keep_forgetting(context: SparkContext) -> None:
    """Do so from time to time, for as long as there is the context."""

    def run() -> None:
        pause = threading.Event()
        while not pause.wait(EVERY_SECONDS) and SparkContext._active_spark_context is context:
            try:
                forget_old_sockets(context)
            except Py4JError:
                return  # this JVM does not let us: a little memory is not worth a query

    threading.Thread(target=run, daemon=True, name="millstream-sockets").start()
