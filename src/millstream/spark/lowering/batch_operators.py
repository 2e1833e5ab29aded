"""Tables beside aggregates of the user's: rows in an order, groups, sorting, set operations."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.resolved_query import Arrangement, PatternClause
from millstream.plan import nodes
from millstream.spark.lowering.frames import InputFrame, named
from millstream.spark.lowering.input_frames import has_value
from millstream.spark.session.spark_types import to_spark_type
from millstream.spark.sources.hidden_columns import TIME, shown
from millstream.types import BIGINT, Field
from millstream.windows.window_spec import LandmarkWindow


def in_order(leg: InputFrame, column: ColumnRef | None) -> InputFrame:
    """A table as stages take it: the column is the time of its rows, or all have the same."""
    if column is None:
        time = F.lit(0).cast("bigint")
    else:
        missing = F.raise_error(
            F.lit(f"a row has no place in the order of '{column.name}', where it is NULL")
        )
        time = F.when(has_value(leg, column), F.expr(column.sql)).otherwise(missing)
    return timed(leg, time)


def in_sequence(leg: InputFrame, pattern: PatternClause) -> InputFrame:
    """A table in the order in which a pattern is searched in it: rows that tie stay as they are."""
    keys = [F.expr(ColumnRef(pattern.alias, name).sql) for name in pattern.sequence_by]
    # A number of the row is its time, as SEQUENCE BY may have several columns of any type.
    frame = leg.frame.orderBy(*keys, F.monotonically_increasing_id())
    return timed(replace(leg, frame=frame), F.monotonically_increasing_id())


def timed(leg: InputFrame, time: Column) -> InputFrame:
    """A table with the time of its rows; whatever it comes from, it is now stored."""
    return replace(leg, frame=shown(leg.frame).withColumn(TIME, time), staged=False, marked=False)


def all_of(table: nodes.Node) -> nodes.Windowed:
    """The window that holds a whole table, which ends when the table does."""
    return nodes.Windowed(table, "", LandmarkWindow(), Field("edge", BIGINT))


def aggregated(frame: DataFrame, node: nodes.WindowAggregate) -> DataFrame:
    """Groups of a table whose aggregates are all Spark's: over nothing at all they have values too."""
    keys = [key.expr.column or ColumnRef("", key.name, key.expr.type) for key in node.group_by]
    grouped = [F.expr(key.expr.sql).alias(f"g{i}") for i, key in enumerate(node.group_by)]
    calls = [F.expr(call.text).alias(f"r{i}") for i, call in enumerate(node.aggregates)]
    result = frame.groupBy(*grouped).agg(*calls) if calls else frame.select(*grouped).distinct()
    columns = [(key, f"g{i}") for i, key in enumerate(keys)]
    return named(result, [*columns, *((call.result, f"r{i}") for i, call in enumerate(node.aggregates))])


def arranged(frame: DataFrame, arrangement: Arrangement) -> DataFrame:
    """In the order of ORDER BY, which is that of the rows from now on, and only so many of them."""
    result = shown(frame)
    names = result.columns
    result = result.toDF(*(f"c{i}" for i in range(len(names))))  # two columns may have the same name
    keys = []
    for key in arrangement.keys:
        column = F.col(f"c{key.column}")
        if key.descending:
            keys.append(column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last())
        else:
            keys.append(column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last())
    result = result.orderBy(*keys) if keys else result
    result = result.offset(arrangement.offset) if arrangement.offset else result
    result = result.limit(arrangement.limit) if arrangement.limit is not None else result
    return result.toDF(*names)


def combined(left: DataFrame, right: DataFrame, node: nodes.WindowSetOperation) -> DataFrame:
    """A set operation on tables."""
    one, other = (_aligned(frame, node) for frame in (left, right))
    match node.kind, node.all:
        case "UNION", every:
            united = one.union(other)
            return united if every else united.distinct()
        case "INTERSECT", every:
            return one.intersectAll(other) if every else one.intersect(other)
        case _, every:
            return one.exceptAll(other) if every else one.subtract(other)


def _aligned(frame: DataFrame, node: nodes.WindowSetOperation) -> DataFrame:
    own = shown(frame)
    own = own.toDF(*(f"c{i}" for i in range(len(own.columns))))
    return own.select(
        *(
            (F.col(f"c{i}").cast(to_spark_type(f.type)) if f.type.is_known else F.col(f"c{i}")).alias(f.name)
            for i, f in enumerate(node.fields)
        )
    )
