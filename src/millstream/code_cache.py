"""The directory of compiled code, with a name of its own for every state of the sources.

The name is a digest of all sources that are compiled, of the versions of what compiles them, and of the
processor. So whatever lies in the directory fits the sources, even where a function has callees in other
files, which Numba does not look at. It can be deleted at any time.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO

from millstream.files import is_trusted, private_directory

PACKAGE = Path(__file__).resolve().parent

_MARKS = (b"numba", b"millstream.jit", b"program.jit_registry")
"""A source that contains one of them defines compiled functions, or constants that become part of some."""

_NEWEST = 4
"""Directories of other digests that are never removed, for work on several branches."""

_UNUSED_AFTER = 86_400.0
"""Seconds after which the others are."""

_USED = "used.lock"
_held: dict[Path, IO[bytes]] = {}
"""Locks on the directories of this process, so that no other process removes them."""


def code_directory() -> Path | None:
    """Return the directory for code that is compiled from the present sources; None if there is no place.

    The environment decides where it is, so a driver and its workers have the same one.
    """
    return _directory(os.environ.get("XDG_CACHE_HOME"), os.environ.get("HOME"), tempfile.gettempdir())


def is_up_to_date() -> bool:
    """Return whether the sources are still those of the digest: a file may be edited while a process runs."""
    try:
        return _stamps(tuple(path for path, _ in _sources()[0])) == _sources()[1]
    except OSError:
        return False


def is_compiled_source(path: Path) -> bool:
    """Return whether the digest depends on a source of the package."""
    return path.resolve() in {source for source, _ in _sources()[0]}


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out that lock the same file.

    The system takes a lock from a process that ends, however it ends. Where files cannot be locked, nothing
    keeps them out.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            lock = stack.enter_context(path.open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_old_code() -> None:
    """Remove directories of other digests, but neither the newest ones nor what a process uses."""
    own = code_directory()
    if own is None:
        return
    with contextlib.suppress(OSError):
        others = [path for path in own.parent.iterdir() if path.is_dir() and path != own]
        for path in sorted(others, key=_last_used, reverse=True)[_NEWEST:]:
            if time.time() - _last_used(path) > _UNUSED_AFTER:
                _remove(path)


def _last_used(path: Path) -> float:
    with contextlib.suppress(OSError):
        return (path / _USED).stat().st_mtime
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _remove(path: Path) -> None:
    """Remove a directory unless it is in use; under another name first, so that it is never there in part."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        if (path / _USED).exists():
            lock = stack.enter_context((path / _USED).open("rb"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        gone = Path(tempfile.mkdtemp(prefix=".removed-", dir=path.parent))
        path.rename(gone / path.name)
        shutil.rmtree(gone, ignore_errors=True)


@lru_cache(maxsize=8)
def _directory(cache: str | None, home: str | None, temporary: str) -> Path | None:
    root = _first_usable(cache, home, temporary)
    if root is None:
        return None
    try:
        path = root / code_digest()
    except OSError:  # the package is not in files that can be read, but in an archive for one
        return None
    if not (private_directory(path) and _is_usable(path)):
        return None
    _hold(path)
    return path


def _first_usable(cache: str | None, home: str | None, temporary: str) -> Path | None:
    """Return the first of the places that can be written to, if there is one."""
    # What is in the directory will be executed: no other user may be able to write to it.
    if cache or home:
        path = Path(cache or Path(str(home), ".cache"), "millstream", "code")
        if private_directory(path) and _is_usable(path) and is_trusted(path.parent):
            return path
    path = Path(temporary) / f"millstream-{os.getuid()}"
    if private_directory(path) and private_directory(path / "code") and _is_usable(path / "code"):
        return path / "code"
    return None


def _is_usable(path: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def _hold(path: Path) -> None:
    """Lock a directory until this process ends, and note that it has been used."""
    with contextlib.suppress(OSError):
        if path not in _held:
            _held[path] = (path / _USED).open("ab")
            atexit.register(_held[path].close)
            fcntl.flock(_held[path], fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.utime(path / _USED)


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return a digest of all that compiled code depends on."""
    digest = hashlib.sha256()
    for path, content in _sources()[0]:
        digest.update(f"{path.relative_to(PACKAGE)} {content}\n".encode())
    digest.update(f"{sys.version} {os.uname().machine} {_versions()} {_processor()}".encode())
    return digest.hexdigest()[:32]


Stamps = tuple[tuple[int, int], ...]


@lru_cache(maxsize=1)
def _sources() -> tuple[tuple[tuple[Path, str], ...], Stamps]:
    """Return the sources that are compiled, with a digest of each, and when they were written."""
    found: list[tuple[Path, str]] = []
    stamps: list[tuple[int, int]] = []
    for path in sorted(_files(str(PACKAGE))):
        with open(path, "rb") as file:  # noqa: PTH123 (some hundred files: a Path for each takes longer)
            stat, content = os.fstat(file.fileno()), file.read()
        if any(mark in content for mark in _MARKS):
            found.append((Path(path), hashlib.sha256(content).hexdigest()))
            stamps.append((stat.st_mtime_ns, stat.st_size))
    return tuple(found), tuple(stamps)


def _files(directory: str) -> Iterator[str]:
    for above, folders, names in os.walk(directory):
        folders[:] = [folder for folder in folders if folder != "__pycache__"]
        yield from (os.path.join(above, name) for name in names if name.endswith(".py"))  # noqa: PTH118


def _stamps(paths: tuple[Path, ...]) -> Stamps:
    stats = [path.stat() for path in paths]
    return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


def _versions() -> str:
    from importlib.metadata import version

    return " ".join(version(name) for name in ("numba", "llvmlite", "numpy"))


def _processor() -> str:
    """Return what the system tells of the processor: machines that share a disk may have different ones."""
    with contextlib.suppress(OSError):
        wanted = ("model name", "flags", "CPU part", "Features")
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))
    return ""
