"""The JVM process of embedded Spark: detection of its end, and killing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

_DYING_SECONDS = 3.0
"""Seconds to wait for the end of a JVM whose connections broke: they may break before it is gone."""


def has_died() -> bool:
    """Return whether a JVM was started and has ended."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def is_dying() -> bool:
    """Return whether the JVM has ended or ends shortly, which explains a broken connection."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_DYING_SECONDS)
    return has_died()


def kill() -> None:
    """Kill the JVM at once, even while it starts, and reset PySpark."""
    for pid in _started():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    is_dying()
    forget()


def forget() -> None:
    """Reset PySpark, which would otherwise call the dead JVM for ever instead of starting another."""
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
    """Return the JVM among the children of this process; while it starts, PySpark has no handle on it."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        return [process.pid] if process.poll() is None else []
    pids = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (directory / "stat").read_text()
            parent = int(stat[stat.rindex(")") + 2 :].split()[1])
            if parent == os.getpid() and b"pyspark-shell" in (directory / "cmdline").read_bytes():
                pids.append(int(directory.name))
    return pids
