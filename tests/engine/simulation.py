"""A pipeline without a plan around it, in the shards of the local engine.

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

from millstream.local.course import Course
from millstream.local.stage_runner import ShardHost, marked_blobs, packed_blobs
from millstream.stage.blob import ENDED, HEARTBEAT, Blob
from millstream.stage.packer import FULL_ROWS, Packer, pack
from millstream.stage.pipeline import MARK, PARTITION, SEGMENT, Pipeline


@dataclass(frozen=True)
class Beat:
    """A heartbeat between the rows of a source, about its timestamp or another attribute."""

    source: int
    time: int
    on: str | None = None


Arrival = tuple[int, int, dict[str, Any]] | Beat
"""(input, source partition, row), in the order in which they arrive."""


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
        course = Course(forgetful=self.forgetful, chance=self.chance)
        host = ShardHost(self.pipeline, self.shards, course)
        results = []
        bounds = [0, *sorted(min(cut, len(arrivals)) for cut in cuts), len(arrivals)]
        batches = [list(arrivals[a:b]) for a, b in itertools.pairwise(bounds)]
        for number, batch in enumerate([*batches, *([None] if ended else [])]):
            blobs = self._ends(names) if batch is None else self._packed(batch, names, number)
            results += map(_without_reports, host.process(blobs))
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
        blobs: list[tuple[int, Blob]] = []
        for source, rows in tasks:
            schema = self.schemas[source]
            for name in (SEGMENT, PARTITION):
                schema = schema.append(pa.field(name, pa.int64()))
            cut = self.chance.randint(0, len(rows))
            read = [pa.RecordBatch.from_pylist(part, schema) for part in (rows[:cut], rows[cut:]) if part]
            full = self.chance.choice((1, FULL_ROWS))
            packer = Packer(self.pipeline.inputs[source], source, shards, full)
            blobs += packed_blobs(pack(read, {"": packer}))
        self.chance.shuffle(blobs)
        for arrival in batch:
            if isinstance(arrival, Beat):
                mark = {"kind": HEARTBEAT, "time": arrival.time, "on": arrival.on}
                blobs += marked_blobs(mark, arrival.source, shards)
        return blobs

    def _ends(self, shards: tuple[int, ...]) -> list[tuple[int, Blob]]:
        sources = range(len(self.schemas))
        return [blob for source in sources for blob in marked_blobs({"kind": ENDED}, source, shards)]


def _without_reports(table: pa.Table) -> pa.Table:
    if MARK not in table.column_names:
        return table
    return table.filter(pa.compute.is_null(table.column(MARK))).drop_columns([MARK])
