"""A query with one sequence pattern over a stream as the stage that Spark would host, and its rows."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 (Spark's own custom)
from tests.engine.without_spark import Stage, Value

from millstream.analysis.expressions import ColumnRef, Expr
from millstream.kernels.base import KEY
from millstream.kernels.pattern import PatternMatch
from millstream.kernels.reorder import Reorder
from millstream.kernels.typed import arrow_type
from millstream.plan import nodes
from millstream.plan.patterns import PatternSearch, taken_apart
from millstream.reference import Arrivals
from millstream.reference.expressions import compiled, holds
from millstream.spark.patterns import search_of
from millstream.spark.promises import promises_of
from millstream.stage.spec import Input, Pipeline
from millstream.types import TIMESTAMP

RowValues = Sequence[Any]


@dataclass(frozen=True)
class PatternStage:
    """The stage of the search, and what Catalyst would make of its matches, which the oracle evaluates."""

    stage: Stage
    conditions: tuple[Callable[[RowValues], bool], ...]
    outputs: tuple[Callable[[RowValues], Any], ...]

    def run(self, given: Arrivals, chance: random.Random, *, ended: bool = True) -> list[tuple[Any, ...]]:
        """Timestamp and columns of every result; batches, tasks, shards and failures are left to chance."""
        return [
            (time, *(output(match) for output in self.outputs))
            for time, *match in self.stage.run(given, chance, ended=ended)
            if all(condition(match) for condition in self.conditions)
        ]


def pattern_staged(plan: nodes.Node) -> PatternStage:
    """The stage of a plan that is a pattern over a stream, without tables."""
    assert isinstance(plan, nodes.PatternMatch)
    above = taken_apart(plan)
    search = next(node for node in above.walk() if isinstance(node, PatternSearch))
    outputs: tuple[Expr, ...] = tuple(ref.expr for ref in plan.outputs)
    conditions: list[Expr] = []
    for node in above.walk():
        assert isinstance(node, nodes.Project | nodes.Filter | PatternSearch | nodes.StreamScan)
        conditions += [node.condition] if isinstance(node, nodes.Filter) else []
    return PatternStage(
        _stage(search),
        tuple(holds(condition, search.schema) for condition in conditions),
        tuple(compiled(output, search.schema) for output in outputs),
    )


def _stage(node: PatternSearch) -> Stage:
    scan = node.input
    assert isinstance(scan, nodes.StreamScan)
    search = search_of(node)
    shipped: dict[str, Value] = {
        name: compiled(value, scan.schema) for name, (value, _) in search.values.items()
    }
    fields = [pa.field(name, arrow_type(type_)) for name, (_, type_) in search.values.items()]
    if search.keys:
        shipped[KEY] = partial(_identity, [_place(scan, key.column) for key in search.keys])
        fields.append(pa.field(KEY, pa.int64()))
    if not shipped:
        shipped["one"] = lambda row: True
        fields.append(pa.field("one", pa.bool_()))
    time = arrow_type(TIMESTAMP)
    promises = promises_of(scan.stream, T.TimestampType())
    source = Input(scan.stream.name, pa.schema(fields), time, promises).without_generosity()
    kernels: list[Callable[[], Any]] = [Reorder, partial(PatternMatch, search.spec)]
    pipeline = Pipeline((source,), lambda: [make() for make in kernels], pa.schema(search.results), time)
    return Stage(pipeline, scan.stream, shipped, search.spec.results, bool(search.keys))


def _identity(places: Sequence[int], row: RowValues) -> int:
    """What tells partitions apart; Spark hashes too."""
    return zlib.crc32(repr([row[place] for place in places]).encode())


def _place(scan: nodes.StreamScan, ref: ColumnRef | None) -> int:
    assert ref is not None, "keys are columns"
    return [column.name.lower() for column in scan.schema].index(ref.name.lower())
