"""What is shipped of a flow to a stage: columns, what tells partitions apart, times, promises about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.catalog.entries import Reader, Stream, TimestampKind
from millstream.errors import NotExecutableError
from millstream.kernels.core.kernel import KEY, KEY2
from millstream.spark.lowering.frames import InputFrame, WindowAttribute
from millstream.spark.planning.stream_disorder import promises_of, promises_on
from millstream.spark.sources.hidden_columns import (
    COUNTED,
    FILE,
    KEEP,
    LINE,
    MARK,
    NUMBER,
    ORIGIN,
    PARTITION,
    PROMISE,
    SEGMENT,
    STAMP,
    SUBSTREAM,
    TIME,
)
from millstream.stage.pipeline import Input, ProgressAttribute

_ARRIVAL = (PARTITION, SEGMENT, FILE, SUBSTREAM, PROMISE, LINE, KEEP, COUNTED)
"""What tells the order and the promises of tuples that are still to be judged; some names have numbers."""
_UNPROMISED = "none"
"""The suffix of columns for an attribute about which nothing is promised: there are none."""


def shipped_columns(
    leg: InputFrame, shipped: Mapping[str, Column], keys: Sequence[Column] | None, key: str | None
) -> dict[str, Column]:
    """What is shipped of every tuple of a leg: the columns, what identifies its partition, and its time."""
    guarded = {name: leg.guarded(expr) for name, expr in shipped.items()}
    if key is None:
        guarded |= {name: leg.guarded(expr) for name, expr in _identity(leg.frame, keys or ()).items()}
    if leg.axis is not None and leg.stream is not None:
        return {**guarded, **_along(leg, leg.axis, leg.stream)}
    # Spark writes the time of a micro-batch down before running it, and uses it again in a replay.
    return {**guarded, TIME: F.current_timestamp() if is_latent(leg.stream) else F.col(TIME)}


def is_latent(stream: Stream | None) -> bool:
    """Whether tuples of a stream get a timestamp only when an operator needs one."""
    return stream is not None and stream.timestamp.kind is TimestampKind.LATENT


def _along(leg: InputFrame, axis: WindowAttribute, stream: Stream) -> dict[str, Column]:
    """The attribute of a window as the time of tuples, and their timestamp beside it.

    What is promised binds tuples too that the query does not want, and of which it has no columns.
    """
    if axis.is_time:
        return {TIME: F.col(TIME).cast(type_of(leg, axis.column))}
    time = leg.guarded(F.expr(axis.column.sql))
    if axis.attribute is not None:
        number = list(stream.promises_on_others).index(axis.attribute)
        time = F.col(f"{LINE}{number}").cast(type_of(leg, axis.column))
    external = stream.timestamp.kind is TimestampKind.EXTERNAL
    return {TIME: time, **({STAMP: F.col(TIME)} if external else {})}


def packed(
    leg: InputFrame,
    shipped: Mapping[str, Column],
    keys: Sequence[Column] | None,
    key: str | None,
    *,
    spread: bool,
) -> tuple[DataFrame, Input]:
    """A leg with what is shipped of it, and the description of that."""
    frame, stream = leg.frame, leg.stream
    columns = shipped_columns(leg, shipped, keys, key)
    if frame.isStreaming or stream is not None or leg.staged:
        travelling = (ORIGIN, NUMBER, MARK) if leg.staged else _ARRIVAL
        present = [F.col(name) for name in frame.columns if name.startswith(travelling)]
        if leg.staged and MARK not in frame.columns:
            present.append(F.lit(None).cast("string").alias(MARK))  # over tables stages report nothing
    else:
        present = [F.spark_partition_id().cast("bigint").alias(SEGMENT)]
    result = frame.select(*(expr.alias(name) for name, expr in columns.items()), *present)
    names = [name for name in columns if name not in (TIME, STAMP)]
    schema = to_arrow_schema(T.StructType([result.schema[name] for name in names]), timezone="UTC")
    axis = leg.axis if stream is not None else None
    own, *others = _lines(stream, axis, result.schema)
    return result, Input(
        name=stream.name if stream is not None else "",
        columns=schema,
        time_type=own.type,
        promises=own.promises,
        key=key,
        chained=leg.staged,
        changes=leg.changes,
        spread=spread,
        partitions=_partitions(stream),
        stored=stream is None and not leg.staged,
        attribute=own.attribute,
        latent=own.attribute is None and is_latent(stream),
        suffix=own.suffix,
        counted=COUNTED in result.columns,
        others=tuple(others),
    )


def _lines(
    stream: Stream | None, axis: WindowAttribute | None, schema: T.StructType
) -> list[ProgressAttribute]:
    """The attributes about which something is promised, that of TIME first."""

    def line(attribute: str | None, column: str, suffix: str) -> ProgressAttribute:
        kind = schema[column].dataType
        _check_time(kind)
        if attribute is None or stream is None:
            promises = promises_of(stream, kind)
        else:
            promises = promises_on(stream, attribute, kind)
        type_ = to_arrow_schema(T.StructType([schema[column]]), timezone="UTC").field(0).type
        return ProgressAttribute(attribute, column, type_, promises, suffix)

    numbers = {} if stream is None else {a: str(i) for i, a in enumerate(stream.promises_on_others)}
    if axis is None or axis.is_time:
        lines = [line(None, TIME, "")]
    else:
        attribute = axis.attribute or axis.column.name.lower()
        lines = [line(attribute, TIME, numbers.pop(axis.attribute or "", _UNPROMISED))]
        lines += [line(None, STAMP, "")] if STAMP in schema.names else []
    return lines + [line(attribute, f"{LINE}{number}", number) for attribute, number in numbers.items()]


def _partitions(stream: Stream | None) -> int:
    """How many source partitions there are: one, unless the source says otherwise."""
    if stream is None or not isinstance(stream.origin, Reader):
        return 1
    return int(stream.origin.option("partitions") or 1)


def _identity(frame: DataFrame, keys: Sequence[Column]) -> dict[str, Column]:
    """What tells partitions apart: an integer by itself, anything else by 128 bits of hash."""
    if not keys:
        return {}
    kinds = [
        f.dataType for f in frame.select(*(key.alias(f"k{i}") for i, key in enumerate(keys))).schema.fields
    ]
    if len(keys) == 1 and isinstance(kinds[0], T.IntegralType):
        return {KEY: keys[0].cast("bigint")}
    return dict(zip((KEY, KEY2), hashes(frame, keys), strict=True))


def hashes(frame: DataFrame, keys: Sequence[Column]) -> tuple[Column, Column]:
    """128 bits of hash."""
    fields = frame.select(*(key.alias(f"k{i}") for i, key in enumerate(keys))).schema.fields
    parts: list[Column] = []
    for key, field_ in zip(keys, fields, strict=True):
        # Spark's hash passes over NULLs, so that (NULL, 1) would be (1, NULL).
        parts += [key.isNull(), _hashable(key, field_.dataType)]
    return F.xxhash64(*parts), F.xxhash64(F.lit(1), *parts)


def is_integer(frame: DataFrame, value: Column) -> bool:
    return isinstance(frame.select(value.alias("k")).schema["k"].dataType, T.IntegralType)


def _hashable(key: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.DoubleType | T.FloatType):
        # There are two zeros, which are one group.
        return F.when(key == 0, F.lit(0.0)).otherwise(key)
    return key if isinstance(kind, T.AtomicType) else F.to_json(F.struct(key))


def type_of(leg: InputFrame, column: ColumnRef) -> T.DataType:
    return leg.frame.select(F.expr(column.sql).alias("a")).schema["a"].dataType


def has_value(leg: InputFrame, column: ColumnRef) -> Column:
    value = F.expr(column.sql)
    if isinstance(type_of(leg, column), T.DoubleType | T.FloatType):
        return value.isNotNull() & ~F.isnan(value) & (F.abs(value) != float("inf"))
    return value.isNotNull()


def time_type_of(leg: InputFrame) -> T.DataType:
    stream = leg.stream
    if stream is not None and leg.axis is not None:
        return type_of(leg, leg.axis.column)
    if is_latent(stream):
        return T.TimestampType()
    return leg.frame.schema[TIME].dataType


def _check_time(kind: T.DataType) -> None:
    if isinstance(kind, T.DecimalType) and kind.precision > 18:
        raise NotExecutableError(
            f"a stream ordered by {kind.simpleString()} cannot be aggregated or checked for late tuples",
            hint="order it by a decimal of at most 18 digits",
        )
