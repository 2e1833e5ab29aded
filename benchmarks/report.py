"""Report of a benchmark: times of several algorithms for one task, as ratios within one run."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

REPEATS = 3


@dataclass(frozen=True)
class Measurement:
    """One algorithm: its name, its times in seconds, and its number of rows."""

    name: str
    seconds: tuple[float, ...]
    rows: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turn(
    ways: dict[str, Callable[[], object]], rows: int = 0, repeats: int = REPEATS
) -> list[Measurement]:
    """Measure several algorithms in turn, so that disturbances of the machine affect them all."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, action in ways.items():
            times[name].append(timed(action))
    return [Measurement(name, tuple(seconds), rows) for name, seconds in times.items()]


def command(*arguments: str, **environment: str) -> None:
    """Run a command with the Python of this environment; its output is shown only if it fails."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr[-3000:]}")


def show(measurements: Sequence[Measurement]) -> None:
    """A table; ratios are to the first line, which is Millstream."""
    base = measurements[0].median
    width = max(len(m.name) for m in measurements)
    for m in measurements:
        spread = f"{min(m.seconds):.2f} - {max(m.seconds):.2f}"
        rate = f"{m.rows / m.median:12,.0f} rows/s" if m.rows else ""
        peer = bool(m.rows) and m is not measurements[0]
        ratio = f"Millstream takes {base / m.median:.2f} times as long" if peer else ""
        print(f"  {m.name:<{width}}  {m.median:8.2f} s  ({spread})  {rate}  {ratio}".rstrip(), flush=True)


def environment() -> str:
    cores = len(os.sched_getaffinity(0))
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("millstream", "pyspark", "pyarrow", "sqlglot")
    )
    return f"{cores} cores, {platform.machine()}, Python {platform.python_version()}, {packages}"
