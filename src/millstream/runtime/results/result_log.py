"""The result log of one query: written by its batches, read while it runs or when it has ended.

A log is a list of Arrow tables, one for each micro-batch. A batch that Spark runs again replaces its table,
so that results are stored exactly once. Beyond a small amount of memory, tables are stored in files, which
are mapped into memory to be read.
"""

from __future__ import annotations

import bisect
import functools
import shutil
import tempfile
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from millstream.runtime.checkpoints.checkpoint_files import CheckpointFiles, cannot_write
from millstream.runtime.results import external_sort
from millstream.scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from types import TracebackType

MEMORY_LIMIT = 32 * 2**20
"""Bytes of results that a log stores in memory."""

CHUNK_ROWS = 65_536
"""Number of rows in a table that is read back."""


class ResultLog:
    """The results of a query, in the order of its batches and of `keys` within each.

    `keys` are the columns that order the rows, the most important one first. Columns in `hidden` serve only
    that purpose and are not shown. With `kept_in` results are written to that directory batch by batch, and
    the results of an earlier run are read from it; `done` is the last batch that Spark will not run again.

    >>> log = ResultLog(keys=["t"], hidden=["t"])
    >>> log.append(0, pa.table({"t": [2, 1], "x": ["b", "a"]}))
    >>> log.finish()
    >>> [batch.to_pydict() for batch in log.read()]
    [{'x': ['a', 'b']}]
    """

    def __init__(
        self,
        schema: pa.Schema | None = None,
        keys: Sequence[str] = (),
        hidden: Collection[str] = (),
        *,
        memory_limit: int = MEMORY_LIMIT,
        directory: Path | None = None,
        kept_in: Path | None = None,
        done: int | None = None,
    ) -> None:
        self._schema = schema
        self._keys = list(keys)
        self._hidden = frozenset(hidden)
        self._spool = _Spool(directory)
        self._memory_limit = memory_limit
        self._parts: dict[int, _Part] = {}
        self._batch_ids: list[int] = []
        self._in_memory: dict[int, pa.Table] = {}
        self._bytes = 0
        self._forgotten = 0
        self._changed = threading.Condition()
        self._ended = False
        self._error: BaseException | None = None
        self._kept = None if kept_in is None else _DurableFiles(kept_in, done, schema)
        if self._kept is not None:
            self._parts = self._kept.parts()
            self._batch_ids = sorted(self._parts)

    @property
    def schema(self) -> pa.Schema | None:
        """The schema for readers; unknown until the first batch unless it was passed."""
        return None if self._schema is None else self._show(self._schema.empty_table()).schema

    @property
    def rows(self) -> int:
        """Return the number of rows so far, including dropped ones."""
        with self._changed:
            return self._forgotten + sum(part.rows for part in self._parts.values())

    def append(self, batch_id: int, table: pa.Table) -> None:
        """Add the results of a micro-batch, or replace them if the batch is a repetition."""
        if self._schema is None:
            self._schema = table.schema
        if table.schema != self._schema:
            table = table.cast(self._schema)
        table = external_sort.sort(table, self._keys).combine_chunks()
        with self._changed:
            self._remove(batch_id)
            if table.num_rows:
                self._add(batch_id, table)
            self._changed.notify_all()

    def finish(self, error: BaseException | None = None) -> None:
        """Mark the log as complete, with the query's error if it failed; the first call counts."""
        with self._changed:
            if not self._ended:
                self._ended = True
                self._error = error
            self._changed.notify_all()

    def follow(self, *, forget: bool = False) -> Iterator[pa.Table]:
        """Yield the results as they come, batch by batch, until the query has ended.

        Raises the query's error after the last batch before it. With `forget`, a batch is dropped as soon as
        it has been yielded, so that an unbounded query does not fill the disk.
        """
        last = -1
        while (batch_id := self._wait_for_batch(after=last)) is not None:
            last = batch_id
            with self._changed:
                part = self._parts[batch_id]
                if forget:
                    self._remove(batch_id)
                    self._forgotten += part.rows
            table = self._show(part.load())
            # Only the table may keep a dropped batch in memory while it is used.
            del part
            yield table
            if forget and self._kept is not None:
                # Not before: a batch that was not yielded is available again after a restart.
                self._kept.drop(batch_id)
        self._raise()

    def read(self) -> Iterator[pa.Table]:
        """Yield all results in the order of the keys, once the query has ended; raises the query's error."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended)
        self._raise()
        parts = [self._parts[batch_id] for batch_id in self._batch_ids]
        if self._in_order(parts):
            for part in parts:
                table = part.load()
                for first in range(0, part.rows, CHUNK_ROWS):
                    yield self._show(table.slice(first, CHUNK_ROWS))
            return
        keys = pa.concat_tables(part.load().select(self._keys) for part in parts)
        order = external_sort.argsort(keys)
        # The keys are as large as all other data of this function.
        del keys
        loads = [functools.cache(part.load) for part in parts]
        for table in external_sort.gather(loads, [part.rows for part in parts], order, CHUNK_ROWS):
            yield self._show(table)

    def close(self) -> None:
        """Delete the results and their files."""
        with self._changed:
            self._parts.clear()
            self._batch_ids.clear()
            self._in_memory.clear()
            self._spool.close()
        self.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_for_batch(self, after: int) -> int | None:
        """Return the next batch, or None if the query has ended without one.

        A repeated batch that was yielded before has the same rows, and is not yielded again.
        """
        with self._changed:
            while True:
                at = bisect.bisect_right(self._batch_ids, after)
                if at < len(self._batch_ids):
                    return self._batch_ids[at]
                if self._ended:
                    return None
                self._changed.wait()

    def _add(self, batch_id: int, table: pa.Table) -> None:
        if self._kept is not None:
            self._parts[batch_id] = self._kept.write(batch_id, table)
            bisect.insort(self._batch_ids, batch_id)
            return
        bytes_after = self._bytes + _size(table)
        if bytes_after <= self._memory_limit:
            self._parts[batch_id] = _Part(table.num_rows, table)
            self._in_memory[batch_id] = table
            self._bytes = bytes_after
        else:
            # One file for all batches in memory: a file for each small batch would be too many.
            assert self._schema is not None
            self._parts.update(self._spool.write(self._schema, {**self._in_memory, batch_id: table}))
            self._in_memory.clear()
            self._bytes = 0
        bisect.insort(self._batch_ids, batch_id)

    def _remove(self, batch_id: int) -> None:
        if self._parts.pop(batch_id, None) is not None:
            self._batch_ids.pop(bisect.bisect_left(self._batch_ids, batch_id))
        table = self._in_memory.pop(batch_id, None)
        if table is not None:
            self._bytes -= _size(table)

    def _in_order(self, parts: Sequence[_Part]) -> bool:
        """Return whether the parts are in order one after the other; each is in order by itself."""
        if not self._keys:
            return True
        last: pa.Table | None = None
        for part in parts:
            keys = part.load().select(self._keys)
            if last is not None and not external_sort.in_order(pa.concat_tables([last, keys.slice(0, 1)])):
                return False
            last = keys.slice(part.rows - 1)
        return True

    def _show(self, table: pa.Table) -> pa.Table:
        # By number, because a query may give two columns the same name.
        return table.select([i for i, name in enumerate(table.column_names) if name not in self._hidden])

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


@dataclass(frozen=True)
class _Part:
    """The results of a batch: a table in memory, or record batches of a file."""

    rows: int
    table: pa.Table | None = None
    file: _File | None = None
    numbers: range = range(0)
    names: tuple[str, ...] | None = None
    """Names of the columns, if they differ from those in the file."""

    def load(self) -> pa.Table:
        if self.table is not None:
            return self.table
        assert self.file is not None
        reader = self.file.reader
        table = pa.Table.from_batches([reader.get_batch(i) for i in self.numbers], reader.schema)
        return table if self.names is None else table.rename_columns(list(self.names))


class _File:
    """A file of record batches; unless ``stays``, it is removed when no part needs it any more."""

    def __init__(self, path: Path, *, stays: bool = False) -> None:
        self.reader = pa.ipc.open_file(pa.memory_map(str(path)))
        if stays:
            return
        weakref.finalize(self, path.unlink, missing_ok=True)


class _Spool:
    """A directory for the files of a log, created when it is needed and removed with the log."""

    def __init__(self, above: Path | None) -> None:
        self._above = above
        self._directory: Path | None = None
        self._remove: weakref.finalize[..., _Spool] | None = None
        self._files = 0

    def write(self, schema: pa.Schema, tables: dict[int, pa.Table]) -> dict[int, _Part]:
        """Write tables atomically into a new file and return the position of each."""
        unfinished: Path | None = None
        try:
            path = self._new_path()
            unfinished = path.with_suffix(".unfinished")
            numbers: dict[int, range] = {}
            count = 0
            with pa.OSFile(str(unfinished), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
                for batch_id, table in tables.items():
                    batches = table.to_batches()
                    for batch in batches:
                        writer.write_batch(batch)
                    numbers[batch_id] = range(count, count + len(batches))
                    count += len(batches)
            unfinished.replace(path)
        except OSError as error:
            if unfinished is not None:
                unfinished.unlink(missing_ok=True)
            raise cannot_write(
                error, self._directory or self._above or Path(tempfile.gettempdir())
            ) from error
        file = _File(path)
        return {i: _Part(tables[i].num_rows, None, file, numbers[i]) for i in tables}

    def close(self) -> None:
        if self._remove is not None:
            self._remove()
        self._directory = None

    def _new_path(self) -> Path:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="results-", dir=self._above or scratch()))
            self._remove = weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        self._files += 1
        return self._directory / f"{self._files:06}.arrow"


class _DurableFiles:
    """A directory with a permanent file for every batch.

    A column without an alias is named by its text, which may be spelt differently than when the file was
    written: columns get the names of the present ``schema``.
    """

    def __init__(self, directory: Path, done: int | None, schema: pa.Schema | None) -> None:
        self._files = CheckpointFiles(directory, done)
        self._names = None if schema is None else tuple(schema.names)

    def parts(self) -> dict[int, _Part]:
        """Return the results of earlier runs."""
        return {int(path.stem): self._part(path) for path in self._files.paths}

    def write(self, batch_id: int, table: pa.Table) -> _Part:
        return self._part(self._files.write(_name(batch_id), table))

    def drop(self, batch_id: int) -> None:
        self._files.drop([_name(batch_id)])

    def _part(self, path: Path) -> _Part:
        file = _File(path, stays=True)
        batches = range(file.reader.num_record_batches)
        rows = sum(file.reader.get_batch(i).num_rows for i in batches)
        same = self._names is None or len(self._names) != len(file.reader.schema)
        return _Part(rows, None, file, batches, None if same else self._names)


def _name(batch_id: int) -> str:
    return f"{batch_id:012}.arrow"


def _size(table: pa.Table) -> int:
    # A table of a few rows takes more memory than its rows.
    return int(table.nbytes + 1024 * table.num_columns)
