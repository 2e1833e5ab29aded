"""Millstream in processes of its own, which are watched and killed; Linux only, for /proc."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

QUICK = ("--set", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1")
"""These runs are short: code compiled quickly is worth more to them than code compiled well."""

_SCRATCH = ("TMPDIR",)
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Process:
    """A process as the system shows it; its descendants share its session."""

    pid: int
    parent: int
    session: int
    command: str


def processes() -> Iterator[Process]:
    """Yield all running processes, zombies excepted."""
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            stat = (directory / "stat").read_text()
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        # The second field is a name in parentheses, which may contain anything.
        state, parent, _, session, *_ = stat[stat.rindex(")") + 2 :].split()
        if state != "Z":
            yield Process(int(directory.name), int(parent), int(session), command)


class Child:
    """A command in a session of its own, with its output in files."""

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        name: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        scratch = directory / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        self._out, self._err = directory / f"{name}.out", directory / f"{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.popen = subprocess.Popen(
                command,
                cwd=directory,
                stdout=out,
                stderr=err,
                # A killed process leaves its temporary files behind.
                env={**os.environ, **dict.fromkeys(_SCRATCH, str(scratch)), **(environment or {})},
                start_new_session=True,
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    @property
    def has_ended(self) -> bool:
        return self.popen.poll() is not None

    def family(self) -> list[Process]:
        """The process and everything that it has started, JVM and Python workers included."""
        return [process for process in processes() if process.session == self.popen.pid]

    def python_workers(self) -> list[Process]:
        """Workers that run tasks; the daemon that forks them is none."""
        family = self.family()
        daemons = {process.pid for process in family if "pyspark.daemon" in process.command}
        return [process for process in family if process.pid in daemons and process.parent in daemons]

    def wait(self, timeout: float = 240) -> int:
        """The exit code."""
        return self.popen.wait(timeout)

    def wait_until(self, reached: Callable[[], bool], timeout: float = 240) -> bool:
        """Until something has come about; False if the process ended before."""
        deadline = time.monotonic() + timeout
        while not reached():
            if self.has_ended:
                return False
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing came about in {timeout} seconds:\n{self.err}")
            time.sleep(_POLL_SECONDS)
        return True

    def kill(self) -> None:
        """Kill all of it at once, as when the power fails, and wait until nothing of it is left."""
        while family := self.family():
            for process in family:
                _kill(process.pid)
            self.popen.poll()
            time.sleep(_POLL_SECONDS)
        self.popen.wait()

    def kill_python_worker(self, chance: random.Random, timeout: float = 60) -> bool:
        """Kill one worker and nothing else; False if the process ended before there was one."""
        if not self.wait_until(lambda: bool(self.python_workers()), timeout):
            return False
        workers = self.python_workers()
        return bool(workers) and _kill(chance.choice(workers).pid)


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Runs:
    """Repeated runs of one `millstream run` in one directory, with one checkpoint."""

    def __init__(self, directory: Path, script: str, *options: str) -> None:
        self.directory = directory
        self.checkpoint = directory / "checkpoint"
        self._options = options
        self._children: list[Child] = []
        directory.mkdir(parents=True, exist_ok=True)
        self.rewrite(script)

    def rewrite(self, script: str) -> None:
        (self.directory / "script.esl").write_text(script)

    def start(self, *options: str, environment: Mapping[str, str] | None = None) -> Child:
        run = [sys.executable, "-m", "millstream", "run", "script.esl", "--checkpoint", str(self.checkpoint)]
        command = [*run, *self._options, *options]
        child = Child(command, self.directory, f"run{len(self._children) + 1}", environment)
        self._children.append(child)
        return child

    def end(self) -> None:
        """Kill every run that has not ended, as after a failed assertion."""
        for child in self._children:
            child.kill()

    @property
    def batches(self) -> int:
        """Return the number of finished micro-batches, of all queries and runs together."""
        return sum(path.name.isdigit() for path in self.checkpoint.glob("*/spark/commits/*"))

    @property
    def begun(self) -> int:
        """Return the number of micro-batches that have begun."""
        return sum(path.name.isdigit() for path in self.checkpoint.glob("*/spark/offsets/*"))

    @property
    def is_told_the_end(self) -> bool:
        """Return whether some query has been told that its input has ended."""
        return any(self.checkpoint.glob("*/control/*.txt"))
