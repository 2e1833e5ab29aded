"""Packer: turns the rows of a task into a few large blobs, one for each shard.

Spark regroups rows one by one in Python, so it gets few rows. A blob has the tuples of its shard. Its head
has the number of rows and the largest time of every piece of the input, with or without tuples of the shard,
so that every shard can follow the progress of every source partition by itself.
"""

from __future__ import annotations

import itertools
import json
import time as clock
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.jit import njit
from millstream.kernels.column_names import KEY, KEY2, PART, PART2, PLACED
from millstream.kernels.windows.time_codec import has_value, instants
from millstream.progress.piece import minus, newest_before, smallest
from millstream.stage.pipeline import (
    COUNTED,
    FILE,
    KEEP,
    MARK,
    NUMBER,
    ORIGIN,
    PARTITION,
    SEGMENT,
    TIME,
    Input,
)

POSITION, BROKEN, BEFORE = "__ms_position", "__ms_broken", "__ms_before"
"""Columns of a blob: the number of a tuple in its piece; whether it breaks a promise made in the piece
itself; or (for generous streams, which must know what was promised) the newest time before it in it."""

# Of `all` there is one of two things: the time of every row, with what else tells which are late, or that of
# the rows that the pipeline does not want. Late ones among these are counted, by the first shard.
PACKED = pa.schema(
    [("shard", pa.int64()), ("head", pa.string()), ("tuples", pa.binary()), ("all", pa.binary())]
)
"""The output columns of a packer."""
PACKED_DDL = "shard BIGINT, head STRING, tuples BINARY, all BINARY"

FULL_ROWS = 1 << 16
"""Blobs of a megabyte or two. Larger ones cost more a byte on each of the many times that they are copied on
their way through the JVM: it takes memory for them from the system, and touches all of it for the first time.
"""


@dataclass
class _Piece:
    """A stretch of one segment of a source partition, as far as this task has read it."""

    order: tuple[Any, ...]
    rows: int = 0
    newest: Any = None
    all: list[pa.RecordBatch] = field(default_factory=list)
    rest: list[pa.RecordBatch] = field(default_factory=list)


class Packer:
    """Packs one input of one pipeline for its shards.

    ``shards`` are the ids under which the shards of the pipeline are known to Spark; ``number`` is that of
    the input among the inputs of its pipeline. A blob is full with so many rows.
    """

    def __init__(self, source: Input, number: int, shards: tuple[int, ...], full: int = FULL_ROWS) -> None:
        self._full = full
        self._input = source
        self._number = number
        self._shards = shards
        self._pieces: dict[tuple[Any, ...], _Piece] = {}
        self._parts: list[list[tuple[int, pa.RecordBatch]]] = [[] for _ in shards]
        self._order: list[_Piece] = []
        self._rows = 0
        self._flushed = 0
        self._marks: list[str] = []
        self._turn = 0
        self._bad = 0
        self._seconds = 0.0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take rows in order of reading; full blobs come out."""
        began = clock.perf_counter()
        batch = self._part_marks(batch) if self._input.chained else self._part_untimed(batch)
        if batch.num_rows:
            time = instants(batch.column(TIME))
            for start, end in _runs(batch):
                self._add_run(batch.slice(start, end - start), time[start:end])
            self._rows += batch.num_rows
        self._seconds += clock.perf_counter() - began
        if self._rows >= self._full:
            yield from self.flush()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Return the remaining blobs after the last row of the task."""
        if self._order or self._marks or self._bad:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        pieces = [piece for piece in self._order if piece.rows]
        index = {id(piece): i for i, piece in enumerate(pieces)}
        everything = _ipc([b for piece in pieces for b in piece.all])
        rest = _ipc([b for piece in pieces for b in piece.rest])
        unwanted = [sum(b.num_rows for b in piece.rest) for piece in pieces]
        rows = []
        for shard, parts in zip(self._shards, self._parts, strict=True):
            first = shard == self._shards[0]
            counts = [0] * len(pieces)
            # Tuples of a piece stay together and in order, whatever was read between them.
            parts.sort(key=lambda part: index[part[0]])
            for piece_id, part in parts:
                counts[index[piece_id]] += part.num_rows
            head = {
                "input": self._number,
                "flush": self._flushed,
                "first": first,
                "pieces": [
                    [*p.order, p.rows, p.newest, n, m if first else 0]
                    for p, n, m in zip(pieces, counts, unwanted, strict=True)
                ],
                "marks": self._marks,
                "pack_ms": round(self._seconds * 1000, 3),
                "bad": self._bad if first else 0,
            }
            tuples = _ipc([part for _, part in parts])
            rows.append((shard, json.dumps(head), tuples, everything or (rest if first else None)))
        self._parts = [[] for _ in self._shards]
        for piece in pieces:
            piece.rows, piece.all, piece.rest = 0, [], []
        self._order, self._marks, self._rows, self._bad = [], [], 0, 0
        self._flushed += 1
        self._seconds = 0.0
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(column, kind.type)
                for column, kind in zip(zip(*rows, strict=True), PACKED, strict=True)
            ],
            schema=PACKED,
        )

    def _part_marks(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        marks = batch.column(MARK)
        if marks.null_count == len(marks):
            return batch
        self._marks += [mark for mark in marks.to_pylist() if mark is not None]
        return batch.filter(pc.is_null(marks))

    def _part_untimed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Remove rows without a timestamp, except punctuation that ends a sub-stream."""
        if self._input.stamp is None:
            return batch
        time = batch.column(self._input.stamp)
        if not time.null_count or any(line.promise in batch.schema.names for line in self._input.lines):
            return batch
        self._bad += time.null_count
        return batch.filter(pc.is_valid(time))

    def _add_run(self, batch: pa.RecordBatch, time: npt.NDArray[Any]) -> None:
        """Add rows of one segment."""
        order = _order(batch)
        piece = self._pieces.setdefault(order, _Piece(order))
        if piece.rows == 0:
            self._order.append(piece)
        first = piece.rows
        piece.rows += batch.num_rows
        columns = [batch.column(name) for name in self._input.columns.names]
        names = list(self._input.columns.names)
        columns.append(pa.array(time))
        names.append(TIME)
        if self._input.chained:
            latest = time.max().item()
            piece.newest = latest if piece.newest is None else max(piece.newest, latest)
            columns += [batch.column(ORIGIN), batch.column(NUMBER)]
            names += [ORIGIN, NUMBER]
        else:
            columns.append(pa.array(np.arange(first, first + batch.num_rows, dtype=np.int32)))
            names.append(POSITION)
            self._follow(piece, batch, time, columns, names)
        tuples = pa.RecordBatch.from_arrays(columns, names)
        kept = self._kept(batch)
        if kept is not None and self._input.judged_by_piece and not self._input.chained:
            judged = [name for name in (TIME, BROKEN, BEFORE) if name in names]
            piece.rest.append(tuples.select(judged).filter(pa.array(~kept)))
        shards = self._shards_of(tuples) if len(self._shards) > 1 else None
        if shards is None:
            self._turn += self._input.spread
            part = tuples if kept is None else tuples.filter(pa.array(kept))
            self._parts[self._turn % len(self._shards)].append((id(piece), part))
            return
        counts, indices = by_shard(
            shards, np.ones(len(shards), np.bool_) if kept is None else kept, len(self._shards)
        )
        tuples = tuples.take(pa.array(indices))
        start = 0
        for shard, count in enumerate(counts.tolist()):
            if count:
                self._parts[shard].append((id(piece), tuples.slice(start, count)))
            start += count

    def _follow(
        self,
        piece: _Piece,
        batch: pa.RecordBatch,
        time: npt.NDArray[Any],
        columns: list[pa.Array],
        names: list[str],
    ) -> None:
        """Return the columns that shards need to find late tuples."""
        if not self._input.judged_by_piece:
            names = [n for line in self._input.lines for n in (line.column, line.substream, line.promise)]
            names += [COUNTED] if self._input.counted else []
            piece.all.append(batch.select([name for name in names if name in batch.schema.names]))
            return
        lowest = smallest(time)
        before = newest_before(time, lowest if piece.newest is None else piece.newest)
        piece.newest = max(before[-1], time[-1]).item()
        if self._input.promises.generous:
            columns.append(pa.array(before))
            names.append(BEFORE)
        else:
            slack = self._input.promises.slack
            assert slack is not None
            columns.append(pa.array(time < minus(before, slack)))
            names.append(BROKEN)

    def _kept(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the rows that satisfy the pipeline's conditions and are no punctuation.

        Where windows use an attribute that is not the timestamp, tuples without a value of it are in no
        window, unless windows count all tuples.
        """
        kept = _mask(batch.column(KEEP)) if KEEP in batch.schema.names else None
        if self._input.attribute is None or self._input.chained or PLACED in self._input.columns.names:
            return kept
        placed = _mask(has_value(batch.column(TIME)))
        return placed if kept is None else kept & placed

    def _shards_of(self, tuples: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        names = tuples.schema.names
        if PART in names:
            part, part2 = _integers(tuples.column(PART)), _integers(tuples.column(PART2))
            return spread(part, part2, len(self._shards))
        if self._input.key is not None:
            return spread(_integers(tuples.column(self._input.key)), None, len(self._shards))
        if KEY not in names:
            return None
        second = _integers(tuples.column(KEY2)) if KEY2 in names else None
        return spread(_integers(tuples.column(KEY)), second, len(self._shards))


def pack(batches: Iterable[pa.RecordBatch], packers: Mapping[str, Packer]) -> Iterator[pa.RecordBatch]:
    """Pack all rows of a task for all pipelines that read this input.

    Columns that concern one pipeline only have the prefix under which it is given.
    """
    for batch in batches:
        for prefix, packer in packers.items():
            yield from packer.add(_routed(batch, prefix, packers))
    for packer in packers.values():
        yield from packer.finish()


def _routed(batch: pa.RecordBatch, prefix: str, prefixes: Iterable[str]) -> pa.RecordBatch:
    """Return the columns for one pipeline."""
    if not prefix:
        return batch
    others = tuple(other for other in prefixes if other != prefix)
    names = [name for name in batch.schema.names if not name.startswith(others)]
    return batch.select(names).rename_columns([name.removeprefix(prefix) for name in names])


def note(marks: dict[str, Any], number: int, shards: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Return blobs without tuples that carry a mark about an input to all shards."""
    head = json.dumps(
        {"input": number, "flush": 0, "first": False, "pieces": [], "marks": [json.dumps(marks)]}
    )
    return ((shard, head) for shard in shards)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield the bounds of segments."""
    cuts: npt.NDArray[np.bool_] | None = None
    for name in (PARTITION, SEGMENT, FILE):
        if name not in batch.schema.names:
            continue
        column = batch.column(name)
        if pa.types.is_string(column.type):
            changed = np.asarray(pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)))
        else:
            numbers = np.asarray(column)
            if numbers[0] == numbers[-1] and name == SEGMENT and FILE not in batch.schema.names:
                # Segments are read one after the other, so equal ends mean that there is one only.
                continue
            changed = numbers[1:] != numbers[:-1]
        cuts = changed if cuts is None else cuts | changed
    bounds = (
        [0, *(np.flatnonzero(cuts) + 1).tolist(), batch.num_rows] if cuts is not None else [0, batch.num_rows]
    )
    yield from itertools.pairwise(bounds)


def _order(batch: pa.RecordBatch) -> tuple[Any, ...]:
    """Return the place of a segment in its source partition."""
    names = batch.schema.names
    return tuple(
        batch.column(name)[0].as_py() if name in names else default
        for name, default in ((PARTITION, 0), (SEGMENT, 0), (FILE, ""))
    )


def _mask(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)


def _integers(column: pa.Array) -> npt.NDArray[np.int64]:
    column = column.cast(pa.int64())
    return np.asarray(pc.fill_null(column, 0) if column.null_count else column)


def spread(
    first: npt.NDArray[np.int64], second: npt.NDArray[np.int64] | None, shards: int
) -> npt.NDArray[np.int64]:
    """Return the shard of each tuple, by its key."""
    out: npt.NDArray[np.int64] = _hashed(first, first[:0] if second is None else second, shards)
    return out


@njit(cache=True)
def _hashed(first, second, shards):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return shards of keys by the finaliser of MurmurHash 3, which spreads small integers well."""
    out = np.empty(len(first), np.int64)
    for i in range(len(first)):
        h = np.uint64(first[i])
        if len(second):
            h ^= np.uint64(second[i]) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(33)
        h *= np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(33)
        h *= np.uint64(0xC4CEB9FE1A85EC53)
        h ^= h >> np.uint64(33)
        out[i] = np.int64(h % np.uint64(shards))
    return out


@njit(cache=True)
def by_shard(shards, kept, count):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the indices of the kept rows, shard by shard, each in order."""
    counts = np.zeros(count, np.int64)
    for i in range(len(shards)):
        if kept[i]:
            counts[shards[i]] += 1
    starts = np.zeros(count, np.int64)
    for s in range(1, count):
        starts[s] = starts[s - 1] + counts[s - 1]
    indices = np.empty(counts.sum(), np.int64)
    for i in range(len(shards)):
        if kept[i]:
            s = shards[i]
            indices[starts[s]] = i
            starts[s] += 1
    return counts, indices


def _ipc(batches: list[pa.RecordBatch]) -> bytes | None:
    if not batches:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    out: bytes = sink.getvalue().to_pybytes()
    return out
