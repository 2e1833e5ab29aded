"""The ports of a connection: listeners, spooled lines, the queries that read them, and errors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.catalog.entries import Port, Stream
from millstream.errors import ExecutionError
from millstream.runtime.checkpoints.checkpoint import readers_of
from millstream.runtime.queries.input_cleanup import InputCleaner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.port import PortListener
    from millstream.runtime.queries.running_query import RunningQuery


class PortListeners:
    """Listens on ports from their first use until `close`.

    With a ``checkpoint``, lines are stored there for the next run; without one, in a directory under
    ``temporary``. The ``cleaner`` removes files that all queries have read.
    """

    def __init__(self, checkpoint: Path | None, temporary: Callable[[], Path], cleaner: InputCleaner) -> None:
        self._checkpoint = checkpoint
        self._temporary = temporary
        self._cleaner = cleaner
        self._listeners: dict[int, PortListener] = {}
        self._directories: dict[int, Path] = {}
        self._queries: dict[int, list[RunningQuery]] = {}
        self._received: dict[int, int] = {}
        """Numbers of lines of closed ports that no checkpoint stores."""
        self._reported: set[int] = set()
        """Ports whose error has ended a query, which reports it."""

    def listen(self, port: int) -> int:
        """Open a port, unless it is open, and return its number; 0 takes a free one."""
        from millstream.connectors.port import PortListener

        if port in self._listeners:
            return port
        durable = self._checkpoint is not None and bool(port)
        directory = self._directory(port)
        listener = PortListener(port, directory, durable=durable, on_error=self._fail)
        self._listeners[listener.port] = listener
        self._directories[listener.port] = directory
        if durable and self._checkpoint is not None:
            # A query that continues later needs the lines that arrive until then.
            for spark in readers_of(self._checkpoint, port):
                self._cleaner.add(directory, spark)
        return listener.port

    def frame(self, port: int, spark: SparkSession) -> DataFrame:
        """Return the lines of a port as a stream."""
        from millstream.connectors.spool import FORMAT, SPARK_SCHEMA

        self.listen(port)
        return spark.readStream.format(FORMAT).schema(SPARK_SCHEMA).load(str(self._directories[port]))

    def behind(self, streams: Iterable[Stream]) -> list[int]:
        """Return the ports that streams read."""
        return sorted({stream.origin.number for stream in streams if isinstance(stream.origin, Port)})

    def complete_until(self, port: int) -> int:
        """Return a time in microseconds: all lines that arrived at a port before it can be read."""
        return self._listeners[port].complete_until()

    def read_by(self, ports: Iterable[int], spark: Path) -> None:
        """Keep lines until the query with this Spark checkpoint has read them."""
        for port in ports:
            self._cleaner.add(self._directories[port], spark)

    def watch(self, ports: Iterable[int], query: RunningQuery) -> None:
        """End a query with the error of its port, if there is one now or later."""
        for port in ports:
            self._queries.setdefault(port, []).append(query)
            error = self._listeners[port].error
            if error is not None:
                self._fail(port, error)

    def keep(self, streams: Iterable[Stream]) -> None:
        """Never remove lines of the ports of streams that queries outside this connection read."""
        for port in self.behind(streams):
            self._cleaner.keep(self._directories[port])

    @property
    def warnings(self) -> list[str]:
        """Return warnings about connections refused and lines lost at ports."""
        return [warning for listener in self._listeners.values() for warning in listener.warnings]

    @property
    def dropped(self) -> list[str]:
        """Return warnings about lines that no checkpoint stores, of ports closed while queries started."""
        sentences: list[str] = []
        for port, count in self._received.items():
            lines, were = ("line", "was") if count == 1 else ("lines", "were")
            # A query that had already started may have read some of them.
            not_read = "may not have been" if self._queries.get(port) else f"{were} not"
            sentences.append(f"{count:,} {lines} received by port {port} {not_read} processed")
        return sentences

    def close(self) -> None:
        """Stop listening. Raises the first error that no query has reported."""
        errors: list[ExecutionError] = []
        for port, listener in self._listeners.items():
            try:
                listener.close()
            except ExecutionError as error:
                errors += [] if port in self._reported else [error]
            if not listener.is_durable and listener.received:
                self._received[port] = listener.received
        self._listeners.clear()
        if errors:
            raise errors[0]

    def _fail(self, port: int, error: ExecutionError) -> None:
        for query in self._queries.get(port, ()):
            if query.is_active:
                self._reported.add(port)
                query.fail(error)

    def _directory(self, port: int) -> Path:
        if self._checkpoint is not None and port:
            directory = self._checkpoint / f"port{port}"
            directory.mkdir(parents=True, exist_ok=True)
            return directory
        return Path(tempfile.mkdtemp(prefix="port", dir=self._temporary()))
