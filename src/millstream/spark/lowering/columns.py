"""Columns of physical plans as Spark's."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.queries.resolved_expression import Expr
from millstream.physical.node import Column as PlanColumn
from millstream.physical.node import Guard


def expression(expr: Expr | None) -> Column:
    """Return an expression as Spark evaluates it."""
    assert expr is not None, "the column is computed"
    return F.expr(expr.sql)


def guarded(guard: Guard, value: Column) -> Column:
    """Return a value where there is a tuple to evaluate it on."""
    return value if guard is Guard.NONE else F.when(F.expr(guard.value), value)


def computed(columns: Iterable[PlanColumn], guard: Guard = Guard.NONE) -> list[Column]:
    """Return computed columns; those of a relation become a struct, as expressions name them."""
    relations: dict[str, list[Column]] = {}
    plain: list[Column] = []
    for column in columns:
        own = relations.setdefault(column.relation, []) if column.relation else plain
        own.append(guarded(guard, expression(column.expr)).alias(column.name))
    return [*(F.struct(*fields).alias(name) for name, fields in relations.items()), *plain]


def with_hidden(frame: DataFrame, columns: Iterable[PlanColumn]) -> DataFrame:
    """Return a frame with hidden columns set."""
    for column in columns:
        frame = frame.withColumn(column.name, expression(column.expr))
    return frame
