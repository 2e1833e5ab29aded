"""Stages of several queries over one reading of every stream.

Each input is made again from one DataFrame, one after the other: what is shipped for a stage becomes hidden
columns, which every further step passes on, until all of them stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql.pandas.types import from_arrow_schema

from millstream.physical.node import PhysicalNode
from millstream.physical.nodes import Scan, StageInput
from millstream.physical.scan_sharing import SharedPlan
from millstream.spark.host.shard_reports import ShardReports
from millstream.spark.host.stage_host import Route, Stage, stage_streams
from millstream.spark.lowering.input_frames import shipped_columns
from millstream.spark.lowering.translator import Translation
from millstream.spark.sources.hidden_columns import COUNTED, KEEP, TIME, column, hidden, is_hidden
from millstream.stage.shard import tagged_schema

_READ = "__ms_read"
_KEPT = "__ms_kept"

FrameFunction = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class SharedScan:
    """The stages of several queries as one stream, and for each query what makes its result of a batch."""

    frame: DataFrame
    results: tuple[FrameFunction, ...]
    empty: tuple[DataFrame, ...]
    """The results of each query before anything has been read."""
    reports: tuple[tuple[ShardReports, tuple[str, ...]], ...]
    """Reports of the stage of each query, and the streams that it reads."""
    tokens: tuple[str, ...]


def share_scan(shared: SharedPlan, to: Translation) -> SharedScan:
    """Return the stages of some queries over one reading of every stream."""
    spark = to.sources.spark
    reports = [ShardReports(spark.sparkContext) for _ in shared.plans]
    told: list[tuple[str, ...]] = [()] * len(shared.plans)
    stages: list[Stage] = []
    frames: dict[str, DataFrame] = {}
    routes: dict[str, list[Route]] = {}
    for tag, one in enumerate(shared.stages):
        to.stages.read_tables(one.stage)
        hosted = to.stages.hosted(one.stage, [shard for stage in stages for shard in stage.shards])
        stages.append(replace(hosted, reports=tuple(reports[member] for member in one.members)))
        for member in one.members:
            told[member] = one.stage.streams
        for number, source in enumerate(one.stage.sources):
            scan = next(node for node in source.node.walk() if isinstance(node, Scan))
            name = scan.stream.name.lower()
            prefix = f"__ms_p{tag}_{number}_"
            read = frames.get(name)
            frames[name] = _beside(_prepared(to, scan) if read is None else read, source, prefix, to)
            routes.setdefault(name, []).append(Route(stages[tag], number, prefix))
    inputs = [(_packable(frame), tuple(routes[name])) for name, frame in frames.items()]
    result = stage_streams(tuple(stages), inputs, to.stages.control)
    functions = tuple(_above(plan, to) for plan in shared.plans)
    schema = from_arrow_schema(tagged_schema([stage.pipeline for stage in stages]))
    nothing = spark.createDataFrame([], schema)
    return SharedScan(
        result,
        functions,
        tuple(function(nothing) for function in functions),
        tuple(zip(reports, told, strict=True)),
        tuple(stage.token for stage in stages),
    )


def _above(plan: PhysicalNode, to: Translation) -> FrameFunction:
    """Return what makes the result of a query of the rows of all stages: operations on DataFrames only."""
    return lambda batch: replace(to, batch=batch).frame(plan)


def _prepared(to: Translation, scan: Scan) -> DataFrame:
    """Return what was read, put away so that every input can start with it."""
    read = to.sources.stream(scan.stream).good
    shown = [name for name in read.columns if not is_hidden(name)]
    frame = read.select(*read.columns, F.struct(*map(column, shown)).alias(_READ))
    return frame.withColumnRenamed(KEEP, _KEPT) if KEEP in read.columns else frame


def _beside(frame: DataFrame, source: StageInput, prefix: str, to: Translation) -> DataFrame:
    """Return the frame with what a stage wants of an input added to it, under its prefix."""
    if _KEPT in frame.columns:
        frame = frame.withColumn(KEEP, F.col(_KEPT))
    before = [column(name) for name in hidden(frame.columns) if name != KEEP]
    again = replace(to, read=frame).frame(source.node)
    named = zip((*source.columns, *source.time), shipped_columns(source), strict=True)
    added = [value.alias(prefix + one.name) for one, value in named]
    own = [name for name in (KEEP, COUNTED) if name in again.columns]
    added += [F.col(name).alias(prefix + name) for name in own]
    result = again.select(*before, *added)
    return result.select(f"{_READ}.*", *map(column, result.columns))


def _packable(frame: DataFrame) -> DataFrame:
    """Return only what is shipped or tells the order; each input has its own notion of time."""
    return frame.select(*(column(n) for n in hidden(frame.columns) if n not in (_READ, _KEPT, TIME)))
