"""The life and death of the JVM that embedded Spark runs in."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

_DYING_SECONDS = 3.0
"""Connections of a process that is being killed may break a little before the process is gone."""


def has_died() -> bool:
    """Whether there was a JVM, and it has ended."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def is_dying() -> bool:
    """Explain a connection to the JVM that broke."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_DYING_SECONDS)
    return has_died()


def kill() -> None:
    """End the JVM at once, also one that is still starting, and forget it."""
    for pid in _started():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    is_dying()
    forget()


def forget() -> None:
    """Let PySpark start another JVM when Spark is next needed: it would call the dead one for ever."""
    context = SparkContext._active_spark_context
    server = getattr(context, "_accumulatorServer", None)
    if context is not None:
        # Otherwise its finalizer would call the JVM.
        context._jsc = None
    if server is not None:
        server.shutdown()
    with contextlib.suppress(Exception):
        assert SparkContext._gateway is not None
        SparkContext._gateway.shutdown_callback_server()
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _started() -> list[int]:
    """The JVM among the children of this process; while it starts, PySpark has no handle on it."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        return [process.pid] if process.poll() is None else []
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (directory / "stat").read_text()
            parent = int(stat[stat.rindex(")") + 2 :].split()[1])
            if parent == os.getpid() and b"pyspark-shell" in (directory / "cmdline").read_bytes():
                found.append(int(directory.name))
    return found
