"""Atomic writes of files, and private directories."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object], *, durable: bool = True) -> None:
    """Write a file atomically: ``write`` fills a file of another name, which is then renamed.

    That name begins with a dot, so Spark ignores the file. A ``durable`` file also survives a loss of power:
    the file is synced before it is renamed, and its directory afterwards.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        write(unfinished)
        if durable:
            sync(unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or the names in a directory, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def private_directory(path: Path) -> bool:
    """Create a directory that only this user can enter, and return whether it is one.

    In a directory that all users can write to, another user may have created it first.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_trusted(path):
            return False
        if stat.S_IMODE(path.lstat().st_mode) & 0o077 and path.lstat().st_uid == os.getuid():
            path.chmod(0o700)
    except OSError:
        return False
    return True


def is_trusted(path: Path) -> bool:
    """Return whether only this user or root can write to a directory or replace it."""
    try:
        status, above = path.lstat(), path.parent.stat()
    except OSError:
        return False
    own = stat.S_ISDIR(status.st_mode) and status.st_uid in (os.getuid(), 0)
    # In a directory with the sticky bit, only the owner of an entry can replace it.
    replaceable = above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX
    return own and not status.st_mode & 0o022 and not replaceable
