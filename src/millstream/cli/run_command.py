"""``run``: a script with a view of its progress; Ctrl-C and SIGTERM end it in order."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from millstream.cli.terminal import Terminal
from millstream.runtime.script_run import Interrupted, RunEnd, RunOptions, ScriptRun

EXIT_CODES = {RunEnd.COMPLETE: 0, RunEnd.ALL_BAD: 3}
STOPPED = 128
"""Exit code of a stopped program, to which the number of the signal is added."""


def run_script(text: str, name: str, options: RunOptions) -> int:
    """Run a script and return the exit code."""
    # Python functions that the script names may stand beside it; Spark's workers get this path too.
    sys.path.insert(0, str(Path(name).resolve().parent))
    terminal = Terminal()
    run = ScriptRun(
        options,
        say=terminal.say,
        display=terminal.showing,
        starting=terminal.starting,
        compiling=terminal.compiling,
        stdout=terminal,
    )
    received: list[int] = []

    def stop(number: int, frame: object) -> None:
        received.append(number)
        run.stop()

    # The JVM must not get the signal, or Spark would be gone before the queries are stopped.
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        end = run.run(text, name)
        return STOPPED + received[0] if end is RunEnd.STOPPED else EXIT_CODES[end]
    except Interrupted:
        return STOPPED + received[0]
    except BrokenPipeError:
        # The reader of our output has ended, as `head` does; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
