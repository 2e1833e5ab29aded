"""Queries with sequence patterns over a stream as the stages that Spark would host, and their rows."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.kernels.column_names import BRANCH, KEY
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.kernel_specs import KernelSpec, PatternBranch, PatternGroupSpec, ReorderSpec
from millstream.kernels.patterns.tagged_rows import branch_name, branched_schema
from millstream.kernels.specs import PatternSpec
from millstream.physical.node import schema_of
from millstream.physical.nodes import SearchedPattern
from millstream.physical.operators.pattern import pattern_spec
from millstream.physical.operators.pattern_group import group_patterns
from millstream.physical.operators.udas import returned_columns
from millstream.physical.programs import Programs
from millstream.physical.promise_units import promises_of
from millstream.plan import nodes
from millstream.plan.pattern_parts import PatternSearch, taken_apart
from millstream.stage.pipeline import Input, Pipeline
from millstream.types import TIMESTAMP, Type
from oracle import Arrivals
from oracle.values.expressions import compiled, holds
from tests.engine.without_spark import Stage, Value

RowValues = Sequence[Any]


@dataclass(frozen=True)
class PatternQuery:
    """A search, and the expressions over its matches, which the oracle evaluates instead of Catalyst."""

    node: PatternSearch
    search: tuple[SearchedPattern, PatternSpec]
    conditions: tuple[Callable[[RowValues], bool], ...]
    outputs: tuple[Callable[[RowValues], Any], ...]

    @property
    def output(self) -> pa.Schema:
        spec = self.search[1]
        return schema_of(tuple(returned_columns(spec.program, spec.results)))

    def results(self, found: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Timestamp and columns of every result."""
        return [
            (time, *(output(match) for output in self.outputs))
            for time, *match in found
            if all(condition(match) for condition in self.conditions)
        ]


def pattern_query(plan: nodes.Node) -> PatternQuery:
    """A plan that is a pattern over a stream, without tables."""
    assert isinstance(plan, nodes.PatternMatch)
    above = taken_apart(plan)
    search = next(node for node in above.walk() if isinstance(node, PatternSearch))
    outputs: tuple[Expr, ...] = tuple(ref.expr for ref in plan.outputs)
    conditions: list[Expr] = []
    for node in above.walk():
        assert isinstance(node, nodes.Project | nodes.Filter | PatternSearch | nodes.StreamScan)
        conditions += [node.condition] if isinstance(node, nodes.Filter) else []
    return PatternQuery(
        search,
        pattern_spec(search, Programs()),
        tuple(holds(condition, search.schema) for condition in conditions),
        tuple(compiled(output, search.schema) for output in outputs),
    )


def run(
    query: PatternQuery, given: Arrivals, chance: random.Random, *, ended: bool = True
) -> list[tuple[Any, ...]]:
    """The results of one query; batches, tasks, shards and failures are left to chance."""
    search, spec = query.search
    stage = _stage(query.node, search.values, spec, query.output)
    return query.results(stage.run(given, chance, ended=ended))


def run_together(
    queries: Sequence[PatternQuery], given: Arrivals, chance: random.Random, *, ended: bool = True
) -> list[list[tuple[Any, ...]]]:
    """The results of several queries that search in the same partitions, as one stage."""
    whole = group_patterns([query.search for query in queries])
    branches = tuple(
        PatternBranch(spec, query.output) for spec, query in zip(whole.specs, queries, strict=True)
    )
    schema = branched_schema([branch.output for branch in branches])
    stage = _stage(queries[0].node, whole.values, PatternGroupSpec(branches), schema)
    found: list[list[Sequence[Any]]] = [[] for _ in queries]
    for time, *row in stage.run(given, chance, ended=ended):
        values = dict(zip(schema.names, row, strict=True))
        names = branches[values[BRANCH]].output.names
        match = [values[branch_name(values[BRANCH], name)] for name in names]
        found[values[BRANCH]].append((time, *match))
    return [query.results(rows) for query, rows in zip(queries, found, strict=True)]


def _stage(
    node: PatternSearch,
    values: Mapping[str, tuple[Expr, Type]],
    kernel: KernelSpec,
    output: pa.Schema,
) -> Stage:
    scan = node.input
    assert isinstance(scan, nodes.StreamScan)
    keys = pattern_spec(node, Programs())[0].keys
    shipped: dict[str, Value] = {name: compiled(value, scan.schema) for name, (value, _) in values.items()}
    fields = [pa.field(name, arrow_type(type_)) for name, (_, type_) in values.items()]
    if keys:
        shipped[KEY] = partial(_identity, [_place(scan, key.column) for key in keys])
        fields.append(pa.field(KEY, pa.int64()))
    if not shipped:
        shipped["one"] = lambda row: True
        fields.append(pa.field("one", pa.bool_()))
    time = arrow_type(TIMESTAMP)
    promises = promises_of(scan.stream, TIMESTAMP)
    source = Input(scan.stream.name, pa.schema(fields), time, promises).without_generosity()
    pipeline = Pipeline((source,), (ReorderSpec(), kernel), output, time)
    return Stage(pipeline, scan.stream, shipped, tuple(output.names), bool(keys))


def _identity(places: Sequence[int], row: RowValues) -> int:
    """Return an identity of a partition; Spark hashes too."""
    return zlib.crc32(repr([row[place] for place in places]).encode())


def _place(scan: nodes.StreamScan, ref: ColumnRef | None) -> int:
    assert ref is not None, "keys are columns"
    return [column.name.lower() for column in scan.schema].index(ref.name.lower())
