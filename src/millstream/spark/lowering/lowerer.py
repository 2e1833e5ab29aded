"""From the plan of a query to its DataFrame, by way of a physical plan that is made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.cloudpickle import dumps
from pyspark.sql import DataFrame, SparkSession

from millstream.catalog.entries import Stream, Table, View
from millstream.physical.nodes import Output
from millstream.physical.planner import Planner
from millstream.physical.programs import Programs
from millstream.physical.query_plan import QueryPlan
from millstream.plan.nodes import Node
from millstream.spark.lowering.bind import bound_plan
from millstream.spark.lowering.stage_runner import StageRunner
from millstream.spark.lowering.translator import Sources, Translation
from millstream.spark.sources.stream_sources import ReadPort


@dataclass
class Lowerer:
    """Lowers the plans of queries that start together.

    ``frames`` are the DataFrames that the caller registered; ``streams`` finds the stream that rejected some
    records. ``live`` tables and views, by name in lower case, are read anew by every micro-batch.
    """

    spark: SparkSession
    read_port: ReadPort
    frames: Mapping[str, DataFrame]
    streams: Callable[[str], Stream | None]
    control: DataFrame | None = None
    python_functions: frozenset[str] = frozenset()
    live: Mapping[str, DataFrame] = field(default_factory=dict)
    zone: str = "UTC"
    to: Translation = field(init=False)

    def __post_init__(self) -> None:
        sources = Sources(self.spark, self.read_port, self.frames, self.live)
        self.to = Translation(sources, StageRunner(self.spark, self.control))

    @property
    def metrics(self) -> dict[str, Stream]:
        """The streams that have been read, by the names under which their tuples are counted."""
        return self.to.sources.metrics

    def plan(self, plan: Node) -> QueryPlan:
        """Return the physical plan of a query, whose programs are generated once."""
        return QueryPlan(plan, self.streams, Programs(dumps), self.python_functions, self.zone)

    def bind(self, plan: QueryPlan) -> Output:
        """Return a plan with the types that only Spark knows."""
        return bound_plan(plan, self.to)

    def lower(self, plan: Node) -> DataFrame:
        """Return the result of a query with its hidden columns."""
        return self.to.frame(self.bind(self.plan(plan)))

    def table(self, table: Table | View) -> DataFrame:
        """Return a table of the catalog, or a view that is evaluated when it is read."""
        return self.to.frame(Planner(self.streams, Programs(dumps), zone=self.zone).table(table))
