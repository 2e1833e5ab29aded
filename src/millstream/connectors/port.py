"""`SOURCE 'port4445'`: lines that arrive on a TCP port, written down so that Spark can read them.

What comes over a network comes once, and a stream that can be run again must not depend on it. So each
line gets the time of its arrival and goes into a spool directory, and the query reads that directory
with Spark's own file source, which remembers in its checkpoint how far it has come.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
import time
from typing import TYPE_CHECKING, Self

from millstream.connectors.spool import Spool
from millstream.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

LONGEST_LINE = 16 * 2**20
"""Bytes of a line; what is longer is cut."""

_CHUNK = 2**18
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


class PortListener:
    """Listens on a port of the loopback interface from its making until `close`.

    Any number of clients may send lines of UTF-8 at the same time, each ended by LF or CRLF; at the end
    of a connection the LF may be missing. Nothing that they send is refused: bytes that are not UTF-8
    and the end of a line that is too long become U+FFFD. Empty lines are lines.

    The order of arrival is that of the spool (`connectors/spool.py`).
    """

    def __init__(self, port: int, directory: Path, *, longest_line: int = LONGEST_LINE) -> None:
        self._spool = Spool(directory)
        self._server = _listen(port)
        self._port = int(self._server.getsockname()[1])
        self._longest_line = longest_line
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        # A byte here wakes the thread up when it is to stop.
        self._bell, ringing = socket.socketpair()
        self._selector.register(ringing, selectors.EVENT_READ)
        self._stopping = False
        self._received = 0
        self._error: ExecutionError | None = None
        self._thread = threading.Thread(target=self._run, name=f"port{self.port}", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port, which is one that was free if 0 was asked for."""
        return self._port

    @property
    def received(self) -> int:
        """How many lines have arrived."""
        return self._received

    @property
    def error(self) -> ExecutionError | None:
        """Why nothing can be written down any more, if that is so; the listener has stopped then."""
        return self._error

    def close(self) -> None:
        """Write down what has arrived, and stop; raises the error if there was one."""
        if not self._stopping:
            self._stopping = True
            # After an error there is nobody left to wake up.
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

    def _run(self) -> None:
        """The thread: one for all clients, so that there is one order of arrival."""
        try:
            while not self._stopping:
                self._serve(self._spool.seconds_to_flush())
                self._spool.flush_if_due()
            # What clients had sent before we were asked to stop may still be on its way to us.
            deadline = time.monotonic() + 1
            while self._serve(0) and time.monotonic() < deadline:
                self._spool.flush_if_due()
            for client in self._clients():
                self._add(client.end())
            self._spool.flush()
        except ExecutionError as error:
            self._error = error
        finally:
            for key in list(self._selector.get_map().values()):
                self._selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]  # all of them are sockets
            self._selector.close()

    def _serve(self, timeout: float | None) -> bool:
        """Wait for clients, and take what they have sent; whether there was any."""
        served = False
        for key, _ in self._selector.select(timeout):
            if key.fileobj is self._server:
                served |= self._accept()
            elif isinstance(key.data, _Client):
                served = True
                self._receive(key.data)
        return served

    def _accept(self) -> bool:
        # A client that has gone again before it was accepted is none.
        with contextlib.suppress(OSError):
            connection, _ = self._server.accept()
            connection.setblocking(False)
            client = _Client(connection, self._longest_line)
            self._selector.register(connection, selectors.EVENT_READ, client)
            return True
        return False

    def _receive(self, client: _Client) -> None:
        try:
            data = client.connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            # The other side is gone without a word, which ends its last line as well.
            data = b""
        if data:
            self._add(client.feed(data))
        else:
            self._add(client.end())
            self._selector.unregister(client.connection)
            client.connection.close()

    def _add(self, lines: Sequence[bytes]) -> None:
        if lines:
            self._spool.add(lines)
            self._received += len(lines)

    def _clients(self) -> list[_Client]:
        return [key.data for key in self._selector.get_map().values() if isinstance(key.data, _Client)]


class _Client:
    """A connection, and the beginning of a line that has not ended yet."""

    def __init__(self, connection: socket.socket, longest_line: int) -> None:
        self.connection = connection
        self._longest_line = longest_line
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in the data."""
        ended, newline, rest = data.rpartition(b"\n")
        lines: list[bytes] = []
        if newline:
            text = b"".join([*self._pieces, ended])
            self._pieces, self._size = [], 0
            lines = [self._trim(line) for line in text.split(b"\n")]
        # One byte more than allowed is kept, to know that there was more.
        room = self._longest_line + 1 - self._size
        if rest and room > 0:
            self._pieces.append(rest[:room])
            self._size += len(self._pieces[-1])
        return lines

    def end(self) -> list[bytes]:
        """The line that the end of the connection ends, if there is one."""
        return self.feed(b"\n") if self._pieces else []

    def _trim(self, line: bytes) -> bytes:
        line = line.removesuffix(b"\r")
        return line if len(line) <= self._longest_line else line[: self._longest_line] + _REPLACEMENT


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
