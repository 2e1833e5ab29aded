"""A port under pressure: too many clients, too long lines, resets, a full disk, torn files."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from millstream import files
from millstream.connectors import spool
from millstream.connectors.port import PortListener
from millstream.connectors.spool import Spool
from millstream.errors import ExecutionError
from tests.connectors.test_port import lines, send, spooled, wait_until


def connected(listener: PortListener) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", listener.port))
    client.settimeout(10)
    return client


def reset(client: socket.socket) -> None:
    """Close as a program does that crashes: with RST instead of FIN."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


class TestUnfinishedLines:
    def test_a_reset_ends_no_line(self, tmp_path: Path) -> None:
        with PortListener(0, tmp_path) as listener:
            for _ in range(5):
                client = connected(listener)
                client.sendall(b"7,12345\n8,123")
                wait_until(lambda: listener._unfinished == 5)
                reset(client)
                wait_until(lambda: not listener._clients)
            send(listener, b"9,123")
        assert lines(tmp_path) == ["7,12345"] * 5 + ["9,123"]
        assert listener.warnings == [
            f"port {listener.port}: 5 unfinished lines dropped, as the connection was reset"
        ]

    def test_all_of_them_together_are_bounded(self, tmp_path: Path) -> None:
        with PortListener(0, tmp_path, longest_line=1000, most_unfinished=5000) as listener:
            good = connected(listener)
            good.sendall(b"go")
            clients = [connected(listener) for _ in range(20)]
            for number, client in enumerate(clients):
                client.sendall(b"x" * 900)
                wait_until(lambda number=number: listener._crowded_out >= number + 1 - 5)
                # The line has been counted, and is dropped next.
                wait_until(lambda: listener._unfinished <= 5000)
            assert (
                sum(_is_refused(client, b"refused: too many long lines at once\n") for client in clients)
                == 15
            )
            good.sendall(b"od\n")
            wait_until(lambda: listener.received == 1)
            for client in clients:
                reset(client)
            good.close()
            wait_until(lambda: not listener._clients)
            assert listener._unfinished == 0
        assert lines(tmp_path) == ["good"]
        assert "15 unfinished lines dropped, as all of them together were too long" in listener.warnings[1]

    def test_a_line_of_single_bytes_costs_its_bytes(self, tmp_path: Path) -> None:
        with PortListener(0, tmp_path) as listener, connected(listener) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(100):
                client.sendall(b"x")
            wait_until(lambda: listener._unfinished == 100)
            (held,) = listener._clients
            assert sys.getsizeof(held._beginning) < 1000


def _is_refused(client: socket.socket, said: bytes) -> bool:
    client.setblocking(False)
    try:
        return client.recv(100) == said
    except OSError:
        return False


class TestConnections:
    def test_beyond_the_limit_a_client_is_told_so(self, tmp_path: Path) -> None:
        with PortListener(0, tmp_path, most_connections=2) as listener:
            first, second = connected(listener), connected(listener)
            wait_until(lambda: len(listener._clients) == 2)
            with connected(listener) as third:
                assert third.recv(100) == b"refused: too many connections\n"
                assert third.recv(100) == b""
            first.sendall(b"a\n")
            first.close()
            wait_until(lambda: len(listener._clients) == 1)
            with connected(listener) as fourth:
                fourth.sendall(b"b\n")
            second.sendall(b"c\n")
            second.close()
            wait_until(lambda: listener.received == 3)
        assert sorted(lines(tmp_path)) == ["a", "b", "c"]
        assert listener.warnings == [f"port {listener.port}: 1 connection refused, as there were too many"]

    def test_more_connections_than_descriptors(
        self, tmp_path: Path, few_descriptors: Callable[[], None]
    ) -> None:
        """Clients that are let in lose nothing, the rest is refused, and the listener goes on."""
        with PortListener(0, tmp_path) as listener:
            few_descriptors()
            program = f"""
import resource, select, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
clients = [socket.create_connection(("127.0.0.1", {listener.port})) for _ in range(100)]
select.select(clients, [], [], 10)  # until the first one is refused
for client in clients:
    client.settimeout(10)
    try:
        client.sendall(b"line\\n")
        client.shutdown(socket.SHUT_WR)
    except OSError:
        pass
refused = 0
for client in clients:
    try:
        refused += client.recv(100) != b""
    except OSError:
        refused += 1
print(refused)
"""
            done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, check=True)
            refused = int(done.stdout)
            assert 0 < refused < 100
            wait_until(lambda: listener.received == 100 - refused)
            send(listener, b"later\n")
            wait_until(lambda: "later" in lines(tmp_path))
            assert listener.error is None
        assert lines(tmp_path) == ["line"] * (100 - refused) + ["later"]
        assert f"{refused} connection" in listener.warnings[0]


@pytest.fixture
def few_descriptors() -> Iterator[Callable[[], None]]:
    """Leaves 60 descriptors to this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def lower() -> None:
        used = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
        free = itertools.islice((number for number in itertools.count() if number not in used), 60, None)
        resource.setrlimit(resource.RLIMIT_NOFILE, (next(free), before[1]))

    yield lower
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class TestErrors:
    def test_no_error_of_the_thread_is_lost(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(self: Spool, lines: object) -> None:
            raise ZeroDivisionError("by zero")

        monkeypatch.setattr(Spool, "add", fail)
        told: list[tuple[int, ExecutionError]] = []
        listener = PortListener(0, tmp_path, on_error=lambda *given: told.append(given))
        send(listener, b"a\n")
        wait_until(lambda: bool(told))
        assert told == [(listener.port, listener.error)]
        with pytest.raises(ExecutionError, match="has failed: ZeroDivisionError: by zero"):
            listener.close()

    def test_a_full_disk_tells_what_is_lost(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write = pq.write_table
        listener = PortListener(0, tmp_path)
        send(listener, b"a\nb\n")
        wait_until(lambda: listener._spool.written == 2)

        def fail(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(pq, "write_table", fail)
        send(listener, b"c\nd\ne\n")
        with pytest.raises(ExecutionError, match="of 5 lines received in this run, the last 3 are lost"):
            listener.close()
        monkeypatch.setattr(pq, "write_table", write)
        assert lines(tmp_path) == ["a", "b"]

    def test_without_descriptors_lines_wait(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write, failures = pq.write_table, iter(range(3))

        def fail_at_first(*given: Any, **options: Any) -> None:
            if next(failures, None) is not None:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            write(*given, **options)

        monkeypatch.setattr(spool, "FLUSH_SECONDS", 0.02)
        monkeypatch.setattr(pq, "write_table", fail_at_first)
        with PortListener(0, tmp_path) as listener:
            send(listener, b"a\n")
            send(listener, b"b\n")
        assert lines(tmp_path) == ["a", "b"]

    def test_but_not_for_ever(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        monkeypatch.setattr(spool, "PATIENCE_SECONDS", 0.1)
        monkeypatch.setattr(pq, "write_table", fail)
        listener = PortListener(0, tmp_path)
        send(listener, b"a\n")
        with pytest.raises(ExecutionError, match="Too many open files"):
            listener.close()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def without_footer(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:20] + bytes(len(data) - 24) + data[-4:])


def foreign(file: Path) -> None:
    file.write_bytes(b"a,b\n1,2\n")


class TestFilesOfAnEarlierRun:
    @pytest.mark.parametrize("damage", [emptied, cut, without_footer, foreign])
    def test_a_torn_file_is_set_aside(self, tmp_path: Path, damage: Callable[[Path], None]) -> None:
        with PortListener(0, tmp_path) as listener:
            send(listener, b"first\n")
            wait_until(lambda: listener._spool.written == 1)
            send(listener, b"second\n")
        before = spooled(tmp_path)
        last = max(tmp_path.glob("*.parquet"))
        modified = last.stat().st_mtime_ns
        damage(last)
        os.utime(last, ns=(modified, modified))
        with PortListener(0, tmp_path) as listener:
            send(listener, b"third\n")
        assert lines(tmp_path) == ["first", "third"]
        assert spooled(tmp_path)[1][0] > before[1][0]
        assert f"1 file of an earlier run not whole and set aside: ['{last.name}']" in listener.warnings[0]

    def test_a_name_is_never_given_twice(self, tmp_path: Path) -> None:
        """Not even within a millisecond of the file before, which has been read and removed."""
        names: set[str] = set()
        for number in range(50):
            spool = Spool(tmp_path)
            spool.add([b"%d" % number])
            spool.flush()
            (file,) = tmp_path.glob("*.parquet")
            assert file.name not in names
            names.add(file.name)
            file.unlink()


def test_a_durable_spool_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file before it gets its name, and its directory after that."""
    synced: list[tuple[str, bool]] = []
    sync = files.sync

    def note(path: Path) -> None:
        synced.append((path.suffix, any(tmp_path.glob("*.parquet"))))
        sync(path)

    monkeypatch.setattr(files, "sync", note)
    for durable in (False, True):
        one = Spool(tmp_path, durable=durable)
        one.add([b"a"])
        one.flush()
        assert synced == ([(".unfinished", False), ("", True)] if durable else [])
        for file in tmp_path.iterdir():
            file.unlink()
