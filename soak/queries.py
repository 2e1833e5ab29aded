"""Many short queries in one process: threads and descriptors of Python and of the JVM must not grow."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path

from pyspark import SparkContext

import millstream as ms
from soak.report import Finding

_QUERIES = (
    "SELECT k, v FROM s",
    "SELECT k, sum(v) AS x FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k",
    "SELECT value FROM r",
)
_TOLERATED = 1.15
_FEW = 20
"""Threads and files that come and go, as those of state stores that are closed once a minute."""


@dataclass(frozen=True)
class Used:
    """Resources that the two processes use."""

    python_threads: int
    python_files: int
    jvm_threads: int
    jvm_files: int

    def __str__(self) -> str:
        return "/".join(map(str, astuple(self)))


def soak(directory: Path, queries: int, say: Callable[[str], None]) -> list[Finding]:
    """Start and end so many queries, one after the other."""
    began = time.monotonic()
    directory.mkdir(parents=True)
    path = directory / "s.csv"
    path.write_text("".join(f"{i % 5},{i},2026-01-01 10:00:{i % 60:02}\n" for i in range(60)))
    seen: list[Used] = []
    with ms.connect() as mill:
        mill.execute(f"""
            CREATE STREAM s (k INT, v INT, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path '{path}');
            CREATE STREAM r (timestamp TIMESTAMP, value BIGINT) ORDER BY timestamp
                USING rate OPTIONS (rowsPerSecond '10');
        """)
        for number in range(queries):
            query = mill.start(_QUERIES[number % len(_QUERIES)])
            query.wait(1 if "FROM r" in _QUERIES[number % len(_QUERIES)] else 120)
            query.close()
            seen.append(_used())
            if number % 10 == 9:
                say(f"{number + 1} queries: {seen[-1]}")
    quarter = max(1, queries // 4)
    early, late = _most(seen[quarter : 2 * quarter]), _most(seen[-quarter:])
    grows = [
        name
        for name, before, after in zip(vars(early), astuple(early), astuple(late), strict=True)
        if after > before * _TOLERATED + _FEW
    ]
    detail = f"threads and files of Python and the JVM: {early} in the second quarter, {late} in the last"
    wrong = f"{', '.join(grows)} grow" if grows else ""
    return [Finding("queries", f"{queries} queries", time.monotonic() - began, detail=detail, wrong=wrong)]


def _used() -> Used:
    jvm = SparkContext._gateway.proc.pid  # type: ignore[union-attr]
    return Used(
        threading.active_count(),
        _count(f"/proc/{os.getpid()}/fd"),
        _count(f"/proc/{jvm}/task"),
        _count(f"/proc/{jvm}/fd"),
    )


def _count(directory: str) -> int:
    return sum(1 for _ in Path(directory).iterdir())


def _most(seen: list[Used]) -> Used:
    return Used(*(max(values) for values in zip(*map(astuple, seen), strict=True)))
