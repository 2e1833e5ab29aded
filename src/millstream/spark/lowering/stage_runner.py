"""Stages of physical plans on Spark: shards, reports to the driver, and tables that aggregates read."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.errors import ExecutionError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.physical.nodes import Stage
from millstream.program.program import Program
from millstream.spark.host import stage_host
from millstream.spark.host.shard_reports import ShardReports
from millstream.spark.host.stage_host import shard_ids, stage_stream, stage_table
from millstream.stage.program_discovery import every_program

MOST_GIVEN = 1_000_000
"""Rows of a table of the catalog that an aggregate may read: every shard has all of them in memory."""


@dataclass
class StageRunner:
    """Runs stages.

    ``control`` is the stream of heartbeats and ends, if there is one: then stages ``report`` to the driver,
    each about the streams that it reads. ``given`` are the tables of the catalog that aggregates read.
    """

    spark: SparkSession
    control: DataFrame | None = None
    reports: list[tuple[ShardReports, tuple[str, ...]]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    given: dict[str, pa.Table] = field(default_factory=dict)

    def run(self, stage: Stage, frames: Sequence[DataFrame]) -> DataFrame:
        """Return the results of a stage over packed rows."""
        self.read_tables(stage)
        hosted = self.hosted(stage)
        if not stage.streaming:
            return stage_table(hosted, list(frames))
        if self.control is not None:
            reports = ShardReports(self.spark.sparkContext)
            self.reports.append((reports, stage.streams))
            hosted = replace(hosted, reports=(reports,))
        return stage_stream(hosted, list(frames), self.control)

    def hosted(self, stage: Stage, taken: Sequence[int] = ()) -> stage_host.Stage:
        """Return a stage with its shards, which are none of those ``taken``."""
        partitions = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        shards = shard_ids(partitions if stage.parallel else 1, partitions, taken)
        hosted = stage_host.Stage(stage.pipeline, shards, uuid.uuid4().hex)
        self.tokens.append(hosted.token)
        return hosted

    def read_tables(self, stage: Stage) -> None:
        """Read the tables of the catalog that the programs of a stage look at, as they are now."""
        for program in every_program(stage.kernels):
            read_given(program, self.spark, self.given)


def read_given(program: Program, spark: SparkSession, known: dict[str, pa.Table]) -> None:
    """Read the tables of the catalog that a program looks at; ``known`` are those read before."""
    for given in program.given:
        if given.name in known:
            given.rows = known[given.name]
            continue
        columns = [
            F.col(f"`{column.name.replace('`', '``')}`").cast(str(column.type)).alias(f"c{i}")
            for i, column in enumerate(given.fields)
        ]
        rows = spark.table(given.name).select(*columns).limit(MOST_GIVEN + 1).toArrow()
        if rows.num_rows > MOST_GIVEN:
            raise ExecutionError(
                f"the table '{given.name}' has more than {MOST_GIVEN:,} rows, "
                f"which is too much for the aggregate '{program.name}' to read",
                hint="join with it, and hand over what is needed as an argument",
            )
        types = [pa.field(f"c{i}", arrow_type(column.type)) for i, column in enumerate(given.fields)]
        given.rows = known[given.name] = rows.cast(pa.schema(types)).combine_chunks()
