"""Several stages over one reading: queries of a script that read the same streams share the scan.

Each leg is made again from one DataFrame, one after the other: what is shipped for a stage becomes hidden
columns, which every further step passes on, until all of them stand side by side.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.kernels.patterns.tagged_rows import BRANCH
from millstream.spark.host.shard_reports import ShardReports
from millstream.spark.host.stage_host import Route, Stage, shard_ids, stage_streams
from millstream.spark.lowering.frames import InputFrame
from millstream.spark.lowering.input_frames import shipped_columns
from millstream.spark.planning.pattern_sharing import PatternBundle, bundles
from millstream.spark.planning.stage_builder import StageRequest
from millstream.spark.sources.hidden_columns import COUNTED, KEEP, TIME, column, hidden, is_hidden
from millstream.stage.pipeline import TAG
from millstream.stage.shard import tagged_name

_READ = "__ms_read"
_KEPT = "__ms_kept"


@dataclass(frozen=True)
class SharedScan:
    """The stages of several queries as one stream, whose rows have tags."""

    frame: DataFrame
    bundles: tuple[PatternBundle, ...]
    reports: tuple[tuple[ShardReports, tuple[str, ...]], ...]
    """What the stage of each query reports, and the streams that it reads."""
    tokens: tuple[str, ...]

    def results(self, batch: DataFrame, query: int) -> DataFrame:
        """What the stage of one query gave, out of a micro-batch of all."""
        tag, bundle = next((i, b) for i, b in enumerate(self.bundles) if query in b.members)
        rows, alone = batch, len(self.bundles) == 1
        if not alone:
            rows = rows.where(F.col(TAG) == tag)
        if bundle.is_branched:
            branch = BRANCH if alone else tagged_name(tag, BRANCH)
            rows = rows.where(F.col(branch) == bundle.members.index(query))
        names = bundle.columns(query).items()
        return rows.select(
            *(F.col(inner if alone else tagged_name(tag, inner)).alias(name) for inner, name in names)
        )


def can_share(wanted: Sequence[StageRequest]) -> bool:
    """Whether a query needs one stage only, and that reads nothing but sources."""
    return len(wanted) == 1 and all(leg.read is not None for leg in wanted[0].legs)


def share_scan(wanted: Sequence[StageRequest], control: DataFrame | None) -> SharedScan:
    """The stages of some queries over one reading of every stream."""
    spark = wanted[0].frames[0].sparkSession
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    stages: list[Stage] = []
    taken: set[int] = set()
    reports = [ShardReports(spark.sparkContext) for _ in wanted]
    together = bundles(wanted)
    for bundle in together:
        want = bundle.wanted
        shards = shard_ids(partitions if want.parallel else 1, partitions, taken)
        taken.update(shards)
        own = tuple(reports[member] for member in bundle.members)
        stages.append(Stage(want.pipeline, shards, uuid.uuid4().hex, own))
    frames: dict[str, DataFrame] = {}
    routes: dict[str, list[Route]] = {}
    for tag, want in enumerate(bundle.wanted for bundle in together):
        for number, leg in enumerate(want.legs):
            assert leg.stream is not None
            assert leg.read is not None
            name = leg.stream.name.lower()
            prefix = f"__ms_p{tag}_{number}_"
            frames[name] = _beside(frames.get(name, _prepared(leg.read)), leg, want, prefix)
            routes.setdefault(name, []).append(Route(stages[tag], number, prefix))
    inputs = [(_packable(frame), tuple(routes[name])) for name, frame in frames.items()]
    result = stage_streams(tuple(stages), inputs, control)
    told = tuple((report, want.streams) for report, want in zip(reports, wanted, strict=True))
    return SharedScan(result, tuple(together), told, tuple(stage.token for stage in stages))


def _prepared(read: DataFrame) -> DataFrame:
    """What was read, put away so that every leg can start with it."""
    shown = [name for name in read.columns if not is_hidden(name)]
    frame = read.select(*read.columns, F.struct(*map(column, shown)).alias(_READ))
    return frame.withColumnRenamed(KEEP, _KEPT) if KEEP in read.columns else frame


def _beside(frame: DataFrame, leg: InputFrame, request: StageRequest, prefix: str) -> DataFrame:
    """The frame with what a stage wants of this leg added to it, under its prefix."""
    if _KEPT in frame.columns:
        frame = frame.withColumn(KEEP, F.col(_KEPT))
    before = [column(name) for name in hidden(frame.columns) if name != KEEP]
    again = InputFrame(frame, leg.stream, untimed=leg.untimed)
    for step in leg.steps:
        again = step(again)
    added = [
        c.alias(prefix + name)
        for name, c in shipped_columns(again, request.shipped, request.keys, request.key).items()
    ]
    own = [name for name in (KEEP, COUNTED) if name in again.frame.columns]
    added += [F.col(name).alias(prefix + name) for name in own]
    result = again.frame.select(*before, *added)
    return result.select(f"{_READ}.*", *map(column, result.columns))


def _packable(frame: DataFrame) -> DataFrame:
    """Only what is shipped or tells the order; each leg has its own notion of time."""
    return frame.select(*(column(n) for n in hidden(frame.columns) if n not in (_READ, _KEPT, TIME)))
