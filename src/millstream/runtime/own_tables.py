"""Tables of a session's own: their rows in versions, kept with the checkpoint.

A change makes a new version of a table: its rows go to a new file, and then a manifest is replaced that names
the files of all tables and the statements that made them. So a kill leaves the state before or after a
statement, and a run that continues performs each statement once.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.catalog.entries import Table
from millstream.errors import ExecutionError
from millstream.files import write_whole
from millstream.kernels.core.arrow_types import arrow_type
from millstream.runtime.checkpoints.checkpoint_files import cannot_write
from millstream.types import Field

DIRECTORY = "+tables"
"""No query has this name: a plus stands between the names of queries that share a scan."""

_MANIFEST = "tables.json"
_FORMAT = 1

Follower = Callable[[str, pa.Table], None]
"""Takes the name of a table in lower case and its new rows."""


class OwnTables:
    """The rows of tables by name, in memory and, with a checkpoint, in files.

    >>> from millstream.catalog.entries import Stored
    >>> from millstream.types import INT
    >>> tables = OwnTables()
    >>> tables.create(Table("t", (Field("a", INT),), Stored()), "CREATE TABLE t (a INT)")
    >>> tables.change("T", pa.table({"a": pa.array([1], pa.int32())}), "INSERT INTO t VALUES (1)")
    >>> tables.rows("t").to_pydict()
    {'a': [1]}
    """

    def __init__(self, checkpoint: Path | None = None, follower: Follower = lambda name, rows: None) -> None:
        self._directory = None if checkpoint is None else checkpoint / DIRECTORY
        self._follower = follower
        self._rows: dict[str, pa.Table] = {}
        self._files: dict[str, dict[str, Any]] = {}
        self._statements: list[str] = []
        self._position = 0
        """Number of statements that this session has performed or skipped."""

        self._version = 0
        self._lock = threading.RLock()
        if self._directory is not None and self._directory.exists():
            self._read(self._directory)

    @property
    def all(self) -> Mapping[str, pa.Table]:
        """Return the rows of all tables, by name in lower case."""
        return self._rows

    def rows(self, name: str) -> pa.Table:
        found = self._rows.get(name.lower())
        if found is None:
            raise ExecutionError(f"table '{name}' has no rows in this session", hint="CREATE TABLE makes it")
        return found

    def skips(self, text: str) -> bool:
        """Return whether an earlier run has performed a statement, which is the next one of this run."""
        if self._position >= len(self._statements):
            return False
        if self._statements[self._position] != _digest(text):
            raise ExecutionError(
                f"statement {self._position + 1} on tables is not that of the run before, whose tables are in"
                f" '{self._directory}'",
                hint="each runs once for a checkpoint: add new ones after those of before, "
                "or start with a new directory",
            )
        self._position += 1
        return True

    def create(self, table: Table, text: str | None) -> None:
        """Make an empty table; ``text`` is the statement, or None if a later run performs it again."""
        self.change(table.name, stored_schema(table.schema or ()).empty_table(), text)

    def change(self, name: str, rows: pa.Table, text: str | None) -> None:
        """Replace the rows of a table."""
        with self._lock:
            key = name.lower()
            files = dict(self._files)
            if self._directory is not None:
                files[key] = self._written(key, rows)
            self._commit(files, text)
            self._rows[key] = rows
        self._follower(key, rows)

    def drop(self, name: str, text: str | None) -> None:
        with self._lock:
            key = name.lower()
            self._commit({other: file for other, file in self._files.items() if other != key}, text)
            self._rows.pop(key, None)

    # ------------------------------------------------------------ files

    def _written(self, key: str, rows: pa.Table) -> dict[str, Any]:
        """Write a version of a table to a new file; return what the manifest says of it."""
        assert self._directory is not None
        self._version += 1
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        content = sink.getvalue()
        name = f"{self._version:012}.arrow"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            write_whole(self._directory / name, lambda path: path.write_bytes(content))
        except OSError as error:
            raise cannot_write(error, self._directory) from None
        return {"table": key, "file": name, "digest": hashlib.sha256(content).hexdigest()}

    def _commit(self, files: dict[str, dict[str, Any]], text: str | None) -> None:
        statements = self._statements if text is None else [*self._statements, _digest(text)]
        if self._directory is not None:
            manifest = {"format": _FORMAT, "statements": statements, "tables": list(files.values())}
            try:
                self._directory.mkdir(parents=True, exist_ok=True)
                written = json.dumps(manifest, indent=1)
                write_whole(
                    self._directory / _MANIFEST, lambda path: path.write_text(written, encoding="utf-8")
                )
                used = {file["file"] for file in files.values()}
                for path in self._directory.glob("*.arrow"):
                    if path.name not in used:
                        path.unlink(missing_ok=True)
            except OSError as error:
                raise cannot_write(error, self._directory) from None
        self._files = files
        self._position += 0 if text is None else 1
        self._statements = statements

    def _read(self, directory: Path) -> None:
        """Read the tables of an earlier run."""
        path = directory / _MANIFEST
        if not path.exists() and not any(directory.glob("*.arrow")):
            return
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            files, self._statements = manifest["tables"], [str(one) for one in manifest["statements"]]
            known = manifest["format"]
            self._files = {file["table"]: dict(file) for file in files}
        except (OSError, ValueError, KeyError, TypeError):
            raise _damaged(directory, f"{_MANIFEST} is missing or cannot be read") from None
        if known != _FORMAT:
            raise _damaged(directory, "another version of Millstream has written them")
        for key, file in self._files.items():
            self._rows[key] = _content(directory, file)
            self._version = max(self._version, int(file["file"].partition(".")[0]))


def _content(directory: Path, file: Mapping[str, Any]) -> pa.Table:
    try:
        content = (directory / file["file"]).read_bytes()
    except OSError:
        raise _damaged(directory, f"{file['file']}, the rows of '{file['table']}', is missing") from None
    if hashlib.sha256(content).hexdigest() != file["digest"]:
        raise _damaged(directory, f"{file['file']}, the rows of '{file['table']}', has changed")
    return pa.ipc.open_file(pa.BufferReader(content)).read_all()


def _damaged(directory: Path, reason: str) -> ExecutionError:
    return ExecutionError(
        f"the tables kept in '{directory}' are damaged: {reason}",
        hint="put back a copy of the whole checkpoint, or start with a new directory",
    )


def _digest(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def stored_schema(fields: tuple[Field, ...]) -> pa.Schema:
    """Return the Arrow columns of a table."""
    return pa.schema([(field.name, arrow_type(field.type)) for field in fields])
