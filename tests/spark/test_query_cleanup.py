"""Threads that ended queries leave in the JVM are released."""

import os
import select
import socket
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.spark.host import query_cleanup


def test_remains_are_released_after_every_tenth_query(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []
    monkeypatch.setattr(query_cleanup, "_ended", 0)
    monkeypatch.setattr(query_cleanup.threading, "Thread", lambda **kwargs: _Started(released))
    for _ in range(25):
        query_cleanup.query_ended()
    assert len(released) == 2


class _Started:
    def __init__(self, released: list[int]) -> None:
        self._released = released

    def start(self) -> None:
        self._released.append(1)


def test_selectors_that_wait_at_a_closed_socket(tmp_path: Path) -> None:
    event, selector = os.eventfd(0), select.epoll()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "a.sock"))
        server.listen()
        for descriptor in (event, server.fileno()):
            selector.register(descriptor, select.EPOLLIN)
        assert query_cleanup.left_selectors(Path("/proc/self")) == []
        (tmp_path / "a.sock").unlink()
        found = query_cleanup.left_selectors(Path("/proc/self"))
        assert found == [*sorted([event, server.fileno()]), selector.fileno()]
        assert query_cleanup.left_selectors(tmp_path / "none") == []
    selector.close()
    os.close(event)


@pytest.mark.spark
def test_threads_that_watch_ended_processes(spark: SparkSession, tmp_path: Path) -> None:
    def monitors() -> int:
        jvm = spark._jvm
        assert jvm is not None
        threads = jvm.java.lang.Thread.getAllStackTraces().keySet()
        return sum(thread.getName().startswith("Idle Worker Monitor") for thread in threads)

    def process() -> Path:
        assert spark._jvm is not None
        return Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}")

    (tmp_path / "s.csv").write_text("1,1\n")
    with ms.connect(spark) as mill:
        mill.execute(f"CREATE STREAM s (a INT, t INT) ORDER BY t USING csv OPTIONS (path '{tmp_path}/s.csv')")
        mill.start("SELECT a FROM s").collect()
        query_cleanup.release()
        before = monitors()
        threads = threading.active_count()
        for _ in range(3):
            mill.start("SELECT a FROM s").collect()
        assert monitors() > before
        assert query_cleanup.left_selectors(process())
        query_cleanup.release()
        assert query_cleanup.left_selectors(process()) == []
        time.sleep(1)
        assert monitors() == before
        assert threading.active_count() <= threads
