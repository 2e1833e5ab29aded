"""Lines on a port: nothing lost, nothing refused, one order of arrival, and files that Spark can stream."""

from __future__ import annotations

import errno
import itertools
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from millstream.connectors import spool
from millstream.connectors.port import PortListener
from millstream.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[PortListener]:
    with PortListener(0, tmp_path) as listener:
        yield listener


def send(listener: PortListener, *pieces: bytes, pause: float = 0.0) -> None:
    """Send pieces over one connection."""
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        for piece in pieces:
            client.sendall(piece)
            time.sleep(pause)


def in_order(directory: Path) -> list[Path]:
    """The files as Spark takes them."""
    files = directory.glob("[!.]*.parquet")
    return sorted(files, key=lambda file: (file.stat().st_mtime_ns // 1_000_000, file.name))


def spooled(directory: Path) -> list[tuple[int, str]]:
    """Arrival times in microseconds, and lines."""
    found = []
    for file in in_order(directory):
        table = pq.read_table(file)
        arrivals = [arrival.value for arrival in table.column("arrival")]
        found += list(zip(arrivals, table.column("line").to_pylist(), strict=True))
    return found


def lines(directory: Path) -> list[str]:
    return [line for _, line in spooled(directory)]


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([b"a\nb\n"], ["a", "b"]),
        ([b"a\r\nb\r\n"], ["a", "b"]),
        ([b"a\nb"], ["a", "b"]),
        ([b"a\n\nb\n"], ["a", "", "b"]),
        ([b"ab", b"c\nde", b"f\n"], ["abc", "def"]),
        ([b"a\r", b"\nb\n"], ["a", "b"]),
        (["Zürich\n".encode()[:2], "Zürich\n".encode()[2:]], ["Zürich"]),
        ([b"\xff\xfea\n", b"b\n"], ["\ufffd\ufffda", "b"]),
        ([b"a\x00b\n"], ["a\x00b"]),
        ([b""], []),
    ],
)
def test_lines(tmp_path: Path, sent: list[bytes], expected: list[str]) -> None:
    with PortListener(0, tmp_path) as listener:
        send(listener, *sent, pause=0.01)
    assert lines(tmp_path) == expected
    assert listener.received == len(expected)


def test_a_line_that_is_too_long_is_cut(tmp_path: Path) -> None:
    with PortListener(0, tmp_path, longest_line=10) as listener:
        send(listener, b"x" * 25, b"y" * 300_000 + b"\nnext\n", b"z" * 10 + b"\n", pause=0.01)
    assert lines(tmp_path) == ["x" * 10 + "\ufffd", "next", "z" * 10]


def test_a_very_long_line(tmp_path: Path) -> None:
    with PortListener(0, tmp_path) as listener:
        send(listener, b"x" * 5_000_000 + b"\nnext\n")
    assert [len(line) for line in lines(tmp_path)] == [5_000_000, 4]


def test_many_clients_at_once(tmp_path: Path) -> None:
    with PortListener(0, tmp_path) as listener:
        clients = [
            threading.Thread(
                target=send,
                args=(listener, *(b"%d %d\n" % (client, i) for i in range(200))),
                kwargs={"pause": 0},
            )
            for client in range(8)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    found = spooled(tmp_path)
    assert len(found) == 8 * 200
    arrivals = [arrival for arrival, _ in found]
    assert all(a < b for a, b in itertools.pairwise(arrivals))
    # The lines of a client keep their order.
    for number in range(8):
        own = [line for _, line in found if line.startswith(f"{number} ")]
        assert own == [f"{number} {i}" for i in range(200)]


def test_the_time_is_that_of_arrival(listener: PortListener, tmp_path: Path) -> None:
    before = time.time_ns() // 1000
    send(listener, b"now\n")
    wait_until(lambda: len(in_order(tmp_path)) == 1)
    ((arrival, _),) = spooled(tmp_path)
    assert before <= arrival <= time.time_ns() // 1000


def test_files_are_few_and_complete(listener: PortListener, tmp_path: Path) -> None:
    """New files come while data does, but at most every 200 ms; none is seen before it is complete."""
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        for number in range(100):
            client.sendall(b"%d\n" % number)
            time.sleep(0.005)
            for file in in_order(tmp_path):
                assert pq.read_metadata(file).num_rows > 0
    listener.close()
    seconds = time.monotonic() - started
    assert lines(tmp_path) == [str(number) for number in range(100)]
    files = in_order(tmp_path)
    assert 2 <= len(files) <= seconds / spool.FLUSH_SECONDS + 2
    assert [file.name for file in files] == sorted(file.name for file in files)
    times = [file.stat().st_mtime_ns // 1_000_000 for file in files]
    assert times == sorted(set(times))


def test_much_data_is_not_kept_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "FLUSH_BYTES", 1_000_000)
    monkeypatch.setattr(spool, "FLUSH_SECONDS", 3600.0)
    with PortListener(0, tmp_path) as listener:
        send(listener, b"x" * 99 + b"\n")
        for _ in range(6):
            send(listener, (b"x" * 99 + b"\n") * 10_000)
        wait_until(lambda: len(in_order(tmp_path)) >= 4)
    assert len(lines(tmp_path)) == 60_001


def test_a_restart_goes_on_after_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with PortListener(0, tmp_path) as listener:
        send(listener, b"first\n")
    # The clock was put back by an hour in between.
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3600 * 10**9)
    with PortListener(0, tmp_path) as listener:
        send(listener, b"second\n")
    (first, one), (second, two) = spooled(tmp_path)
    assert (one, two) == ("first", "second")
    assert second == first + 1


def test_what_was_sent_before_closing_is_kept(tmp_path: Path) -> None:
    listener = PortListener(0, tmp_path)
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        client.sendall(b"1\n" * 100_000 + b"unfinished")
        listener.close()
    listener.close()
    assert len(lines(tmp_path)) == 100_001
    assert lines(tmp_path)[-1] == "unfinished"


class TestErrors:
    def test_port_in_use(self, listener: PortListener, tmp_path: Path) -> None:
        with pytest.raises(ExecutionError, match=f"port {listener.port} is in use"):
            PortListener(listener.port, tmp_path / "other")

    def test_the_port_is_free_again_after_closing(self, listener: PortListener, tmp_path: Path) -> None:
        send(listener, b"a\n")
        listener.close()
        with PortListener(listener.port, tmp_path / "other") as again:
            send(again, b"b\n")
        assert lines(tmp_path / "other") == ["b"]

    def test_no_permission(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: socket.socket, address: Any) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(socket.socket, "bind", refuse)
        with pytest.raises(ExecutionError, match="no permission to listen on port 80"):
            PortListener(80, tmp_path)

    def test_no_port(self, tmp_path: Path) -> None:
        with pytest.raises(ExecutionError, match="port 70000"):
            PortListener(70_000, tmp_path)

    def test_the_directory_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(ExecutionError, match="cannot be written"):
            PortListener(0, tmp_path / "file" / "spool")

    def test_disk_full(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(table: Any, path: Path, **_: object) -> None:
            path.touch()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(pq, "write_table", fail)
        listener = PortListener(0, tmp_path)
        send(listener, b"a\n")
        wait_until(lambda: listener.error is not None)
        with pytest.raises(ExecutionError, match="No space left on device"):
            listener.close()
        assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_spark_streams_the_spool(spark: SparkSession, tmp_path: Path) -> None:
    directory, checkpoint = tmp_path / "spool", tmp_path / "checkpoint"
    found: list[tuple[int, str]] = []

    def read() -> None:
        stream = spark.readStream.format(spool.FORMAT).schema(spool.SPARK_SCHEMA).load(str(directory))
        query = stream.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query.foreachBatch(keep).start().awaitTermination()

    def keep(batch: Any, batch_id: int) -> None:
        table = batch.toArrow()
        arrivals = [arrival.value for arrival in table.column("arrival")]
        found.extend(zip(arrivals, table.column("line").to_pylist(), strict=True))

    with PortListener(0, directory) as listener:
        send(listener, b'{"a": 1}\n{"a": 2}\n')
        wait_until(lambda: len(in_order(directory)) > 0)
        read()
        send(listener, b"\xff\n")
    read()
    assert sorted(found) == spooled(directory)
    assert [line for _, line in sorted(found)] == ['{"a": 1}', '{"a": 2}', "\ufffd"]


def test_a_promise_leaves_out_the_lines_that_are_in_no_file_yet(tmp_path: Path) -> None:
    lines_of_port = spool.Spool(tmp_path)
    before = lines_of_port.complete_until()
    lines_of_port.add([b"a", b"b"])
    waiting = lines_of_port.complete_until()
    assert before <= waiting <= time.time_ns() // 1000
    lines_of_port.flush()
    assert [arrival for arrival, _ in spooled(tmp_path)] == [waiting, waiting + 1]
    assert lines_of_port.complete_until() > waiting + 1
