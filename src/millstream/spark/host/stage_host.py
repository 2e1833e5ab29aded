"""Stages on Spark: rows are packed for the shards, whose state is in Spark's store."""

from __future__ import annotations

import json
import pickle
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from millstream.program.spark_text_hash import SEED, murmur_long
from millstream.spark.host.shard_reports import ShardReports
from millstream.spark.host.stateful_processor import ShardProcessor
from millstream.spark.host.worker_gc import settle
from millstream.stage.blob import ENDED, Blob
from millstream.stage.packer import PACKED, PACKED_DDL, Packer, note, pack
from millstream.stage.pipeline import Pipeline
from millstream.stage.shard import Shard, result_schema, tagged_schema


@dataclass(frozen=True)
class Stage:
    """A pipeline and its shards.

    ``shards`` are ids that Spark's hash puts into different partitions; ``token`` identifies this run of the
    query. ``reports`` collect the reports of the shards on the driver, for each query that shares the stage.
    """

    pipeline: Pipeline
    shards: tuple[int, ...]
    token: str = ""
    reports: tuple[ShardReports, ...] = ()

    def shard(self, number: int) -> Shard:
        """Return a new shard without state."""
        return Shard(self.pipeline, str(number), len(self.shards))


def shard_ids(count: int, partitions: int, taken: Collection[int] = ()) -> tuple[int, ...]:
    """Return ids that Spark's hash puts into different partitions, as far as there are enough partitions.

    >>> len(set(shard_ids(8, 8)))
    8
    """
    ids: dict[int, int] = {}
    at = 0
    while len(ids) < min(count, partitions):
        if at not in taken:
            ids.setdefault(murmur_long(at, SEED) % partitions, at)
        at += 1
    return tuple(sorted(ids.values()))


@dataclass(frozen=True)
class Route:
    """Destination of the rows of a frame: an input of a stage, and the prefix of the columns for it."""

    stage: Stage
    number: int = 0
    prefix: str = ""


def stage_stream(stage: Stage, inputs: list[DataFrame], control: DataFrame | None) -> DataFrame:
    """Return the results of a stage over streams."""
    routed = [(frame, (Route(stage, i),)) for i, frame in enumerate(inputs)]
    return stage_streams((stage,), routed, control)


def stage_streams(
    stages: tuple[Stage, ...],
    inputs: Sequence[tuple[DataFrame, tuple[Route, ...]]],
    control: DataFrame | None,
) -> DataFrame:
    """Return the results of several stages that share their inputs, as one frame.

    With several stages, each has columns of its own, and a tag identifies the stage of a row.
    """
    packed = [frame.mapInArrow(_Pack(routes), PACKED_DDL) for frame, routes in inputs]
    if control is not None:
        # First, because Spark polls its sources in this order: the batch that reads a heartbeat then includes
        # all tuples that were there before the heartbeat was written.
        packed.insert(0, control.mapInArrow(_PackControl(stages), PACKED_DDL))
    together = packed[0]
    for other in packed[1:]:
        together = together.union(other)
    return together.groupBy("shard").transformWithStateInPandas(
        statefulProcessor=ShardProcessor(
            pickle.dumps([replace(stage, reports=()) for stage in stages]),
            tuple(tuple(reports.accumulator for reports in stage.reports) for stage in stages),
        ),
        outputStructType=from_arrow_schema(tagged_schema([stage.pipeline for stage in stages])),
        outputMode="append",
        timeMode="none",
    )


def stage_table(stage: Stage, inputs: list[DataFrame]) -> DataFrame:
    """Return the results of a stage over tables: the same kernels with the whole input in one batch."""
    together: DataFrame | None = None
    for i, frame in enumerate(inputs):
        packed = frame.mapInArrow(_Pack((Route(stage, i),)), PACKED_DDL)
        together = packed if together is None else together.union(packed)
    assert together is not None
    count = len(inputs)  # Spark pickles the names that the function uses, and a DataFrame cannot be pickled

    def run(table: pa.Table) -> pa.Table:
        shard = stage.shard(0)
        blobs = [*_blobs(table), *_ends(count)]
        return shard.table(*shard.process(blobs))

    return together.groupBy("shard").applyInArrow(run, from_arrow_schema(result_schema(stage.pipeline)))


def _ends(inputs: int) -> Iterator[Blob]:
    for i in range(inputs):
        yield Blob(
            {"input": i, "flush": 0, "first": False, "pieces": [], "marks": [{"kind": ENDED}]}, None, None
        )


class _Pack:
    """Packs rows in every task that reads an input."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._routes = [
            (route.prefix, route.stage.pipeline.inputs[route.number], route.number, route.stage.shards)
            for route in routes
        ]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from pack(
            batches,
            {prefix: Packer(source, number, shards) for prefix, source, number, shards in self._routes},
        )
        settle()


class _PackControl:
    """Packs heartbeats and ends of streams for all inputs that read them and all their shards."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self._stages = [(stage.pipeline.inputs, stage.shards) for stage in stages]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[int, str]] = []
        for batch in batches:
            for line in batch.column(0).to_pylist():
                mark = json.loads(line)
                for inputs, shards in self._stages:
                    for i, source in enumerate(inputs):
                        if source.name.lower() == mark["source"].lower() and not source.chained:
                            rows += note(mark, i, shards)
        ids, heads = [shard for shard, _ in rows], [head for _, head in rows]
        nothing = pa.nulls(len(rows), pa.binary())
        yield pa.RecordBatch.from_arrays(
            [pa.array(ids, pa.int64()), pa.array(heads, pa.string()), nothing, nothing], schema=PACKED
        )


def _blobs(table: pa.Table) -> Iterator[Blob]:
    for row in table.select(["head", "tuples", "all"]).to_pylist():
        yield Blob.of(row["head"], row["tuples"], row["all"])
