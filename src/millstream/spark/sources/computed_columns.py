"""Computed columns of streams and tables, and the records whose expression fails.

Spark's ``TryEval`` makes a failure NULL. Around a struct with the value, a NULL struct is a failure, and a
struct with NULL is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.queries.resolved_expression import Expr
from millstream.catalog.entries import ComputedColumn, not_computed
from millstream.spark.sources.hidden_columns import column
from millstream.types import Field

ATTEMPT = "__ms_attempt"
"""Prefix of the columns with attempts to compute a column."""


def with_computed(frame: DataFrame, computed: Sequence[ComputedColumn], schema: Sequence[Field]) -> DataFrame:
    """Add computed columns, each NULL where its expression fails, and the attempts behind them."""
    types = {field.name: field.type for field in schema}
    for number, one in enumerate(computed):
        assert isinstance(one.expr, Expr)
        attempt = f"{ATTEMPT}{number}"
        frame = frame.withColumn(attempt, _attempt(frame, one.expr, str(types[one.name])))
        frame = frame.withColumn(one.name, F.col(attempt).getField("value"))
    return frame


def failure(computed: Sequence[ComputedColumn]) -> Column | None:
    """Return the reason for which a record is bad, if an expression has failed; NULL if none has."""
    reasons = [
        F.when(F.col(f"{ATTEMPT}{number}").isNull(), not_computed(one.name))
        for number, one in enumerate(computed)
    ]
    return F.coalesce(*reasons) if reasons else None


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
    return guarded if first is None else F.when(F.bit_count(column(first.name).isNull()) <= 1, guarded)
