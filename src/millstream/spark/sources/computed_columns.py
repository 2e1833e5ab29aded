"""Computed columns of streams and tables, stateless queries below an order, and records that fail in them.

Spark's ``TryEval`` makes a failure NULL. Around a struct with the value, a NULL struct is a failure, and a
struct with NULL is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.queries.resolved_expression import Expr
from millstream.catalog.entries import (
    NOT_TESTED,
    ComputedColumn,
    SelectStep,
    Stream,
    not_computed,
    source_columns,
)
from millstream.spark.sources.hidden_columns import column, hidden
from millstream.types import Field

ATTEMPT = "__ms_attempt"
"""Prefix of the columns with attempts to compute something."""
FAILED = "__ms_failed"
"""The reason for which a record is bad, if an expression has failed on it."""
RECORD = "__ms_record"
"""The record as text: what could not be read, or the columns of the source."""


def prepared(frame: DataFrame, stream: Stream, bad: str) -> DataFrame:
    """Compute the columns of a stream from those of its source; the column ``bad`` has unreadable records."""
    read = stream.read
    names = [field.name for field in source_columns(read.schema, read.computed)]
    text = F.coalesce(F.col(bad), F.to_json(F.struct(*map(column, names))))
    frame = frame.withColumn(RECORD, text).withColumn(FAILED, F.lit(None).cast("string"))
    frame = with_computed(frame, read.computed, read.schema)
    if stream.selection is not None:
        for step in stream.selection.steps:
            frame = _selected(frame, step, bad)
    return frame


def with_computed(frame: DataFrame, computed: Sequence[ComputedColumn], schema: Sequence[Field]) -> DataFrame:
    """Add computed columns, each NULL where its expression fails, and the reason of the first failure."""
    types = {field.name: field.type for field in schema}
    for number, one in enumerate(computed):
        assert isinstance(one.expr, Expr)
        attempt = f"{ATTEMPT}{number}"
        frame = frame.withColumn(attempt, _attempt(frame, one.expr, str(types[one.name])))
        frame = frame.withColumn(one.name, F.col(attempt).getField("value"))
        if FAILED in frame.columns:
            reason = F.when(F.col(attempt).isNull(), not_computed(one.name))
            frame = frame.withColumn(FAILED, F.coalesce(FAILED, reason))
    return frame.drop(*(f"{ATTEMPT}{number}" for number in range(len(computed))))


def _selected(frame: DataFrame, step: SelectStep, bad: str) -> DataFrame:
    """Apply a SELECT; records that have failed stay, with their reason."""
    attempts: dict[str, Column] = {}
    reasons: list[Column] = []

    def attempted(expr: object, type_: str, reason: str) -> Column:
        assert isinstance(expr, Expr)
        name = f"{ATTEMPT}{len(attempts)}"
        attempts[name] = _attempt(frame, expr, type_).alias(name)
        reasons.append(F.when(F.col(name).isNull(), reason))
        return F.col(name).getField("value")

    tests = [attempted(condition, "BOOLEAN", NOT_TESTED) for condition in step.conditions]
    types = {field.name: str(field.type) for field in step.schema}
    values = [attempted(c.expr, types[c.name], not_computed(c.name)).alias(c.name) for c in step.columns]
    failed = F.coalesce(FAILED, *reasons)
    tried = frame.alias(step.alias).select("*", *attempts.values())
    has_failed = F.col(bad).isNotNull() | F.col(FAILED).isNotNull()
    for number, test in enumerate(tests):
        has_failed = has_failed | F.col(f"{ATTEMPT}{number}").isNull()
        tried = tried.where(has_failed | F.coalesce(test, F.lit(False)))
    others = [F.col(name) for name in hidden(frame.columns) if name != FAILED]
    return tried.select(*values, *others, failed.alias(FAILED))


def _attempt(frame: DataFrame, expr: Expr, type_: str) -> Column:
    """Return a struct with the value of an expression; NULL if it cannot be evaluated."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    jvm: Any = frame.sparkSession._jvm
    utilities = jvm.org.apache.spark.sql.classic.ExpressionUtils
    value: Any = F.expr(f"named_struct('value', CAST(({expr.sql}) AS {type_}))")
    attempt = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(utilities.expression(value._jc))
    guarded = ClassicColumn(utilities.column(attempt))
    # Spark evaluates the common parts of several expressions first, where nothing catches their failures, but
    # not those behind a condition. The optimizer does not see that this one is always true.
    first = next(expr.columns(), None)
    return guarded if first is None else F.when(F.bit_count(F.expr(first.sql).isNull()) <= 1, guarded)
