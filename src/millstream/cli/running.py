"""``run``: a script with a live view of its progress, and Ctrl-C that ends it in order."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from millstream.cli.live import live_progress
from millstream.runtime.scripts import RunOptions, ScriptRun

INTERRUPTED = 130
"""What shells expect of a program that was stopped by Ctrl-C before its end."""


def run_script(text: str, name: str, options: RunOptions) -> int:
    """Run a script; the exit code."""
    # Python functions that the script names may stand beside it; Spark's workers get this path too.
    sys.path.insert(0, str(Path(name).resolve().parent))
    run = ScriptRun(
        options,
        say=lambda message: print(message, file=sys.stderr),  # noqa: T201
        display=live_progress if sys.stderr.isatty() else None,
        compiling=_compiling,
    )
    # The JVM must not get the signal, or Spark would be gone before the queries are stopped.
    previous = signal.signal(signal.SIGINT, lambda number, frame: run.stop())
    try:
        return 0 if run.run(text, name) else INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough of it, as `head` does; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    finally:
        signal.signal(signal.SIGINT, previous)


def _compiling(name: str, seconds: float | None) -> None:
    """The first run of an aggregate takes some seconds more, and a person should know what for."""
    if seconds is None:
        print(f"compiling {name} ...", end="", file=sys.stderr, flush=True)  # noqa: T201
    else:
        print(f" {seconds:.1f} s", file=sys.stderr)  # noqa: T201
