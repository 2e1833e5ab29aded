"""Arrow files that a checkpoint stores beside Spark's part, and a ledger with their number.

Files are named by the batch that wrote them and are written atomically, even if power is lost. The ledger
never counts more files than there are, so a removed file is detected.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa

from millstream.errors import ExecutionError
from millstream.files import write_whole

_LEDGER = "ledger.json"


class CheckpointFiles:
    """The Arrow files of a directory.

    ``done`` is the last batch that Spark will not run again, -1 if there is none, and None if it is unknown.
    Files of a batch that will be run again may be damaged; any other damaged or missing file is refused.
    """

    def __init__(self, directory: Path, done: int | None = None) -> None:
        self._directory = directory
        self._done = done
        try:
            begun = directory.is_dir()
            if not begun and done is not None and done >= 0:
                raise self._damaged(f"the directory is gone, with the results of batches up to {done}")
            directory.mkdir(parents=True, exist_ok=True)
            self._names = {path.name for path in directory.glob("*.arrow")}
            self._check(self._ledger() if begun else 0)
            self._note()
        except OSError as error:
            raise cannot_write(error, directory) from error

    @property
    def paths(self) -> list[Path]:
        """Return the files in the order of their batches."""
        return [self._directory / name for name in sorted(self._names)]

    def write(self, name: str, table: pa.Table) -> Path:
        """Write or overwrite a file."""

        def write(path: Path) -> None:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)

        path = self._directory / name
        try:
            write_whole(path, write)
            if name not in self._names:
                self._names.add(name)
                self._note()
        except OSError as error:
            raise cannot_write(error, self._directory) from error
        return path

    def drop(self, names: Collection[str]) -> None:
        gone = self._names.intersection(names)
        if not gone:
            return
        self._names -= gone
        try:
            self._note()
            for name in gone:
                (self._directory / name).unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(error, self._directory) from error

    def _note(self) -> None:
        text = json.dumps({"files": len(self._names)})
        write_whole(self._directory / _LEDGER, lambda path: path.write_text(text, encoding="utf-8"))

    def _ledger(self) -> int:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return int(json.loads((self._directory / _LEDGER).read_text(encoding="utf-8"))["files"])
        if self._done is not None and self._done >= 0:
            raise self._damaged(f"{_LEDGER} is missing or cannot be read")
        return 0

    def _check(self, counted: int) -> None:
        if len(self._names) < counted:
            raise self._damaged(f"{counted - len(self._names)} of {counted} files are missing")
        for name in sorted(self._names):
            batch = _batch(name)
            if batch is None:
                raise self._damaged(f"{name} is not a checkpoint file", "remove it")
            if self._done is not None and batch > self._done + 1:
                raise self._damaged(f"there is batch {batch}, but Spark's checkpoint ends at {self._done}")
            if not _is_whole(self._directory / name):
                if self._done is None or batch <= self._done or name.endswith(".whole.arrow"):
                    raise self._damaged(f"{name} is incomplete")
                # Spark has not committed the batch and will run it again.
                (self._directory / name).unlink()
                self._names.discard(name)

    def _damaged(self, reason: str, remedy: str | None = None) -> ExecutionError:
        return ExecutionError(
            f"the results kept in '{self._directory}' are damaged: {reason}",
            hint=remedy or "put back a copy of the whole checkpoint, or start with a new directory",
        )


def _batch(name: str) -> int | None:
    number = name.partition(".")[0]
    return int(number) if number.isdigit() else None


def _is_whole(path: Path) -> bool:
    try:
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            for i in range(reader.num_record_batches):
                reader.get_batch(i)
    except (pa.ArrowInvalid, OSError):
        return False
    return True


def cannot_write(error: OSError, directory: Path) -> ExecutionError:
    """Return the error for a directory that results cannot be written to."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ExecutionError(
            f"the disk is full: results cannot be kept in {directory}",
            hint="free some space, or set TMPDIR to a directory on a larger disk",
        )
    reason = os.strerror(error.errno) if error.errno else str(error)
    return ExecutionError(f"results cannot be kept in {directory}: {reason}")
