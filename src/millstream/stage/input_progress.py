"""InputProgress: judges the tuples in the blobs of a micro-batch, and computes the frontier of an input.

Every shard does this by itself from the same heads, so all shards agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.column_names import KEY
from millstream.kernels.core.kernel import BEGINNING, END, STREAM, Frontier, Times, Tuples
from millstream.kernels.core.sort_keys import sort_key
from millstream.kernels.core.tuple_batch import frontier_as_data, frontier_from_data
from millstream.kernels.windows.time_codec import has_value, instants, is_float
from millstream.progress.piece import Verdict
from millstream.progress.plain_data import as_data, from_data
from millstream.progress.watermark_tracker import Tracker
from millstream.stage.attribute_progress import (
    AttributeProgress,
    AttributeVerdicts,
    judged,
    numbered,
    promises_in,
)
from millstream.stage.blob import ENDED, Blob, ShippedPiece
from millstream.stage.late_tuples import JudgedTuples, all_late, spared
from millstream.stage.packer import BEFORE, BROKEN, POSITION
from millstream.stage.pipeline import COUNTED, NUMBER, ORIGIN, ORIGINS_PER_INPUT, TIME, Input

_NUMBERS = ("rows", "late", "seen", "bad", "newest", "newest_stamp")
"""Attributes of ``InputProgress`` that are numbers and part of the state."""


@dataclass
class _Partition:
    """A source partition: the number of its rows, and the progress of each attribute."""

    lines: tuple[AttributeProgress, ...]
    arrived: int = 0

    @property
    def tracker(self) -> Tracker:
        """The tracker of the windows' attribute."""
        return self.lines[0].tracker


class InputProgress:
    """The progress of one input of a pipeline."""

    def __init__(self, source: Input, number: int) -> None:
        self._input = source
        first = source.first_origin
        self._base = number * ORIGINS_PER_INPUT if first is None else first
        self._partitions: dict[int, _Partition] = {}
        self._shards_heard: dict[str, Frontier] = {}
        self._shards_reached: dict[str, Frontier] = {}
        self._shards_spoke_last = False
        """True if the previous stage ended by punctuation of its inputs."""
        self._ended = False
        self.rows = 0
        """Tuples of this shard."""
        self.late = 0
        self.seen = 0
        """Rows of the input, tuples or not; the first shard counts those of all."""
        self.bad = 0
        self._streams: dict[Any, int] = {}
        """Numbers of the sub-streams of all partitions, where kernels use them."""
        self._stamp: int | None = None
        """The last instant assigned to a tuple of a latent stream."""
        self.newest: Any = None
        """The largest time of a tuple."""
        self.newest_stamp: Any = None
        """The largest timestamp of a tuple, where windows use another attribute."""

    @property
    def frontier(self) -> Frontier:
        """The watermark of this input."""
        if self._ended:
            return END
        if self._input.chained:
            return min(self._shards_heard.values(), default=BEGINNING)
        return END if self._has_last_word else self._promised

    @property
    def _has_last_word(self) -> bool:
        """True if punctuation has ended every source partition.

        Then windows that only the end of the input completes are complete.
        """
        if self._input.chained:
            return self._shards_spoke_last
        partitions = self._partitions.values()
        if not self._partitions or len(self._partitions) < self._input.partitions:
            return False
        return all(partition.tracker.has_last_word for partition in partitions)

    @property
    def reached(self) -> Frontier:
        """The watermark without the end of this input, which causes no partial results."""
        if self._has_last_word:
            return END
        if self._input.chained:
            return min(self._shards_reached.values(), default=BEGINNING)
        if self._input.stored:
            return BEGINNING if self.newest is None else Frontier(self.newest, self._base)
        return self._promised

    @property
    def before_last_word(self) -> Frontier:
        """The largest watermark of this input before punctuation ended its last source partition.

        An ended partition does not hold the watermark back, so any partition may have been the last.
        """
        if self._input.chained:
            return min(self._shards_reached.values(), default=BEGINNING)
        timed = (Frontier(p.tracker.timed, self._base + n) for n, p in self._partitions.items())
        return max(timed, default=BEGINNING)

    @property
    def _promised(self) -> Frontier:
        if len(self._partitions) < self._input.partitions:
            return BEGINNING
        return min(Frontier(p.tracker.promised, self._base + n) for n, p in self._partitions.items())

    @property
    def own(self) -> Times | None:
        """The watermark of each sub-stream over all source partitions."""
        if not self._input.apart or len(self._partitions) < self._input.partitions:
            return None
        kind = np.float64 if is_float(self._input.time_type) else np.int64
        promised: list[Any] = []
        for partition in self._partitions.values():
            self._number(partition)
        for partition in self._partitions.values():
            followed = partition.lines[0]
            all_ = np.full(len(self._streams), partition.tracker.promised, kind)
            numbers = [self._streams[stream] for stream in followed.codes]
            all_[numbers] = partition.tracker.of_streams(len(numbers))
            promised.append(all_)
        return np.minimum.reduce(promised) if promised else None

    @property
    def state_rows(self) -> int:
        return sum(
            1 + sum(len(followed.codes) for followed in partition.lines)
            for partition in self._partitions.values()
        )

    def as_data(self) -> dict[str, Any]:
        """Return the state as plain data for JSON."""
        return {
            "partitions": [
                [number, partition.arrived, [followed.as_data() for followed in partition.lines]]
                for number, partition in self._partitions.items()
            ],
            "heard": {shard: frontier_as_data(heard) for shard, heard in self._shards_heard.items()},
            "reached": {shard: frontier_as_data(heard) for shard, heard in self._shards_reached.items()},
            "spoke_last": self._shards_spoke_last,
            "ended": self._ended,
            "streams": list(self._streams),
            "stamp": self._stamp,
            **{name: as_data(getattr(self, name)) for name in _NUMBERS},
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Read the state back."""
        for number, arrived, lines in data["partitions"]:
            partition = self._partition(number)
            partition.arrived = arrived
            for followed, written in zip(partition.lines, lines, strict=True):
                followed.restore(written)
        self._shards_heard = {shard: frontier_from_data(heard) for shard, heard in data["heard"].items()}
        self._shards_reached = {shard: frontier_from_data(heard) for shard, heard in data["reached"].items()}
        self._shards_spoke_last = data["spoke_last"]
        self._ended = data["ended"]
        self._streams = {stream: number for number, stream in enumerate(data["streams"])}
        self._stamp = data["stamp"]
        for name in _NUMBERS:
            setattr(self, name, from_data(data[name]))

    def take(self, blobs: Iterable[Blob]) -> JudgedTuples:
        """Judge the tuples of all blobs of a micro-batch; marks take effect after all tuples.

        A tuple of an input that has ended is late.
        """
        found = JudgedTuples()
        pieces: list[ShippedPiece] = []
        marks: list[Any] = []
        for blob in blobs:
            marks += blob.marks
            self.bad += blob.bad
            self.seen += blob.bad
            pieces += blob.pieces(judged_by_piece=self._input.judged_by_piece)
        pieces.sort(key=lambda piece: piece.order)
        for piece in pieces:
            self.rows += 0 if piece.part is None else piece.part.num_rows
            self.seen += piece.rows if piece.first else 0
            if self._input.chained:
                self._note(piece.newest)
            else:
                self._judge(piece, found)
        parts = [piece.part for piece in pieces if piece.part is not None]
        if self._input.chained and parts:
            found.in_time.append(self._settled(parts))
        for mark in marks:
            self._hear(mark)
        return found

    def _stamped(self, piece: ShippedPiece) -> ShippedPiece:
        """Return a piece of a latent stream with an instant for each tuple: the clock, or the next instant.

        All shards get all pieces in the same order, so they agree.
        """
        clock = piece.newest if self._input.judged_by_piece else _largest(_of(piece.whole).column(TIME))
        first = clock if self._stamp is None else max(clock, self._stamp + 1)
        self._stamp = first + piece.rows - 1
        part, whole = piece.part, piece.whole
        if part is not None:
            positions = np.asarray(part.column(POSITION).combine_chunks()).astype(np.int64)
            part = _with_time(part, first + positions)
        # Tuples that the pipeline filters out are shipped only to find late ones, and none of these is late.
        by_piece = self._input.judged_by_piece
        whole = None if by_piece else _with_time(_of(whole), first + np.arange(piece.rows))
        return replace(piece, newest=self._stamp, part=part, whole=whole)

    def _judge(self, piece: ShippedPiece, found: JudgedTuples) -> None:
        """Judge the next piece of a source partition."""
        if self._input.latent:
            piece = self._stamped(piece)
        number, part, whole = piece.order[0], piece.part, piece.whole
        partition = self._partition(number)
        verdict: AttributeVerdicts | None = None
        if self._input.judged_by_piece:
            if whole is not None:
                self.late += int(self._verdict(partition, whole).late.sum())
            if part is not None:
                verdict = spared(self._verdict(partition, part), generous=self._input.promises.generous)
                self.late += int(verdict.late.sum())
            # After a heartbeat even the newest tuple may be late.
            if piece.newest >= partition.tracker.promised and not self._ended:
                self._note(piece.newest)
            # No two tuples of a latent stream have the same instant.
            partition.tracker.pass_over(piece.newest + self._input.latent)
        else:
            assert whole is not None
            full = judged(partition.lines, whole)
            if self._ended:
                promises = promises_in(whole, self._input.lines)
                full = all_late(whole.num_rows, promises, self._highest(partition))
            self._note_newest(whole, full)
            # All shards judge all rows; the first one counts them.
            self.late += int(full.late.sum()) if piece.first else 0
            if part is not None:
                at = np.asarray(part.column(POSITION).combine_chunks())
                verdict = full.take(at)
                if self._input.apart:
                    part = part.append_column(STREAM, pa.array(self._numbers(partition, whole)[at]))
        if part is not None and verdict is not None:
            time = instants(part.column(TIME))
            positions = np.asarray(part.column(POSITION).combine_chunks()).astype(np.int64)
            origin = np.full(len(time), self._base + number, np.int32)
            found.add(Tuples(self._columns(part), time, origin, positions + partition.arrived), verdict)
        partition.arrived += piece.rows

    def _highest(self, partition: _Partition) -> Any:
        """The watermark at the end of the input, as a NumPy number of the attribute."""
        kind = np.float64 if is_float(self._input.time_type) else np.int64
        return kind(partition.tracker.highest)

    def _numbers(self, partition: _Partition, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Return the numbers of the sub-streams of rows."""
        self._number(partition)
        return numbered(rows.column(partition.lines[0].line.substream), self._streams)

    def _number(self, partition: _Partition) -> None:
        for stream in partition.lines[0].codes:
            self._streams.setdefault(stream, len(self._streams))

    def _note_newest(self, whole: pa.Table, full: AttributeVerdicts) -> None:
        """Note the newest time of tuples in time; punctuation does not count."""
        counts = ~full.late | full.spared
        promises = promises_in(whole, self._input.lines)
        if promises is not None:
            counts &= ~promises
        if self._input.counted:
            counts &= _mask(whole.column(COUNTED))
        if not counts.all():
            whole = whole.filter(pa.array(counts))
        newest = _largest(whole.column(TIME))
        if newest is not None:
            self._note(newest)
        stamp = self._input.stamp
        if stamp is not None and stamp != TIME:
            latest = [self.newest_stamp, _largest(whole.column(stamp))]
            self.newest_stamp = max((one for one in latest if one is not None), default=None)

    def _note(self, newest: Any) -> None:
        self.newest = newest if self.newest is None else max(self.newest, newest)

    def _verdict(self, partition: _Partition, part: pa.Table) -> Verdict:
        time = instants(part.column(TIME))
        if self._ended:
            return Verdict(np.ones(len(time), np.bool_), np.full_like(time, partition.tracker.highest))
        if BEFORE in part.column_names:
            return partition.tracker.judge(time, newest=instants(part.column(BEFORE)))
        return partition.tracker.judge(time, broken=_mask(part.column(BROKEN)))

    def _settled(self, parts: list[pa.Table]) -> Tuples:
        """Return tuples of another stage, with ties in the order of their groups or in that of the stage."""
        part = pa.concat_tables(parts)
        if self._input.ties:
            # As Spark sorts, and as results are sorted at the end: NULL comes first.
            names = (TIME, *self._input.ties, ORIGIN, NUMBER)
            keys = pa.table({name: sort_key(part.column(name)) for name in names})
            order = [(name, "ascending", "at_start") for name in names]
            part = part.take(pc.sort_indices(keys, sort_keys=order))
        origin = np.asarray(part.column(ORIGIN).combine_chunks()).astype(np.int32) + np.int32(self._base)
        number = np.asarray(part.column(NUMBER).combine_chunks()).astype(np.int64)
        if self._input.ties:
            number = np.arange(self.rows - len(number), self.rows, dtype=np.int64)
        return Tuples(self._columns(part), instants(part.column(TIME)), origin, number)

    def _columns(self, part: pa.Table) -> pa.Table:
        names = [*self._input.columns.names, *((STREAM,) if self._input.apart else ())]
        columns = part.select(names)
        if self._input.key is not None and KEY not in columns.column_names:
            columns = columns.append_column(KEY, part.column(self._input.key).cast(pa.int64()))
        return columns

    def _partition(self, number: int) -> _Partition:
        if number not in self._partitions:
            self._partitions[number] = _Partition(tuple(map(AttributeProgress.of, self._input.lines)))
        return self._partitions[number]

    def _hear(self, mark: Any) -> None:
        """Apply a mark: a heartbeat, the end, or the frontier of a shard of the previous stage."""
        if mark.get("kind") == ENDED:
            self._ended = True
        elif self._input.chained:
            shard = mark["shard"]
            if self._shards_heard.get(shard) != END:
                self._shards_reached[shard] = self._frontier_of(mark["reached"])
            self._shards_heard[shard] = END if mark["end"] else self._frontier_of(mark["frontier"])
            self._shards_spoke_last = mark["last_word"]
            # Every shard of a stage reports in every batch.
            self._ended = all(heard == END for heard in self._shards_heard.values())
        else:
            # A heartbeat includes partitions without tuples so far.
            for number in {*range(self._input.partitions), *self._partitions}:
                for followed in self._partition(number).lines:
                    if followed.line.attribute == mark.get("on"):
                        followed.tracker.heartbeat(mark["time"])

    def _frontier_of(self, written: list[Any] | None) -> Frontier:
        """Return the frontier of a shard of the previous stage, with origins of this input."""
        if written is None:
            return BEGINNING
        time, origin = written
        return Frontier(time, origin + self._base)


def _largest(column: pa.ChunkedArray) -> Any:
    """Return the largest time as a number, or None."""
    numbers = instants(column.filter(has_value(column)))
    return numbers.max().item() if len(numbers) else None


def _of(whole: pa.Table | None) -> pa.Table:
    assert whole is not None, "all rows are shown where lateness is not told by piece"
    return whole


def _with_time(rows: pa.Table, stamps: npt.NDArray[np.int64]) -> pa.Table:
    place = rows.column_names.index(TIME)
    return rows.set_column(place, TIME, pa.array(stamps).cast(rows.schema.field(TIME).type))


def _mask(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False), np.bool_)
