"""Streams and tables of the catalog as DataFrames.

A stream's DataFrame has, beside its columns, hidden ones that every operator passes on: the timestamp and
the order of arrival (semantics, section 1). What cannot be read in the schema never gets that far: it is a
bad record, counted, and a stream of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812

from millstream.catalog.entries import FILE_FORMATS, Port, Reader, Stream, Table, TimestampKind
from millstream.errors import ExecutionError
from millstream.spark.paths import streamable
from millstream.spark.types import to_spark_type
from millstream.types import Field

TIME = "__ms_time"
FILE_TIME, FILE, BLOCK, ROW = "__ms_file_time", "__ms_file", "__ms_block", "__ms_row"
HIDDEN = (TIME, FILE_TIME, FILE, BLOCK, ROW)
"""In the order by which results are sorted."""
BAD = "__ms_bad"
NO_TIMESTAMP = "the timestamp is NULL"
NOT_IN_SCHEMA = "it cannot be read in the stream's schema"

# Formats whose rows are texts or come with columns of the source's own.
NATIVE_COLUMNS = {
    "text": {"value"},
    "socket": {"value", "timestamp"},
    "rate": {"timestamp", "value"},
    "rate-micro-batch": {"timestamp", "value"},
    "kafka": {"key", "value", "topic", "partition", "offset", "timestamp", "timestamptype", "headers"},
}
OUR_OPTIONS = frozenset({"valueformat", "follow"})
"""Options that Spark does not know."""
_LINE_FORMATS = frozenset({"text", "socket", "kafka"})
_CHECKED_FORMATS = frozenset({"csv", "json", "xml"})
"""Formats whose reader tells which records it could not read."""

ReadPort = Callable[[int], DataFrame]
"""The lines that arrive at a port, as files of (arrival TIMESTAMP, line STRING)."""


@dataclass(frozen=True)
class StreamFrames:
    """A stream as it was read: the tuples, and what was no tuple."""

    good: DataFrame
    bad: DataFrame


def read_stream(
    stream: Stream, spark: SparkSession, read_port: ReadPort, metrics: str | None = None
) -> StreamFrames:
    """Read a stream; under the name ``metrics`` its tuples and bad records are counted."""
    raw = _raw(stream, spark, read_port)
    return classify(raw, stream, metrics)


def classify(raw: DataFrame, stream: Stream, metrics: str | None = None) -> StreamFrames:
    """Part the tuples from the bad records, and give the tuples their timestamp."""
    timestamp = stream.timestamp
    frame = raw if BAD in raw.columns else raw.withColumn(BAD, F.lit(None).cast("string"))
    time = F.col(timestamp.column) if timestamp.column else F.lit(None).cast("timestamp")
    frame = frame.withColumn(TIME, time)
    is_bad = F.col(BAD).isNotNull()
    if timestamp.kind is TimestampKind.EXTERNAL:
        is_bad = is_bad | F.col(TIME).isNull()
    if metrics is not None:
        frame = frame.observe(
            metrics,
            F.count(F.lit(1)).alias("rows"),
            F.count_if(is_bad).alias("bad"),
            # Spark reads only the columns that somebody needs, and a record would be bad or not as the
            # query happens to ask for the column that cannot be read. This asks for them all.
            F.max(_fingerprint(raw)).alias("fingerprint"),
            _zoned(F.max(F.when(~is_bad, F.col(TIME))), frame.schema[TIME].dataType).alias("newest"),
        )
    names = [f.name for f in stream.schema]
    hidden = [name for name in HIDDEN if name in frame.columns]
    as_text = F.coalesce(F.col(BAD), F.to_json(F.struct(*map(_column, names))))
    reason = F.when(F.col(BAD).isNotNull(), NOT_IN_SCHEMA).otherwise(NO_TIMESTAMP)
    # A bad record has no place in time, but it has come in some order.
    arrival = [_column(name) for name in hidden if name != TIME]
    return StreamFrames(
        good=frame.where(~is_bad).select(*map(_column, (*names, *hidden))),
        bad=frame.where(is_bad).select(
            as_text.alias("record"),
            reason.alias("reason"),
            F.lit(None).cast("timestamp").alias(TIME),
            *arrival,
        ),
    )


def _zoned(time: Column, kind: T.DataType) -> Column:
    """A time for a report; Spark would write it in the zone of the JVM, and without saying which."""
    return F.date_format(time, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX") if kind == T.TimestampType() else time


def _fingerprint(frame: DataFrame) -> Column:
    """Something that cannot be computed without reading every column; maps cannot be hashed."""
    return F.xxhash64(
        *(
            F.size(_column(f.name)) if _has_map(f.dataType) else _column(f.name)
            for f in frame.schema.fields
            if not _has_map(f.dataType) or isinstance(f.dataType, T.MapType)
        )
    )


def _has_map(kind: T.DataType) -> bool:
    match kind:
        case T.MapType() | T.VariantType():
            return True
        case T.ArrayType():
            return _has_map(kind.elementType)
        case T.StructType():
            return any(_has_map(field.dataType) for field in kind.fields)
        case _:
            return False


def numbered(batch: DataFrame) -> DataFrame:
    """The rows of a micro-batch with their number in order of reading, which only a batch can have."""
    return batch.withColumn(ROW, F.monotonically_increasing_id())


def read_table(table: Table, spark: SparkSession) -> DataFrame:
    assert isinstance(table.origin, Reader)
    reader = spark.read.format(table.origin.format).options(**_options(table.origin))
    if table.schema is not None:
        reader = reader.schema(_struct(table.schema))
    return reader.load()


def _raw(stream: Stream, spark: SparkSession, read_port: ReadPort) -> DataFrame:
    """The stream's columns as far as the source has them, with ``BAD`` where the reader tells."""
    internal = stream.timestamp.column if stream.timestamp.kind is TimestampKind.INTERNAL else None
    declared = tuple(f for f in stream.schema if f.name != internal)
    match stream.origin:
        case Port(number):
            frame = parse_lines(_with_arrival(read_port(number)), "line", declared)
            return frame.withColumnRenamed("arrival", internal) if internal else frame
        case Reader() as reader:
            frame = _read(reader, declared, spark, stream.name)
        case _:
            raise ExecutionError(
                f"stream '{stream.name}' was declared without a source",
                hint="add USING format OPTIONS (...) or SOURCE 'port4445' to its CREATE STREAM",
            )
    # Spark writes the time of a micro-batch down before running it, and uses it again in a replay.
    return frame.withColumn(internal, F.current_timestamp()) if internal else frame


def _read(reader: Reader, declared: tuple[Field, ...], spark: SparkSession, name: str) -> DataFrame:
    format_ = reader.format.lower()
    source = spark.readStream.format(reader.format).options(**_options(reader))
    path = reader.option("path")
    if format_ in FILE_FORMATS and path is not None:
        source = source.option("path", streamable(path, spark, f"stream '{name}'"))
    native = NATIVE_COLUMNS.get(format_)
    if native is None:
        schema = _struct(declared)
        if format_ in _CHECKED_FORMATS:
            source = source.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", BAD)
            schema = T.StructType([*schema.fields, T.StructField(BAD, T.StringType())])
        frame = source.schema(schema).load()
        return _with_arrival(frame) if format_ in FILE_FORMATS else frame
    frame = source.load()
    if format_ in FILE_FORMATS:
        frame = _with_arrival(frame)
    if format_ in _LINE_FORMATS and not {f.name.lower() for f in declared} <= native:
        return parse_lines(frame, "value", declared, reader.option("valueFormat"))
    kept = [_column(name) for name in HIDDEN if name in frame.columns]
    return frame.select(*(_column(f.name).cast(to_spark_type(f.type)).alias(f.name) for f in declared), *kept)


def parse_lines(
    frame: DataFrame, line: str, declared: tuple[Field, ...], form: str | None = None
) -> DataFrame:
    """Lines of JSON or CSV as columns; without a form, what begins with a brace is JSON."""
    schema = T.StructType([*_struct(declared).fields, T.StructField(BAD, T.StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
    text = _column(line).cast("string")
    as_json = F.from_json(text, schema, options)
    as_csv = F.from_csv(text, schema.toDDL(), options)
    parsed: Column
    match (form or "").lower():
        case "json":
            parsed = as_json
        case "csv":
            parsed = as_csv
        case _:
            parsed = F.when(F.ltrim(text).startswith("{"), as_json).otherwise(as_csv)
    others = [_column(name) for name in frame.columns if name != line]
    fields = [F.col("parsed").getField(f.name).alias(f.name) for f in schema.fields]
    return frame.where(F.trim(text) != "").select(parsed.alias("parsed"), *others).select(*fields, *others)


def _with_arrival(frame: DataFrame) -> DataFrame:
    """Files arrive in the order of modification time and name; of a large file Spark reads pieces."""
    metadata = F.col("_metadata")
    return frame.select(
        "*",
        metadata.getField("file_modification_time").alias(FILE_TIME),
        metadata.getField("file_name").alias(FILE),
        metadata.getField("file_block_start").alias(BLOCK),
    )


def _options(reader: Reader) -> dict[str, str]:
    """The user's options, and better defaults for csv than Spark's.

    A quote inside quotes is doubled, as everybody writes it, we too. A header that does not fit the schema is
    an error instead of mixed-up columns.
    """
    options = {key: value for key, value in reader.options if key.lower() not in OUR_OPTIONS}
    if reader.format.lower() != "csv":
        return options
    defaults = {} if reader.option("escape") else {"escape": '"'}
    if (reader.option("header") or "").lower() == "true" and not reader.option("enforceSchema"):
        defaults["enforceSchema"] = "false"
    return {**defaults, **options}


def _struct(fields: tuple[Field, ...]) -> T.StructType:
    return T.StructType([T.StructField(f.name, to_spark_type(f.type)) for f in fields])


def _column(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")
