"""Shards kept between micro-batches, so that their state need not be read back from the state store.

Any Python worker of a machine may get the next micro-batch, so a worker leaves its shards in shared memory
for the others, under the next version of the state store; a shard of another version is not used. Pages are
read on access, and a worker's changes are private to it.

A shard in memory consists of objects, so it is pickled, and loading it executes code. So no shard is read
from or written to a directory that another user can write to. The durable state is in the state store, as
plain data.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import shutil
import struct
import tempfile
import time
from pathlib import Path

from millstream.files import is_trusted, private_directory
from millstream.stage.shard import Shard

_ALIGNMENT = 64
_FORGOTTEN_AFTER = 86_400.0
"""Seconds after which the leftovers of a run that was killed are removed."""

_known: dict[tuple[str, str], Shard] = {}


def recall(token: str, name: str, version: int) -> Shard | None:
    """Return the shard after that version, if it is in memory of this machine."""
    shard = _known.get((token, name))
    if shard is not None and shard.version == version:
        return shard
    path = _file(token, name, version)
    if not (is_trusted(_root()) and is_trusted(path.parent)):
        return None
    try:
        with path.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):
        return None
    view = memoryview(memory)
    (count,) = struct.unpack_from("<q", view)
    sizes = struct.unpack_from(f"<{count}q", view, 8)
    parts = []
    at = _aligned(8 + 8 * count)
    for size in sizes:
        parts.append(view[at : at + size])
        at = _aligned(at + size)
    loaded: Shard = pickle.loads(parts[0], buffers=parts[1:])
    return loaded


def remember(token: str, name: str, shard: Shard) -> None:
    """Keep a shard for the next micro-batch. Where there is no room for it, it is not kept."""
    _known[token, name] = shard
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(shard, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(body), *(buffer.raw() for buffer in buffers)]
    path = _file(token, name, shard.version)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    if not _make(path.parent):
        return
    try:
        with unfinished.open("wb") as file:
            file.write(struct.pack(f"<{len(parts) + 1}q", len(parts), *(part.nbytes for part in parts)))
            for part in parts:
                file.write(b"\0" * (_aligned(file.tell()) - file.tell()))
                file.write(part)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
    # The version before is needed again if this micro-batch fails after all.
    _file(token, name, shard.version - 2).unlink(missing_ok=True)


def place(token: str) -> Path:
    """Return the directory of a query in shared memory."""
    return _root() / token


def forget(token: str) -> None:
    """Remove the shards of a query that has ended."""
    for key in [key for key in _known if key[0] == token]:
        del _known[key]
    if is_trusted(_root()):
        shutil.rmtree(_root() / token, ignore_errors=True)


def _make(directory: Path) -> bool:
    """Make the directory of a query; whether it can be used."""
    if directory.exists():
        return is_trusted(_root()) and is_trusted(directory)
    if not (private_directory(_root()) and private_directory(directory)):
        return False
    for other in directory.parent.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - other.stat().st_mtime > _FORGOTTEN_AFTER:
                shutil.rmtree(other, ignore_errors=True)
    return True


def _file(token: str, name: str, version: int) -> Path:
    return _root() / token / f"{name}.{version}"


def _root() -> Path:
    memory = Path("/dev/shm")
    above = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    return above / f"millstream-{os.getuid()}"


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT
