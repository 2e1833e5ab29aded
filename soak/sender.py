"""A sender of numbered lines that connects again and again, and remembers when it has sent which."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from soak.report import differences

_PAUSE = 0.02
LOSS_SECONDS = 1.0
"""Lines that came so shortly before the end of a run may be lost: 0.2 s until they are written down, and what
the system had not handed over yet."""


@dataclass(frozen=True)
class LinesFound:
    """Numbered lines that came out of a run, against those that went in."""

    lost: int
    doubled: int
    lost_at_ends: int
    """Lost as documented: sent just before a run was ended."""
    wrong_counts: int


class Sender:
    """Sends to a port whenever there is one."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent: list[float] = []
        """When each line was sent, by its number."""
        self.ends: list[float] = []
        """When connections broke."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.1):
            try:
                with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                    self._send(connection)
            except OSError:
                self.ends.append(time.monotonic())

    def _send(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        while not self._stopped.wait(_PAUSE):
            try:
                if connection.recv(1) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            self.sent.append(time.monotonic())
            connection.sendall(f"{len(self.sent) - 1}\n".encode())

    def judge(self, found: Sequence[tuple[str, ...]], disturbed: Sequence[float]) -> LinesFound:
        """Compare the results, as (number, count so far), with the sent lines."""
        numbers = [int(n) for n, _ in found]
        newest = max(numbers, default=-1)
        _, doubled = differences(numbers, range(newest + 1))
        ends = [*disturbed, *self.ends]
        missing = set(range(newest + 1)) - set(numbers)
        excused = {
            n for n in missing if any(-LOSS_SECONDS < end - self.sent[n] < LOSS_SECONDS for end in ends)
        }
        in_order = sorted((int(n), int(count)) for n, count in found)
        wrong = sum(count != i + 1 for i, (_, count) in enumerate(in_order))
        return LinesFound(len(missing - excused), doubled, len(excused), wrong)
