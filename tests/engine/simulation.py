"""A stage without Spark: tasks, shuffle, state store and failures as a few lines of Python.

Whatever Spark may do with a stage is done here at random: micro-batches cut anywhere, a piece read by another
task, shards, state written and read back, workers that have forgotten everything.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from millstream.stage.blob import ENDED, HEARTBEAT, Blob
from millstream.stage.packer import FULL_ROWS, Packer, note, pack
from millstream.stage.pipeline import MARK, PARTITION, SEGMENT, Pipeline
from millstream.stage.shard import Shard


@dataclass(frozen=True)
class Beat:
    """A heartbeat between the rows of a source, about its timestamp or another attribute."""

    source: int
    time: int
    on: str | None = None


Arrival = tuple[int, int, dict[str, Any]] | Beat
"""(input, source partition, row), in the order in which they arrive."""


@dataclass
class Store:
    """The stored state of a shard."""

    meta: bytes | None = None
    chunks: dict[str, bytes] = field(default_factory=dict)


@dataclass
class Hosted:
    """The shards of a pipeline, from batch to batch. A forgetful host loses them now and then."""

    pipeline: Pipeline
    shards: int
    chance: random.Random
    forgetful: bool = False
    _stores: dict[int, Store] = field(default_factory=dict)
    _memory: dict[int, Shard] = field(default_factory=dict)

    def process(self, blobs: Sequence[tuple[int, Blob]]) -> list[pa.Table]:
        """Return the results of the shards for a batch, reports included."""
        results = []
        for name in range(self.shards):
            mine = [blob for shard, blob in blobs if shard == name]
            if not mine:
                continue
            store = self._stores.setdefault(name, Store())
            shard = self._shard(store, name)
            result, report = shard.process(mine)
            change = shard.snapshot()
            for gone in change.dropped:
                store.chunks.pop(gone, None)
            store.chunks.update(change.added)
            store.meta = change.meta
            self._memory[name] = shard
            results.append(shard.table(result, report))
        return results

    def restart(self) -> None:
        """Lose all workers: only stored state survives."""
        self._memory.clear()

    def _shard(self, store: Store, name: int) -> Shard:
        forgets = self.forgetful and self.chance.random() < 0.5
        if name in self._memory and not forgets:
            return self._memory[name]
        shard = Shard(self.pipeline, str(name), self.shards)
        if store.meta is not None:
            shard.restore(store.meta, store.chunks)
        return shard


@dataclass
class Simulation:
    """Runs a pipeline over arrivals. ``schemas`` are those of the rows of each input."""

    pipeline: Pipeline
    schemas: Sequence[pa.Schema]
    shards: int = 1
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    forgetful: bool = False

    def run(self, arrivals: Sequence[Arrival], cuts: Sequence[int] = (), *, ended: bool = True) -> pa.Table:
        """All results, to the end of the input, or as far as promises go."""
        names = tuple(range(self.shards))
        hosted = Hosted(self.pipeline, self.shards, self.chance, forgetful=self.forgetful)
        results = []
        bounds = [0, *sorted(min(cut, len(arrivals)) for cut in cuts), len(arrivals)]
        batches = [list(arrivals[a:b]) for a, b in itertools.pairwise(bounds)]
        for number, batch in enumerate([*batches, *([None] if ended else [])]):
            blobs = self._ends(names) if batch is None else self._packed(batch, names, number)
            results += map(_without_reports, hosted.process(blobs))
        return pa.concat_tables(results)

    def _packed(self, batch: list[Arrival], shards: tuple[int, ...], number: int) -> list[tuple[int, Blob]]:
        """Rows of each source partition are read by one or two tasks, in any order of tasks."""
        tasks: list[tuple[int, list[dict[str, Any]]]] = []
        for source in range(len(self.schemas)):
            partitions = {a[1] for a in batch if not isinstance(a, Beat) and a[0] == source}
            for partition in partitions:
                rows = [a[2] for a in batch if not isinstance(a, Beat) and a[:2] == (source, partition)]
                middle = self.chance.randint(0, len(rows))
                for piece, part in enumerate((rows[:middle], rows[middle:])):
                    place = {SEGMENT: 2 * number + piece, PARTITION: partition}
                    if part:
                        tasks.append((source, [{**row, **place} for row in part]))
        self.chance.shuffle(tasks)
        blobs = []
        for source, rows in tasks:
            schema = self.schemas[source]
            for name in (SEGMENT, PARTITION):
                schema = schema.append(pa.field(name, pa.int64()))
            cut = self.chance.randint(0, len(rows))
            read = [pa.RecordBatch.from_pylist(part, schema) for part in (rows[:cut], rows[cut:]) if part]
            full = self.chance.choice((1, FULL_ROWS))
            packer = Packer(self.pipeline.inputs[source], source, shards, full)
            blobs += blobs_in(pack(read, {"": packer}))
        for arrival in batch:
            if isinstance(arrival, Beat):
                mark = {"kind": HEARTBEAT, "time": arrival.time, "on": arrival.on}
                blobs += [(s, Blob.of(head, None, None)) for s, head in note(mark, arrival.source, shards)]
        return blobs

    def _ends(self, shards: tuple[int, ...]) -> list[tuple[int, Blob]]:
        return [
            (shard, Blob.of(head, None, None))
            for source in range(len(self.schemas))
            for shard, head in note({"kind": ENDED}, source, shards)
        ]


def _without_reports(table: pa.Table) -> pa.Table:
    if MARK not in table.column_names:
        return table
    return table.filter(pa.compute.is_null(table.column(MARK))).drop_columns([MARK])


def blobs_in(packed: Any) -> list[tuple[int, Blob]]:
    """Return the shards, and their blobs, in the output of packers."""
    return [
        (row["shard"], Blob.of(row["head"], row["tuples"], row["all"]))
        for batch in packed
        for row in batch.to_pylist()
    ]
