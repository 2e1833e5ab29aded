"""Runs of contestants in processes of their own: an answer, or the reason why there is none."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine.contract import ROOT, Contestant, MissingError, Totals
from benchmarks.engine.data import BUILD

LOGS = BUILD / "logs"

# Another Spark or other packages would shadow those of the environment.
FOREIGN = ("SPARK_HOME", "SPARK_CONF_DIR", "PYTHONHOME", "PYTHONPATH", "FLINK_HOME", "FLINK_CONF_DIR")


@dataclass(frozen=True)
class Outcome:
    """Outcome of a contestant with a number of keys: its answer, or the reason why there is none."""

    contestant: Contestant
    keys: int
    line: dict[str, float]
    reason: str = ""

    @property
    def rate(self) -> float:
        """Rows per second; for micro-batches, batches per second."""
        if self.contestant.is_micro_batch:
            return 1000 / self.line["batch_ms"]
        return self.line["rows"] / self.line["seconds"]

    @property
    def totals(self) -> Totals | None:
        if self.line.get("results") is None:
            return None
        return Totals(int(self.line["results"]), self.line["total"], self.line["squares"])


def run(contestant: Contestant, keys: int, arguments: list[str], timeout: float) -> Outcome:
    """Run a contestant to its end, or for `timeout` seconds; nothing that goes wrong there is raised here."""
    try:
        contestant.prepare()
    except MissingError as missing:
        return Outcome(contestant, keys, {}, f"missing: {missing}")
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{contestant.name}-{keys}.log"
    scratch = Path(tempfile.mkdtemp(prefix=f"{contestant.name}-", dir=BUILD))
    command = [*contestant.argv, *arguments, "--scratch", str(scratch)]
    start = time.perf_counter()
    try:
        with log.open("w") as errors:
            output, status = _finish(command, errors.fileno(), timeout)
    except OSError as error:
        return Outcome(contestant, keys, {}, f"missing: {Path(command[0]).name}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Outcome(contestant, keys, {}, f"stopped: no answer within {timeout:,.0f} s")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    seconds = time.perf_counter() - start
    line = _last_line(output)
    if status or not line:
        with log.open("a") as errors:
            errors.write(output)
        return Outcome(contestant, keys, {}, f"failed: {_reason(log, status)} ({log.relative_to(ROOT)})")
    # From outside, with the start of Python and the end of the JVM, which the process itself cannot see.
    return Outcome(contestant, keys, line | {"process_seconds": round(seconds, 3)})


def _finish(command: list[str], errors: int, timeout: float) -> tuple[str, int]:
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    environment |= {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    # A group of its own, so that its JVM and its workers end with it.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return output, process.returncode


def _last_line(output: str) -> dict[str, float]:
    for text in reversed(output.splitlines()):
        if text.startswith('{"rows"'):
            line: dict[str, float] = json.loads(text)
            return line
    return {}


def _reason(log: Path, status: int) -> str:
    """The line of a log that most likely says why."""
    lines = [text.strip() for text in log.read_text(errors="replace").splitlines()]
    if any("OutOfMemoryError" in text for text in lines):
        return "out of memory"
    errors = [text for text in lines if re.match(r"([\w.$]+)?(Error|Exception)\b|Caused by", text)]
    text = errors[-1] if errors else f"it ended with {status} and without an answer"
    return text if len(text) <= 200 else f"{text[:200]}..."
