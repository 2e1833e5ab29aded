"""From calls of users' aggregates to what these are shipped, and from what they return to columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.codegen.udas.uda_compiler import BASE, CONTENT
from millstream.errors import ExecutionError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.specs import AggregateSpec, UdaSpec
from millstream.program.program import Program
from millstream.spark.planning.over_stage import AnyBody, condition_of, content_spec, names_of, program_of
from millstream.spark.sources.hidden_columns import MARK

MOST_GIVEN = 1_000_000
"""Rows of a table of the catalog that an aggregate may read: every shard has all of them in memory."""


def shipped_arguments(call: AggregateCall, body: AnyBody, name: str) -> dict[str, Column]:
    """The arguments of a call as a body takes them, and its FILTER."""
    arguments = {}
    for i, (argument, parameter) in enumerate(zip(call.arguments, body.parameters, strict=True)):
        column = F.expr(argument.sql)
        if argument.type != parameter.type:
            column = column.cast(str(parameter.type))
        arguments[f"{name}_{i}"] = column
    if not arguments:
        arguments[f"{name}_0"] = F.lit(True)  # something has to tell how many tuples there are
    condition = condition_of(call, name)
    if condition is not None and call.filter is not None:
        arguments[condition] = F.expr(call.filter.sql)
    return arguments


def base_spec(call: AggregateCall, name: str, result: str) -> tuple[dict[str, Column], UdaSpec]:
    """A call on a bare stream: what it is shipped, and what kernels need to know."""
    assert call.bodies is not None
    body = call.bodies.base
    assert body is not None
    results = tuple(f"{result}_{i}" for i in range(len(body.returns)))
    spec = UdaSpec(program_of(body, BASE), names_of(body, name), results, condition=condition_of(call, name))
    return shipped_arguments(call, body, name), spec


def bracket_spec(
    call: AggregateCall, name: str, result: str, mode: str = CONTENT
) -> tuple[dict[str, Column], AggregateSpec]:
    """A call over bracket windows."""
    assert call.bodies is not None
    body = call.bodies.base or call.bodies.window
    assert body is not None
    return shipped_arguments(call, body, name), content_spec(call, body, name, result, mode)


def read_given(program: Program, spark: SparkSession, known: dict[str, pa.Table]) -> None:
    """The tables of the catalog that a program reads, as they are now; ``known`` are those read before."""
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


def opened(frame: DataFrame, calls: Sequence[tuple[AggregateCall, str]]) -> DataFrame:
    """A row for each that aggregates returned for a window; reports that stand among the rows pass."""
    for call, name in calls:
        marks = F.col(MARK).isNotNull() if MARK in frame.columns else F.lit(False)
        others = [F.col(column) for column in frame.columns if column != name]
        frame = frame.where(marks | (F.size(name) > 0)).select(*others, F.explode_outer(name).alias(name))
        frame = frame.withColumn(name, _whole(call, [F.col(name)[f"r{i}"] for i in range(_width(call))]))
    return frame


def collected(frame: DataFrame, calls: Mapping[str, AggregateCall]) -> DataFrame:
    """The columns of returned rows as one column for each call, a struct if it is a row."""
    for name, call in calls.items():
        parts = [f"{name}_{i}" for i in range(_width(call))]
        frame = frame.withColumn(name, _whole(call, [F.col(part) for part in parts])).drop(*parts)
    return frame


def put_together(frame: DataFrame, specs: Sequence[tuple[AggregateCall, UdaSpec, str]]) -> DataFrame:
    """The columns of each result as one column, a struct if it is a row."""
    for call, spec, name in specs:
        parts = [F.col(n) for n in spec.results]
        frame = frame.withColumn(name, _whole(call, parts)).drop(*spec.results)
    return frame


def _width(call: AggregateCall) -> int:
    return len(call.type.fields) if _is_row(call) else 1


def _whole(call: AggregateCall, parts: Sequence[Column]) -> Column:
    """A result from its columns; what combines panes may return them in types of its own."""
    if not _is_row(call):
        return parts[0].cast(str(call.type))
    fields = zip(parts, call.type.fields, strict=True)
    return F.struct(*(part.cast(str(field.type)).alias(field.name) for part, field in fields))


def _is_row(call: AggregateCall) -> bool:
    return call.user is not None and call.user.returns_row
