"""The temporary directory of this process: everything that is not to outlive it.

It belongs to its owner alone (0700) and is held by a lock as long as the process lives. The next process of
the same user that makes one removes those whose lock is free: their processes were killed.
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
"""Names of files that a message has named: they stay when the process ends."""
_OUTSIDE = "outside"
"""Names directories elsewhere, as in shared memory, that go with this one."""
_KEPT_SECONDS = 7 * 86_400.0
_UNLOCKED_SECONDS = 3600.0
"""A directory without a lock is still being made, or a killed process never came to lock it."""


@cache
def scratch() -> Path:
    """The directory, made when it is first asked for; leftovers of killed processes are removed then."""
    directory = Path(tempfile.mkdtemp(prefix=f"millstream-{os.getpid()}-"))
    lock = (directory / _LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    atexit.register(_leave, os.getpid(), lock)
    sweep(directory.parent)
    return directory


def temporary(prefix: str) -> Path:
    """A new directory inside."""
    return Path(tempfile.mkdtemp(prefix=prefix, dir=scratch()))


def keep(path: Path) -> None:
    """Let a file stay for a week, because a message names it."""
    if path.parent == scratch():
        (scratch() / _KEPT).write_text(path.name)


def remove_with_scratch(directory: Path) -> None:
    """Let a directory elsewhere go when this process has ended, however that happens."""
    with (scratch() / _OUTSIDE).open("a") as list_:
        list_.write(f"{directory}\n")


def _leave(owner: int, lock: IO[str]) -> None:
    """Remove the directory at the end of the process that made it, except for what is to be kept."""
    if os.getpid() == owner:
        _remove(scratch())
    lock.close()


def sweep(above: Path) -> None:
    """Remove the directories of processes that are gone, as far as they belong to this user."""
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
    """Whether the process of a directory is gone; held such that two sweepers do not meet."""
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
    kept = directory / _KEPT
    with contextlib.suppress(OSError):
        if time.time() - kept.stat().st_mtime < _KEPT_SECONDS:
            stays = {kept.read_text(), _LOCK, _KEPT}
            for entry in directory.iterdir():
                if entry.name not in stays:
                    shutil.rmtree(entry, ignore_errors=True)
                    entry.unlink(missing_ok=True)
            return
    shutil.rmtree(directory, ignore_errors=True)
