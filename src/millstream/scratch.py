"""The temporary directory of this process.

Only its owner can enter it (mode 0700), and the process holds a lock on it while it lives. The next process
of the same user that creates one removes those whose lock is free: their processes were killed.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

_NAME = re.compile(r"millstream-\d+-\w+")
_LOCK = "lock"
_KEPT = "kept"
"""File that lists the files named in a message, which survive the end of the process."""
_OUTSIDE = "outside"
"""File that lists directories elsewhere, as in shared memory, that are removed with this one."""
_KEPT_SECONDS = 7 * 86_400.0
_UNLOCKED_SECONDS = 3600.0
"""Age from which a directory without a lock belongs to a process that was killed before locking it."""


@cache
def scratch() -> Path:
    """Return the directory; its first use creates it and removes the directories of killed processes."""
    directory = Path(tempfile.mkdtemp(prefix=f"millstream-{os.getpid()}-"))
    lock = (directory / _LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    atexit.register(_leave, os.getpid(), lock)
    sweep(directory.parent)
    return directory


def temporary(prefix: str) -> Path:
    """Create a directory inside."""
    return Path(tempfile.mkdtemp(prefix=prefix, dir=scratch()))


def keep(path: Path) -> None:
    """Keep a file for a week after the process ends, because a message names it."""
    if path.parent == scratch():
        (scratch() / _KEPT).write_text(path.name)


def remove_with_scratch(directory: Path) -> None:
    """Remove a directory elsewhere when this process has ended, even if it is killed."""
    with (scratch() / _OUTSIDE).open("a") as list_:
        list_.write(f"{directory}\n")


def _leave(owner: int, lock: IO[str]) -> None:
    """Remove the directory at the end of the process that made it, except for files marked by ``keep``."""
    if os.getpid() == owner:
        _remove(scratch())
    lock.close()


def sweep(above: Path) -> None:
    """Remove this user's directories of processes that have ended."""
    for directory in above.glob("millstream-*"):
        if not _NAME.fullmatch(directory.name):
            continue
        with contextlib.suppress(OSError):
            status = directory.lstat()
            if status.st_uid != os.getuid() or not directory.is_dir() or directory.is_symlink():
                continue
            with _abandoned(directory) as abandoned:
                if abandoned:
                    _remove(directory)


@contextlib.contextmanager
def _abandoned(directory: Path) -> Iterator[bool]:
    """Yield whether the process of a directory has ended; the lock keeps other sweepers away meanwhile."""
    try:
        lock = (directory / _LOCK).open("r")
    except FileNotFoundError:
        yield time.time() - directory.stat().st_mtime > _UNLOCKED_SECONDS
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


def _remove(directory: Path) -> None:
    with contextlib.suppress(OSError):
        for outside in (directory / _OUTSIDE).read_text().splitlines():
            shutil.rmtree(outside, ignore_errors=True)
    marker = directory / _KEPT
    with contextlib.suppress(OSError):
        if time.time() - marker.stat().st_mtime < _KEPT_SECONDS:
            remaining = {marker.read_text(), _LOCK, _KEPT}
            for entry in directory.iterdir():
                if entry.name not in remaining:
                    shutil.rmtree(entry, ignore_errors=True)
                    entry.unlink(missing_ok=True)
            return
    shutil.rmtree(directory, ignore_errors=True)
