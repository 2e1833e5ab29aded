"""Remains of ended queries in the JVM, which Spark never releases: threads, sockets, selectors.

For every stateful query Spark starts a Python process to ask for its state variables. The process ends, but
a thread that watches its factory sleeps for ever, and keeps the connection to the process. Connections over
which the JVM called Python (foreachBatch) belong to threads that have ended, and are held for ever, too.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

EVERY = 10
"""Ended queries after which their remains are released."""

_MONITOR = "Idle Worker Monitor for"
_counting = threading.Lock()
_ended = 0
_callbacks: list[tuple[Any, StreamingQuery]] = []
"""Connections over which queries that have ended were called."""


def own_connection() -> Any:
    """The connection over which the JVM has called this thread."""
    gateway = SparkContext._gateway
    return None if gateway is None else gateway._gateway_client.get_thread_connection()


def release_later(connection: Any, query: StreamingQuery) -> None:
    """Let a connection go when the query that was called over it has ended."""
    with _counting:
        _callbacks.append((connection, query))


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
    except Exception:
        # Another Spark may be built otherwise, and some threads are not worth a query.
        logging.getLogger("py4j").info("remains of queries were not released", exc_info=True)


def release() -> None:
    """Release what ended queries have left in the JVM."""
    jvm = SparkContext._jvm
    if jvm is None:
        return
    for thread in list(jvm.java.lang.Thread.getAllStackTraces().keySet()):
        if thread.getName().startswith(_MONITOR):
            _release_factory(thread)
    with _counting:
        ended = [pair for pair in _callbacks if not pair[1].isActive]
        _callbacks[:] = [pair for pair in _callbacks if pair not in ended]
    _release_connections([connection for connection, _ in ended])


def _release_connections(ended: list[Any]) -> None:
    """Close connections on the side of the JVM: the threads at their other ends notice."""
    ports = set()
    for connection in ended:
        with contextlib.suppress(OSError):
            ports.add(connection.socket.getpeername()[1])
    if not ports:
        return
    assert SparkContext._gateway is not None
    held = _field(SparkContext._gateway.java_gateway_server.getCallbackClient(), "connections")
    for connection in held.toArray():
        if connection.getSocket().getLocalPort() in ports and held.remove(connection):
            connection.shutdown()


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
    kind = owner.getClass()
    while name not in [field.getName() for field in kind.getDeclaredFields()]:
        kind = kind.getSuperclass()
    field = kind.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(owner)


def _items(scala_map: Any) -> Any:
    pairs = scala_map.iterator()
    while pairs.hasNext():
        pair = pairs.next()
        yield pair._1(), pair._2()
