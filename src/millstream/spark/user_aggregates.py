"""From calls of users' aggregates to programs, and to the columns that these are shipped."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.calls import AggregateCall
from millstream.kernels.specs import AggregateSpec, UserSpec
from millstream.spark.hidden import MARK
from millstream.spark.over_calls import content_spec
from millstream.uda.checked import Body
from millstream.uda.compiler import BASE, compiled


def shipped_arguments(call: AggregateCall, body: Body, name: str) -> dict[str, Column]:
    """The arguments of a call as a body takes them."""
    arguments = {}
    for i, (argument, parameter) in enumerate(zip(call.arguments, body.parameters, strict=True)):
        column = F.expr(argument.sql)
        if argument.type != parameter.type:
            column = column.cast(str(parameter.type))
        arguments[f"{name}_{i}"] = column
    return arguments


def base_spec(call: AggregateCall, name: str, result: str) -> tuple[dict[str, Column], UserSpec]:
    """A call on a bare stream: what it is shipped, and what kernels need to know."""
    assert call.bodies is not None
    body = call.bodies.base
    assert body is not None
    arguments = shipped_arguments(call, body, name)
    results = tuple(f"{result}_{i}" for i in range(len(body.returns)))
    return arguments, UserSpec(compiled(body, BASE), tuple(arguments), results)


def bracket_spec(call: AggregateCall, name: str, result: str) -> tuple[dict[str, Column], AggregateSpec]:
    """A call over bracket windows."""
    assert call.bodies is not None
    body = call.bodies.base or call.bodies.window
    assert body is not None
    return shipped_arguments(call, body, name), content_spec(call, body, name, result)


def opened(frame: DataFrame, calls: Sequence[tuple[AggregateCall, str]]) -> DataFrame:
    """A row for each that aggregates returned for a window; reports that stand among the rows pass."""
    for call, name in calls:
        marks = F.col(MARK).isNotNull() if MARK in frame.columns else F.lit(False)
        others = [F.col(column) for column in frame.columns if column != name]
        frame = frame.where(marks | (F.size(name) > 0)).select(*others, F.explode_outer(name).alias(name))
        frame = frame.withColumn(name, _whole(call, [F.col(name)[f"r{i}"] for i in range(_width(call))]))
    return frame


def put_together(frame: DataFrame, specs: Sequence[tuple[AggregateCall, UserSpec, str]]) -> DataFrame:
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
