"""Stages without Spark: tasks, shuffle, state store and failures in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.course import Course
from millstream.local.frame import BATCH, Frame, from_table, to_table
from millstream.physical.node import Guard
from millstream.physical.nodes import Arrival, Stage, StageInput
from millstream.program.program import Program
from millstream.stage.blob import ENDED, HEARTBEAT, Blob
from millstream.stage.packer import FULL_ROWS, Packer, note, pack
from millstream.stage.pipeline import (
    COUNTED,
    FILE,
    KEEP,
    LINE,
    MARK,
    NUMBER,
    ORIGIN,
    PARTITION,
    PROMISE,
    SEGMENT,
    SUBSTREAM,
    Input,
    Pipeline,
)
from millstream.stage.program_discovery import every_program
from millstream.stage.shard import Shard, result_schema
from millstream.types import BIGINT

_ARRIVAL = (PARTITION, SEGMENT, FILE, SUBSTREAM, PROMISE, LINE, KEEP, COUNTED)
_STAGE = (ORIGIN, NUMBER, MARK)

ReadTable = Callable[[str], pa.Table]


@dataclass
class StateStore:
    """The state of a shard as it has been written."""

    meta: bytes | None = None
    chunks: dict[str, bytes] = field(default_factory=dict)


@dataclass
class ShardHost:
    """The shards of a pipeline, from micro-batch to micro-batch."""

    pipeline: Pipeline
    shards: int
    course: Course
    late: list[int] = field(default_factory=list)
    """Late tuples of each input so far."""
    newest: list[str] = field(default_factory=list)
    """The newest times of inputs that shards have reported."""
    _stores: dict[int, StateStore] = field(default_factory=dict)
    _memory: dict[int, Shard] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.late = [0] * len(self.pipeline.inputs)

    def process(self, blobs: Sequence[tuple[int, Blob]]) -> list[pa.Table]:
        """Return the results of a micro-batch, reports included."""
        results = []
        for name in range(self.shards):
            own = [blob for shard, blob in blobs if shard == name]
            if not own:
                continue
            store = self._stores.setdefault(name, StateStore())
            shard = self._shard(store, name)
            result, report = shard.process(own)
            self.late = [so_far + new for so_far, new in zip(self.late, report["late"], strict=True)]
            self.newest += [time for time in report["newest"] if time is not None]
            change = shard.snapshot()
            for gone in change.dropped:
                store.chunks.pop(gone, None)
            store.chunks.update(change.added)
            store.meta = change.meta
            self._memory[name] = shard
            results.append(shard.table(result, report))
        return results

    def restart(self) -> None:
        """Lose all workers, so that shards go on from the state that was written."""
        self._memory.clear()

    def _shard(self, store: StateStore, name: int) -> Shard:
        chance = self.course.chance
        forgets = self.course.forgetful and chance is not None and chance.random() < 0.5
        if name in self._memory and not forgets:
            return self._memory[name]
        shard = Shard(self.pipeline, str(name), self.shards)
        if store.meta is not None:
            shard.restore(store.meta, store.chunks)
        return shard


@dataclass
class StageRunner:
    """Runs stages over all micro-batches at once; ``partitions`` counts those of each source."""

    course: Course
    read_table: ReadTable
    partitions: Mapping[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    """Late tuples of each stream, as the stage that has seen most of them counts."""
    newest: list[str] = field(default_factory=list)
    """The newest times of streams, derived ones included."""

    def run(self, stage: Stage, frames: Sequence[Frame]) -> Frame:
        """Return the results of a stage, each with its micro-batch."""
        for program in every_program(stage.kernels):
            self._read_tables(program)
        pipeline = self._counted(stage.pipeline)
        shards = tuple(range(self.course.shards_of(stage.parallel)))
        host = ShardHost(pipeline, len(shards), self.course)
        shipped = [_shipped(one, frame) for one, frame in zip(stage.sources, frames, strict=True)]
        last = self.course.batches - 1 if stage.streaming else 0
        results = [_in_batch(result_schema(pipeline).empty_table(), 0)]
        for number in range(last + 1):
            if number in self.course.restarts:
                host.restart()
            blobs: list[tuple[int, Blob]] = []
            for i, (source, table) in enumerate(zip(pipeline.inputs, shipped, strict=True)):
                own = _of_batch(table, number) if stage.streaming else table.drop_columns([BATCH])
                blobs += self._packed(own, source, i, shards)
                if not source.chained:
                    blobs += self._heartbeats(source.name, i, number, shards)
            if number == last and (self.course.ended or not stage.streaming):
                blobs += _ends(pipeline, shards, streaming=stage.streaming)
            results += [_in_batch(table, number) for table in host.process(blobs)]
        for name, count in zip(stage.streams, host.late, strict=True):
            if name:
                self.late[name] = max(count, self.late.get(name, 0))
        self.newest += host.newest
        types = {column.name: column.type for column in stage.layout} | {BATCH: BIGINT}
        whole = pa.concat_tables(results)
        return from_table(whole, [ColumnRef("", name, types[name]) for name in whole.column_names])

    def _counted(self, pipeline: Pipeline) -> Pipeline:
        inputs = (
            replace(one, partitions=self.partitions.get(one.name, one.partitions)) for one in pipeline.inputs
        )
        return replace(pipeline, inputs=tuple(inputs))

    def _heartbeats(
        self, stream: str, number: int, batch: int, shards: tuple[int, ...]
    ) -> Iterator[tuple[int, Blob]]:
        """Yield the heartbeats of a stream in a micro-batch."""
        for heartbeat in self.course.heartbeats.get(stream, ()):
            if heartbeat.batch == batch:
                mark = {"kind": HEARTBEAT, "time": heartbeat.time, "on": heartbeat.on}
                yield from marked_blobs(mark, number, shards)

    def _packed(
        self, table: pa.Table, source: Input, number: int, shards: tuple[int, ...]
    ) -> list[tuple[int, Blob]]:
        """Pack the rows of a micro-batch, as tasks do: one or two for each source partition."""
        tasks = [table] if source.chained or source.stored else list(self._pieces(table))
        chance, full, rows = self.course.chance, FULL_ROWS, None
        blobs: list[tuple[int, Blob]] = []
        for task in tasks:
            if chance is not None:
                full, rows = chance.choice((1, FULL_ROWS)), chance.randint(1, max(1, len(task)))
            read = task.to_batches(max_chunksize=rows)
            blobs += packed_blobs(pack(read, {"": Packer(source, number, shards, full)}))
        if chance is not None:
            chance.shuffle(blobs)
        return blobs

    def _pieces(self, table: pa.Table) -> Iterator[pa.Table]:
        chance = self.course.chance
        for partition in pc.unique(table.column(PARTITION)).to_pylist():
            rows = table.filter(pc.equal(table.column(PARTITION), partition))
            cut = len(rows) if chance is None else chance.randint(0, len(rows))
            for i, piece in enumerate((rows.slice(0, cut), rows.slice(cut))):
                if len(piece):
                    place = piece.column_names.index(SEGMENT)
                    segments = pc.add(pc.multiply(piece.column(SEGMENT), 2), i)
                    yield piece.set_column(place, SEGMENT, segments)

    def _read_tables(self, program: Program) -> None:
        """Read the tables of the catalog that a program looks at."""
        for given in program.given:
            types = [pa.field(f"c{i}", arrow_type(f.type)) for i, f in enumerate(given.fields)]
            rows = self.read_table(given.name).select([f.name for f in given.fields])
            given.rows = rows.rename_columns([f.name for f in types]).cast(pa.schema(types)).combine_chunks()


def _shipped(one: StageInput, frame: Frame) -> pa.Table:
    """Return the columns that are shipped, times, the order of rows, and their micro-batch."""
    columns = [
        (column.ref, frame.evaluate(column.expr, guard, column.type))
        for part, guard in ((one.columns, one.guard), (one.time, Guard.NONE))
        for column in part
        if column.expr is not None
    ]
    order = dict(frame.hidden)
    batch = order[BATCH]
    prefixes: tuple[str, ...] = (SEGMENT,)
    match one.arrival:
        case Arrival.SOURCE:
            order.setdefault(SEGMENT, batch)
            order.setdefault(PARTITION, pa.array([0] * frame.count, pa.int64()))
            prefixes = _ARRIVAL
        case Arrival.STAGE:
            order.setdefault(MARK, pa.nulls(frame.count, pa.string()))
            prefixes = _STAGE
        case Arrival.TABLE:
            order[SEGMENT] = pa.array([0] * frame.count, pa.int64())
    kept = [(ColumnRef("", name), column) for name, column in order.items() if name.startswith(prefixes)]
    return to_table([*columns, *kept, (ColumnRef("", BATCH), batch)])


def _of_batch(table: pa.Table, number: int) -> pa.Table:
    return table.filter(pc.equal(table.column(BATCH), number)).drop_columns([BATCH])


def _in_batch(table: pa.Table, number: int) -> pa.Table:
    return table.append_column(BATCH, pa.array([number] * len(table), pa.int64()))


def _ends(pipeline: Pipeline, shards: tuple[int, ...], *, streaming: bool) -> Iterator[tuple[int, Blob]]:
    """Yield the end of every input; a stage reports its own end to the next."""
    for i, source in enumerate(pipeline.inputs):
        if not (streaming and source.chained):
            yield from marked_blobs({"kind": ENDED}, i, shards)


def packed_blobs(packed: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Blob]]:
    """Yield the blobs in the output of packers, each with its shard."""
    for batch in packed:
        for row in batch.to_pylist():
            yield row["shard"], Blob.of(row["head"], row["tuples"], row["all"])


def marked_blobs(mark: dict[str, Any], number: int, shards: Iterable[int]) -> Iterator[tuple[int, Blob]]:
    """Yield the blobs that carry a mark about an input to all shards."""
    for shard, head in note(mark, number, shards):
        yield shard, Blob.of(head, None, None)
