"""A Python environment for Flink, made when it is first needed: its packages clash with those of PySpark."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.engine.contract import MissingError
from benchmarks.engine.data import BUILD

VERSION = "2.3.0"
NEWEST_PYTHON = (3, 12)
"""The last version that Flink has packages for, and the first, which is too old for Millstream."""

HOME = BUILD / f"flink-{VERSION}"
PYTHON = HOME / "bin" / "python"


def prepare() -> None:
    """Make the environment unless it is there; raises MissingError with the reason if that cannot be."""
    complete = HOME / "complete"
    if complete.exists():
        return
    interpreter = _interpreter()
    print(f"installing apache-flink {VERSION} into {HOME}: about 850 MB, the first time only", flush=True)
    _do(interpreter, "-m", "venv", "--clear", str(HOME))
    _do(str(PYTHON), "-m", "pip", "install", "--quiet", f"apache-flink=={VERSION}")
    complete.touch()


def _interpreter() -> str:
    if sys.version_info[:2] <= NEWEST_PYTHON:
        return sys.executable
    for minor in (12, 11):
        if found := shutil.which(f"python3.{minor}"):
            return found
    newest = ".".join(map(str, NEWEST_PYTHON))
    raise MissingError(
        f"apache-flink {VERSION} needs Python {newest} or older, and there is none on the PATH"
    )


def _do(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingError(f"{Path(command[0]).name} cannot be run: {error.strerror}") from None
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if re.match("(?i)error", line)]
        reason = said[-1] if said else f"{Path(command[0]).name} ended with {done.returncode}"
        raise MissingError(f"apache-flink {VERSION} could not be installed: {reason}")
