"""Remains of ended queries in the JVM, which Spark never releases: threads, sockets, selectors.

For every stateful query Spark starts a Python process to ask for its state variables. The process ends, but
a thread that watches its factory sleeps for ever, and keeps the connection to the process. Connections over
which the JVM called Python (foreachBatch) belong to threads that have ended; they are closed when garbage is
collected, and the heap is so large that this may not happen for hours.
"""

from __future__ import annotations

import threading
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

EVERY = 10
"""Ended queries after which their remains are released."""

_MONITOR = "Idle Worker Monitor for"
_counting = threading.Lock()
_ended = 0


def query_ended() -> None:
    """Count a query that has ended; the remains of every tenth and of those before it are released."""
    global _ended  # noqa: PLW0603 (there is one JVM in a process)
    with _counting:
        _ended += 1
        due = _ended % EVERY == 0
    if due:
        threading.Thread(target=_release, daemon=True, name="millstream-release").start()


def _release() -> None:
    try:
        release()
    except (Py4JError, OSError):
        return  # this JVM does not let us, or is gone: a query is worth more than some threads


def release() -> None:
    """Release what ended queries have left in the JVM."""
    jvm = SparkContext._jvm
    if jvm is None:
        return
    for thread in list(jvm.java.lang.Thread.getAllStackTraces().keySet()):
        if thread.getName().startswith(_MONITOR):
            _release_factory(thread)
    jvm.java.lang.System.gc()


def _release_factory(monitor: Any) -> None:
    """End the thread that watches a factory of Python processes, if that has none any more."""
    factory = _field(monitor, "$outer")
    # Factories with a daemon serve the tasks of all queries.
    if _field(factory, "useDaemon"):
        return
    workers = list(_items(_field(factory, "simpleWorkers")))
    if any(process.isAlive() for _, process in workers):
        return
    for worker, _ in workers:
        worker.stop()
    monitor.interrupt()


def _field(owner: Any, name: str) -> Any:
    field = owner.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(owner)


def _items(scala_map: Any) -> Any:
    pairs = scala_map.iterator()
    while pairs.hasNext():
        pair = pairs.next()
        yield pair._1(), pair._2()
