"""DataFrames of queries that run together: the stages of several are over one reading of every stream.

Each input is made again from one DataFrame, one after the other: what is shipped for a stage becomes hidden
columns, which every further step passes on, until all of them stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql.pandas.types import from_arrow_schema

from millstream.physical.node import PhysicalNode
from millstream.physical.nodes import Output, Scan, StageInput, stages_of
from millstream.physical.nodes import Stage as PhysicalStage
from millstream.physical.scan_sharing import SharedPlan, share
from millstream.spark.host.shard_reports import ShardReports
from millstream.spark.host.stage_host import Route, Stage, stage_streams
from millstream.spark.lowering.input_frames import shipped_columns
from millstream.spark.lowering.translator import Translation
from millstream.spark.sources.hidden_columns import COUNTED, KEEP, TIME, column, hidden, is_hidden
from millstream.stage.shard import tagged_schema

_READ = "__ms_read"
_KEPT = "__ms_kept"

FrameFunction = Callable[[DataFrame], DataFrame]
Reports = tuple[tuple[ShardReports, tuple[str, ...]], ...]
"""Reports of stages, each with the streams that the stage reads."""


@dataclass(frozen=True)
class LoweredQueries:
    """Queries as one DataFrame, and for each query the function that computes its result from a batch."""

    frame: DataFrame
    results: tuple[FrameFunction, ...]
    empty: tuple[DataFrame, ...]
    """DataFrames with the columns of the results."""
    reports: tuple[Reports, ...]
    stages: tuple[PhysicalStage, ...]
    tokens: tuple[str, ...]


def lower_queries(plans: Sequence[Output], to: Translation) -> LoweredQueries:
    """Lower plans that run as one query of Spark; several share one scan."""
    if len(plans) > 1:
        return _share_scan(share(plans), to)
    frame = to.frame(plans[0])
    stages = tuple(stages_of(plans[0]))
    reports = (tuple(to.stages.reports),)
    return LoweredQueries(frame, (_same,), (frame,), reports, stages, tuple(to.stages.tokens))


def _same(batch: DataFrame) -> DataFrame:
    return batch


def _share_scan(shared: SharedPlan, to: Translation) -> LoweredQueries:
    """Lower the stages of queries over one reading of every stream."""
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
    return LoweredQueries(
        result,
        functions,
        tuple(function(nothing) for function in functions),
        tuple(((report, streams),) for report, streams in zip(reports, told, strict=True)),
        tuple(one.stage for one in shared.stages),
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
