"""`SOURCE 'port4445'`: lines that arrive on a TCP port, written to files that Spark reads.

Lines arrive over a network once, but a query that is resumed must read them again. So each line is written
with its time of arrival to a spool directory, and the query reads that directory with Spark's file source,
which keeps its position in the checkpoint.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import selectors
import socket
import threading
import time
from typing import TYPE_CHECKING, Self

from millstream.connectors.spool import FLUSH_SECONDS, Spool
from millstream.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

LONGEST_LINE = 16 * 2**20
"""Bytes of a line; longer lines are cut."""
MOST_UNFINISHED = 64 * 2**20
"""Bytes of unfinished lines of all clients together."""
MOST_CONNECTIONS = 1000
RESERVED_DESCRIPTORS = 64
"""File descriptors that connections leave to the rest of the process, at most an eighth of all."""

_CHUNK = 2**18
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


class PortListener:
    """Listens on a port of the loopback interface from its making until `close`.

    Many clients may send lines of UTF-8 at the same time, each ended by LF or CRLF; at the end of a
    connection the LF may be missing. No line is refused: bytes that are not UTF-8 and the end of a line
    that is too long become U+FFFD. Empty lines are lines. A line that a reset has cut off is none.

    Clients beyond a number of connections, or beyond the descriptors that the process can spare, are told
    so and refused. So is the client with the longest unfinished line if all such lines together become
    too long. `warnings` tells what was lost or refused.

    The order of arrival is that of the spool (`connectors/spool.py`). An error of the thread is given to
    ``on_error`` with the port, kept in `error`, and raised by `close`.
    """

    def __init__(
        self,
        port: int,
        directory: Path,
        *,
        longest_line: int = LONGEST_LINE,
        most_unfinished: int = MOST_UNFINISHED,
        most_connections: int = MOST_CONNECTIONS,
        durable: bool = False,
        on_error: Callable[[int, ExecutionError], None] | None = None,
    ) -> None:
        self.is_durable = durable
        """True if lines are kept for a later run."""
        self._spool = Spool(directory, durable=durable)
        self._server = _listen(port)
        self._port = int(self._server.getsockname()[1])
        self._longest_line = longest_line
        self._most_unfinished = most_unfinished
        self._most_connections = most_connections
        self._on_error = on_error
        self._clients: set[_Client] = set()
        self._unfinished = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        # With no descriptor left, a client could not even be sent away.
        self._spare: int | None = _spare_descriptor()
        # A byte here wakes the thread up when it is to stop.
        self._bell, ringing = socket.socketpair()
        self._selector.register(ringing, selectors.EVENT_READ)
        self._stopping = False
        self._received = 0
        self._resets = 0
        self._refused = 0
        self._crowded_out = 0
        self._error: ExecutionError | None = None
        self._thread = threading.Thread(target=self._run, name=f"port{self.port}", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Number of the port; for 0, that of the free port that was taken."""
        return self._port

    def complete_until(self) -> int:
        """Return a time in microseconds: all lines that were stamped before it can be read."""
        return self._spool.complete_until()

    @property
    def received(self) -> int:
        """Number of lines that have arrived."""
        return self._received

    @property
    def error(self) -> ExecutionError | None:
        """Error that has stopped the listener, if there is one."""
        return self._error

    @property
    def warnings(self) -> list[str]:
        """Sentences about lines, connections and files that were lost or refused."""
        at = f"port {self._port}:"
        counted = (
            (self._resets, "unfinished line", "dropped, as the connection was reset"),
            (self._crowded_out, "unfinished line", "dropped, as all of them together were too long"),
            (self._refused, "connection", "refused, as there were too many"),
            (len(self._spool.torn), "file", f"of an earlier run not whole and set aside: {self._spool.torn}"),
        )
        return [
            f"{at} {count} {what}{'' if count == 1 else 's'} {why}" for count, what, why in counted if count
        ]

    def close(self) -> None:
        """Write the lines that have arrived, and stop; raises the error of the listener, if there is one."""
        if not self._stopping:
            self._stopping = True
            # After an error the thread has ended.
            with contextlib.suppress(OSError):
                self._bell.send(b"!")
            self._thread.join()
            self._bell.close()
            if self._error is not None:
                raise self._error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------ the thread

    def _run(self) -> None:
        """Serve all clients in one thread, so that there is one order of arrival."""
        try:
            self._serve_until_stopped()
        except ExecutionError as error:
            self._error = error
        except BaseException as error:  # noqa: BLE001 (an error in a thread is lost unless it is kept)
            self._error = ExecutionError(
                f"listening on port {self._port} has failed: {type(error).__name__}: {error}; "
                f"{self._spool.waiting} lines that were received are lost"
            )
            self._error.__cause__ = error
        finally:
            self._release()
        if self._error is not None and self._on_error is not None:
            self._on_error(self._port, self._error)

    def _serve_until_stopped(self) -> None:
        while not self._stopping:
            self._serve(self._spool.seconds_to_flush())
            self._spool.flush_if_due()
        # Data that clients sent before the stop may still be on its way.
        deadline = time.monotonic() + 1
        while self._serve(0) and time.monotonic() < deadline:
            self._spool.flush_if_due()
        for client in list(self._clients):
            self._end(client)
        self._spool.flush()
        while self._spool.is_short:
            time.sleep(FLUSH_SECONDS)
            self._spool.flush()

    def _release(self) -> None:
        for key in list(self._selector.get_map().values()):
            self._selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]  # all of them are sockets
        self._selector.close()
        if self._spare is not None:
            os.close(self._spare)

    def _serve(self, timeout: float | None) -> bool:
        """Wait for clients and take their data; return True if there may be more."""
        if self._spool.is_short:
            # Lines that are read now could not be written: leave them with the sender.
            time.sleep(timeout or FLUSH_SECONDS)
            return True
        served = False
        for key, _ in self._selector.select(timeout):
            if key.fileobj is self._server:
                served |= self._accept()
            elif key.data in self._clients:
                served = True
                self._receive(key.data)
                # Many clients together could send more than memory can hold before all are served.
                self._spool.flush_if_due()
        return served

    # ------------------------------------------------------------ clients

    def _accept(self) -> bool:
        try:
            connection, _ = self._server.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._turn_away()
            # A client that has gone again before it was accepted is none.
            return False
        # The system gives the smallest number that is free: this tells how many are in use.
        if len(self._clients) >= self._most_connections or connection.fileno() >= _last_for_connections():
            self._refuse(connection, "too many connections")
            return False
        connection.setblocking(False)
        client = _Client(connection, self._longest_line)
        self._selector.register(connection, selectors.EVENT_READ, client)
        self._clients.add(client)
        return True

    def _turn_away(self) -> None:
        """Accept a client with the spare descriptor and refuse it; otherwise it would be offered again."""
        if self._spare is None:
            time.sleep(FLUSH_SECONDS)
        else:
            os.close(self._spare)
            with contextlib.suppress(OSError):
                self._refuse(self._server.accept()[0], "too many connections")
        self._spare = _spare_descriptor()

    def _refuse(self, connection: socket.socket, reason: str) -> None:
        self._refused += 1
        _say(connection, reason)
        connection.close()

    def _receive(self, client: _Client) -> None:
        try:
            data = client.connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            # The connection was reset: the rest of its line is unknown.
            self._resets += client.unfinished > 0
            self._drop(client)
            return
        if not data:
            self._end(client)
            return
        self._unfinished -= client.unfinished
        self._add(client.feed(data))
        self._unfinished += client.unfinished
        while self._unfinished > self._most_unfinished:
            longest = max(self._clients, key=lambda client: client.unfinished)
            self._crowded_out += 1
            _say(longest.connection, "too many long lines at once")
            self._drop(longest)

    def _end(self, client: _Client) -> None:
        """Handle the end of a connection, which also ends its last line."""
        self._unfinished -= client.unfinished
        self._add(client.end())
        self._drop(client)

    def _drop(self, client: _Client) -> None:
        self._unfinished -= client.unfinished
        self._clients.discard(client)
        self._selector.unregister(client.connection)
        client.connection.close()

    def _add(self, lines: Sequence[bytes]) -> None:
        if lines:
            self._spool.add(lines)
            self._received += len(lines)


class _Client:
    """A connection, and the beginning of a line that has not ended yet."""

    def __init__(self, connection: socket.socket, longest_line: int) -> None:
        self.connection = connection
        self._longest_line = longest_line
        self._beginning = bytearray()

    @property
    def unfinished(self) -> int:
        """Bytes of the line that has not ended yet."""
        return len(self._beginning)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that end in the data."""
        ended, newline, rest = data.rpartition(b"\n")
        lines: list[bytes] = []
        if newline:
            text = bytes(self._beginning) + ended
            self._beginning = bytearray()
            lines = [self._trim(line) for line in text.split(b"\n")]
        # One byte more than allowed is kept, to know that there was more.
        room = self._longest_line + 1 - len(self._beginning)
        if room > 0:
            self._beginning += rest[:room]
        return lines

    def end(self) -> list[bytes]:
        """Return the line that the end of the connection ends, if there is one."""
        return self.feed(b"\n") if self._beginning else []

    def _trim(self, line: bytes) -> bytes:
        line = line.removesuffix(b"\r")
        return line if len(line) <= self._longest_line else line[: self._longest_line] + _REPLACEMENT


def _say(connection: socket.socket, reason: str) -> None:
    """Send a client the reason of its refusal, if it still listens."""
    with contextlib.suppress(OSError):
        connection.setblocking(False)
        connection.send(f"refused: {reason}\n".encode())


def _spare_descriptor() -> int | None:
    with contextlib.suppress(OSError):
        return os.open(os.devnull, os.O_RDONLY)
    return None


def _last_for_connections() -> int:
    """Return the first descriptor that is not for connections."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return 1 << 30
    return limit - min(RESERVED_DESCRIPTORS, limit // 8)


def _listen(port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Connections of a listener that has ended do not keep the port from the next one.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen(128)
        server.setblocking(False)
    except (OSError, OverflowError) as error:
        server.close()
        raise _cannot_listen(port, error) from error
    return server


def _cannot_listen(port: int, error: OSError | OverflowError) -> ExecutionError:
    match getattr(error, "errno", None):
        case errno.EADDRINUSE:
            hint = "another program, or another query, listens there: stop it, or choose another port"
            return ExecutionError(f"port {port} is in use", hint=hint)
        case errno.EACCES:
            return ExecutionError(
                f"no permission to listen on port {port}", hint="choose a port of 1024 or more"
            )
    return ExecutionError(f"no listening on port {port}: {error}", hint="ports are numbers from 1 to 65535")
