"""A Spark cluster on this machine: a master and workers, from the distribution that comes with PySpark."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.recovery.processes import Child, Process

HOST = "127.0.0.1"
_SPARK_HOME = Path(pyspark.__file__).parent
_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Cluster:
    url: str
    workers: list[Child]

    def executors(self) -> list[Process]:
        """The processes that run the tasks of an application."""
        found = [process for worker in self.workers for process in worker.family()]
        # The worker's own command line does not mention it, but a script that starts Java for a moment may.
        return [p for p in found if "CoarseGrainedExecutorBackend" in p.command and "/java" in p.command]

    def kill(self, executor: Process) -> None:
        os.kill(executor.pid, signal.SIGKILL)


@contextmanager
def cluster(directory: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster with some workers of one core each; nothing of it is left afterwards."""
    port = free_port()
    url = f"spark://{HOST}:{port}"
    with ExitStack() as stack:
        master = stack.enter_context(_daemon(directory, "master", "master.Master", "--port", str(port)))
        _wait_for_port(master, port)
        started = [
            stack.enter_context(
                _daemon(directory, f"worker{i}", "worker.Worker", "--cores", "1", "--memory", "1g", url)
            )
            for i in range(workers)
        ]
        yield Cluster(url, started)


@contextmanager
def _daemon(directory: Path, name: str, main: str, *arguments: str) -> Iterator[Child]:
    places = ["--work-dir", str(directory / name)] if main.startswith("worker") else []
    child = Child(
        [
            str(_SPARK_HOME / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{main}",
            *("--host", HOST, "--webui-port", "0", *places, *arguments),
        ],
        directory,
        name,
        {"SPARK_HOME": str(_SPARK_HOME), "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_JAVA_OPTS": _SMALL_JVM},
    )
    try:
        yield child
    finally:
        # A worker that is asked to go takes its executors along.
        child.popen.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.popen.wait(20)
        child.kill()


def free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


def _wait_for_port(master: Child, port: int, timeout: float = 120) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection((HOST, port)).close()
            return
        except OSError:
            assert not master.has_ended, master.err
            assert time.monotonic() < deadline, "the master does not answer"
            time.sleep(0.1)
