"""Clean-up of JVM resources of ended queries that Spark never releases: threads, sockets, selectors.

For every stateful query Spark starts a Python process to ask for its state variables. The process ends, but
a thread that watches its factory sleeps for ever, and keeps the connection to the process. The selector that
waited for this connection is never closed, and so the socket stays open that it was registered with.
Connections over which the JVM called Python (foreachBatch) belong to threads that have ended, and are held
for ever, too.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

EVERY = 10
"""Number of ended queries after which their resources are released."""

_MONITOR = "Idle Worker Monitor for"
_EVENT = "anon_inode:[eventfd]"
_LISTENS = 0x10000
"""Flag of sockets that accept connections."""
_counting = threading.Lock()
_ended = 0
_callbacks: list[tuple[Any, StreamingQuery]] = []
"""Connections over which Spark called queries that have ended."""


def own_connection() -> Any:
    """Return the connection over which the JVM has called this thread."""
    gateway = SparkContext._gateway
    return None if gateway is None else gateway._gateway_client.get_thread_connection()


def release_later(connection: Any, query: StreamingQuery) -> None:
    """Release a connection when the query that was called over it has ended."""
    with _counting:
        _callbacks.append((connection, query))


def query_ended() -> None:
    """Count an ended query; every tenth one releases the resources of those before it."""
    global _ended  # noqa: PLW0603 (one JVM in a process)
    with _counting:
        _ended += 1
        due = _ended % EVERY == 0
    if due:
        threading.Thread(target=_release, daemon=True, name="millstream-release").start()


def _release() -> None:
    try:
        release()
    except Exception:
        # The fields of another Spark version may differ, and leaked threads must not fail a query.
        logging.getLogger("py4j").info("remains of queries were not released", exc_info=True)


def release() -> None:
    """Release the JVM resources of ended queries."""
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
    _close_selectors(jvm)


def _close_selectors(jvm: Any) -> None:
    """Close selectors whose socket is closed. No object leads to them any more, but their descriptors do."""
    left = left_selectors(Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}"))
    if not left:
        return
    assert SparkContext._gateway is not None
    dispatcher = jvm.java.lang.Class.forName("sun.nio.ch.FileDispatcherImpl")
    while "closeIntFD" not in [method.getName() for method in dispatcher.getDeclaredMethods()]:
        dispatcher = dispatcher.getSuperclass()
    types = SparkContext._gateway.new_array(jvm.java.lang.Class, 1)
    types[0] = jvm.java.lang.Integer.TYPE
    close = dispatcher.getDeclaredMethod("closeIntFD", types)
    close.setAccessible(True)
    for descriptor in left:
        values = SparkContext._gateway.new_array(jvm.java.lang.Object, 1)
        values[0] = descriptor
        close.invoke(None, values)


def left_selectors(process: Path) -> list[int]:
    """Descriptors of selectors that wait at Unix sockets without a file, and of these sockets.

    Spark removes the file of such a socket right after it has closed the socket. Without ``/proc`` there are
    none to be found.
    """
    opened: dict[int, str] = {}
    with contextlib.suppress(OSError):
        for link in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                opened[int(link.name)] = str(link.readlink())
    sockets = _sockets_without_file()
    closed = {number for number, target in opened.items() if target in sockets}
    found: list[int] = []
    for number, target in opened.items():
        if target == "anon_inode:[eventpoll]":
            watched = _watched(process / "fdinfo" / str(number))
            if watched & closed and all(opened.get(n) in {*sockets, _EVENT} for n in watched):
                found += [*sorted(watched), number]
    return found


def _watched(selector: Path) -> set[int]:
    with contextlib.suppress(OSError):
        lines = selector.read_text().splitlines()
        return {int(line.split()[1]) for line in lines if line.startswith("tfd:")}
    return set()


def _sockets_without_file() -> set[str]:
    """Names of the sockets that listen at files which are gone, as descriptors show them."""
    found = set()
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
            parts = line.split(maxsplit=7)
            if len(parts) < 8 or not int(parts[3], 16) & _LISTENS:
                continue
            inode, path = parts[6:]
            if path.endswith(".sock") and not Path(path).exists():
                found.add(f"socket:[{inode}]")
    return found


def _release_connections(ended: list[Any]) -> None:
    """Close connections on the side of the JVM: the threads at their other ends notice."""
    ports = set()
    for connection in ended:
        with contextlib.suppress(OSError):
            ports.add(connection.socket.getpeername()[1])
    if not ports:
        return
    assert SparkContext._gateway is not None
    connections = _field(SparkContext._gateway.java_gateway_server.getCallbackClient(), "connections")
    for connection in connections.toArray():
        if connection.getSocket().getLocalPort() in ports and connections.remove(connection):
            connection.shutdown()


def _release_factory(monitor: Any) -> None:
    """End the thread that watches a factory of Python processes, if the factory has none any more."""
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
