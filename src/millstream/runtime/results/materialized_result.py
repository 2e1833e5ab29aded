"""The materialized result of a query: its current rows at one instant.

A micro-batch brings changes, each with the identity of its row. They are applied atomically, so that a reader
sees the result at one instant, and a batch that Spark repeats is applied once. With a directory, changes are
written to files before they are applied, and from time to time the whole result.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.analysis.queries.resolved_query import Arrangement
from millstream.kernels.core.timestamp_text import is_time, time_of_text, time_texts
from millstream.local.row_order import arranged
from millstream.plan.relation_variance import CHANGES, ISTREAM
from millstream.runtime.checkpoints.checkpoint_files import CheckpointFiles
from millstream.runtime.results import external_sort

_FEW = 1000
"""Number of stale rows below which the stored rows are not compacted."""

_UNTIL = b"until"
"""Metadata key of a file: the newest tuple when it was written."""

Identity = tuple[int, int]
Newest = Callable[[], pa.Scalar | None]
"""Returns the instant after which changes are held back, or None."""


class MaterializedResult:
    """The current rows of a result, in the order of their insertion unless it has one.

    ``keys`` are the columns that order changes, the most important one first; the first of them is the
    instant. ``marks`` are the column with the kind of change (positive for an insertion) and the two of the
    row's identity. Columns in ``hidden`` are not shown. ``rows`` is the kind of stream made of the changes.
    With an ``arrangement``, rows are shown in its order, and only those of its LIMIT.

    >>> schema = pa.schema([("x", "string"), ("t", "int64"), ("op", "int8"), ("i", "int64"), ("j", "int64")])
    >>> result = MaterializedResult(schema, ["t"], ("op", "i", "j"), hidden=["t", "op", "i", "j"])
    >>> columns = {"x": ["b", "a", "a"], "t": [2, 1, 3], "op": [1, 1, -1], "i": [7, 8, 8], "j": [0, 0, 0]}
    >>> result.apply(0, pa.table(columns, schema))
    >>> result.snapshot().to_pydict()
    {'x': ['b']}
    """

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        marks: tuple[str, str, str],
        hidden: Collection[str] = (),
        *,
        rows: str = ISTREAM,
        newest: Newest | None = None,
        kept_in: Path | None = None,
        done: int | None = None,
        arrangement: Arrangement | None = None,
    ) -> None:
        self._arrangement = arrangement
        self._schema = schema
        self._keys = list(keys)
        self._marks = marks
        self._hidden = frozenset(hidden)
        self._rows = rows
        self._newest = newest
        self._lock = threading.Lock()
        self._places: dict[Identity, int] = {}
        """Position of each current row among the stored ones."""

        self._stored: list[pa.Table] = []
        self._stored_rows = 0
        self._waiting = schema.empty_table()
        """Changes at instants after the newest tuple, held back until a newer tuple arrives."""

        self._until: pa.Scalar | None = None
        """The instant of the newest tuple, if known."""

        self._batch = -1
        self._followers: list[Callable[[pa.Table], None]] = []
        self._book = None if kept_in is None else _ChangeFiles(kept_in, done)
        if self._book is not None:
            for batch_id, table, until in self._book.read():
                self._until = None if until is None else latest([until], table[self._keys[0]].type)
                # A column without an alias is named by its text, which may be spelt differently now.
                self._advance(table.rename_columns(schema.names))
                self._batch = batch_id

    @property
    def schema(self) -> pa.Schema:
        return self._show(self._schema.empty_table()).schema

    @property
    def rows(self) -> int:
        shown = len(self._places)
        if self._arrangement is None:
            return shown
        behind = max(shown - self._arrangement.offset, 0)
        return behind if self._arrangement.limit is None else min(behind, self._arrangement.limit)

    def apply(self, batch_id: int, table: pa.Table) -> None:
        """Apply the changes of a micro-batch, unless it is a repetition."""
        table = table.cast(self._schema) if table.schema != self._schema else table
        newest = None if self._newest is None else self._newest()
        with self._lock:
            if batch_id <= self._batch:
                return
            self._until = self._until if newest is None else newest
            if self._book is not None and (table.num_rows or self._waiting.num_rows):
                self._book.note(batch_id, table, self._until)
            has_changed = self._advance(table)
            self._batch = batch_id
            if self._stored_rows > 2 * len(self._places) + _FEW:
                self._tidy()
            if self._book is not None and self._book.noted > 2 * len(self._places) + _FEW:
                rows = pa.concat_tables([self._present(), self._waiting])
                self._book.begin_anew(batch_id, rows, self._until)
        if has_changed:
            for take in self._followers:
                take(self.snapshot())

    def follow(self, take: Callable[[pa.Table], None]) -> None:
        """Call ``take`` with the current result, and after every batch that changes it."""
        take(self.snapshot())
        self._followers.append(take)

    def snapshot(self) -> pa.Table:
        """Return the current rows in the order of the result, or else of their insertion."""
        with self._lock:
            present = self._present()
        shown = self._show(present)
        return shown if self._arrangement is None else arranged(shown, self._arrangement)

    def stream_rows(self, changes: pa.Table) -> pa.Table:
        """Return the changes of a batch as rows of the query: insertions, deletions, or both with a sign."""
        enters = pc.greater(changes[self._marks[0]], 0)
        if self._rows != CHANGES:
            changes = changes.filter(enters if self._rows == ISTREAM else pc.invert(enters))
        else:
            op = pc.if_else(enters, pa.scalar("+"), pa.scalar("-"))
            changes = changes.add_column(0, pa.field("op", pa.string()), op)
        return changes.select([i for i, name in enumerate(changes.column_names) if name not in self._marks])

    def _advance(self, table: pa.Table) -> bool:
        """Apply the changes up to the newest tuple, and return whether there were any.

        After that instant rows only expire: at the end of the input those changes are never applied.
        """
        due = pa.concat_tables([self._waiting, table])
        if self._until is not None:
            is_due = pc.less_equal(due[self._keys[0]], self._until)
            self._waiting = due.filter(pc.invert(is_due)).combine_chunks()
            due = due.filter(is_due)
        else:
            self._waiting = self._schema.empty_table()
        self._take(external_sort.sort(due, self._keys).combine_chunks())
        return bool(due.num_rows)

    def _take(self, table: pa.Table) -> None:
        ops, first, second = (table[name].to_pylist() for name in self._marks)
        for number, (op, *identity) in enumerate(zip(ops, first, second, strict=True)):
            if op > 0:
                self._places[identity[0], identity[1]] = self._stored_rows + number
            else:
                self._places.pop((identity[0], identity[1]), None)
        if table.num_rows:
            self._stored.append(table)
            self._stored_rows += table.num_rows

    def _present(self) -> pa.Table:
        if not self._stored:
            return self._schema.empty_table()
        rows = np.sort(np.fromiter(self._places.values(), np.int64, len(self._places)))
        return pa.concat_tables(self._stored).take(pa.array(rows)).combine_chunks()

    def _tidy(self) -> None:
        """Drop the stored rows that have been deleted."""
        present = self._present()
        self._places, self._stored, self._stored_rows = {}, [], 0
        self._take(present)

    def _show(self, table: pa.Table) -> pa.Table:
        # By number, because a query may give two columns the same name.
        return table.select([i for i, name in enumerate(table.column_names) if name not in self._hidden])


def latest(times: Iterable[str], kind: pa.DataType) -> pa.Scalar | None:
    """Return the latest of times that are written as texts, as a value of a type.

    >>> latest(["2026-01-01T10:00:00", "2026-01-01T09:00:00"], pa.timestamp("us")).as_py().hour
    10
    >>> latest(["7", "12"], pa.int32()).as_py()
    12
    """
    if is_time(kind):
        numbers = [time_of_text(time.removesuffix("+00:00"), kind) for time in times]
        whole = pa.int64() if pa.types.is_timestamp(kind) else pa.int32()
        return pa.scalar(max(numbers), whole).cast(kind) if numbers else None
    values = [pa.scalar(time).cast(kind) for time in times]
    return max(values, key=lambda value: value.as_py(), default=None)


class _ChangeFiles:
    """A directory with the changes of each batch, and from time to time all rows (``whole``) instead."""

    def __init__(self, directory: Path, done: int | None) -> None:
        self._files = CheckpointFiles(directory, done)
        self.noted = 0
        """Rows of changes since all rows were written."""

    def read(self) -> Iterator[tuple[int, pa.Table, str | None]]:
        """Yield the last whole result of earlier runs and the changes after it, with the newest tuple."""
        files = self._files.paths
        # For one batch the whole result, which includes its changes, sorts last: "changes" < "whole".
        whole = max((i for i, path in enumerate(files) if _is_whole(path)), default=0)
        for path in itertools.islice(files, whole, None):
            with pa.memory_map(str(path)) as source:
                table = pa.ipc.open_file(source).read_all()
            self.noted += 0 if _is_whole(path) else table.num_rows
            until = (table.schema.metadata or {}).get(_UNTIL)
            table = table.replace_schema_metadata(None)
            yield int(path.name.split(".")[0]), table, None if until is None else until.decode()

    def note(self, batch_id: int, changes: pa.Table, newest: pa.Scalar | None) -> None:
        self._files.write(f"{batch_id:012}.changes.arrow", _as_of(changes, newest))
        self.noted += changes.num_rows

    def begin_anew(self, batch_id: int, rows: pa.Table, newest: pa.Scalar | None) -> None:
        before = [path.name for path in self._files.paths]
        self._files.write(f"{batch_id:012}.whole.arrow", _as_of(rows, newest))
        self._files.drop(before)
        self.noted = 0


def _as_of(table: pa.Table, newest: pa.Scalar | None) -> pa.Table:
    """Return a table with the newest tuple in its metadata."""
    return table if newest is None else table.replace_schema_metadata({_UNTIL: _written(newest)})


def _written(time: pa.Scalar) -> str:
    """Return a time as a text that ``latest`` can parse."""
    return time_texts(pa.array([time]))[0] if is_time(time.type) else str(time.as_py())


def _is_whole(path: Path) -> bool:
    return path.name.endswith(".whole.arrow")
