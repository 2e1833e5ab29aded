"""Sender of a demo's lines to TCP ports, at the pace at which they happen."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

from millstream.demo.arrivals import Arrival
from millstream.errors import ExecutionError

_TICK = 0.05
"""Seconds; lines of one tick are sent together."""


class Sender:
    """A thread that sends each line to the port of its stream when its time has come, until it is stopped."""

    def __init__(self, arrivals: Iterator[Arrival], ports: Mapping[str, int]) -> None:
        self._arrivals = arrivals
        self._ports = ports
        self._sent = 0
        self._newest: deque[tuple[str, str]] = deque(maxlen=50)
        self._error: ExecutionError | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="millstream-sender", daemon=True)

    @property
    def sent(self) -> int:
        """Number of lines that were sent."""
        return self._sent

    def newest(self, count: int) -> list[tuple[str, str]]:
        """Return the last lines that were sent, each with its stream."""
        return list(self._newest.copy())[-count:] if count > 0 else []

    def check(self) -> None:
        """Raise the error that keeps lines from being sent, if there is one."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Send no more lines."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        sockets: dict[str, socket.socket] = {}
        try:
            for stream, port in self._ports.items():
                sockets[stream] = socket.create_connection(("127.0.0.1", port), timeout=10)
            self._play(sockets)
        except OSError as error:
            self._error = ExecutionError(f"the demo cannot send to its own streams: {error}")
        finally:
            for connection in sockets.values():
                connection.close()

    def _play(self, sockets: Mapping[str, socket.socket]) -> None:
        started = time.monotonic()
        upcoming = next(self._arrivals)
        while not self._stopping.wait(_TICK):
            now = time.monotonic() - started
            due: dict[str, list[str]] = {}
            while upcoming.at <= now:
                due.setdefault(upcoming.stream, []).append(upcoming.line)
                upcoming = next(self._arrivals)
            for stream, lines in due.items():
                sockets[stream].sendall("".join(f"{line}\n" for line in lines).encode())
                self._sent += len(lines)
                self._newest.extend((stream, line) for line in lines)
