"""Streams and tables of the catalog as DataFrames.

A stream's DataFrame has, beside its columns, hidden ones that every operator passes on: the timestamp and the
order of arrival (semantics, section 1). A record that cannot be read in the schema is a bad record: it is
counted, and goes into a stream of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812

from millstream.analysis.queries.resolved_expression import Expr
from millstream.catalog.entries import (
    FILE_FORMATS,
    NO_TIMESTAMP,
    NOT_FINITE,
    NOT_IN_SCHEMA,
    OUTERMOST,
    OrderedPerPromise,
    Port,
    Promise,
    PunctuationPromise,
    Reader,
    Stream,
    Table,
    TimestampKind,
    source_columns,
)
from millstream.errors import ExecutionError
from millstream.physical.csv_columns import columns_of_files
from millstream.physical.sources import (
    CHECKED_FORMATS,
    LINE_FORMATS,
    NATIVE_COLUMNS,
    is_untimed,
    is_whole_line,
)
from millstream.spark.session.spark_types import is_outermost, to_spark_type
from millstream.spark.sources.computed_columns import ATTEMPT, FAILED, RECORD, prepared, with_computed
from millstream.spark.sources.file_paths import arrive_together, streamable
from millstream.spark.sources.hidden_columns import (
    FILE,
    KEEP,
    LINE,
    PARTITION,
    PROMISE,
    ROW,
    SEGMENT,
    SUBSTREAM,
    TIME,
    hidden,
)
from millstream.spark.sources.hidden_columns import column as _column
from millstream.types import Field, Kind

BAD = "__ms_bad"
_EXCERPT = 500
"""Characters of a bad record that are reported."""

OUR_OPTIONS = frozenset({"valueformat", "follow", "partitions"})
"""Options that Spark does not know."""
_LIMITS = ("maxFilesPerTrigger", "maxBytesPerTrigger")

ReadPort = Callable[[int], DataFrame]
"""Reads the lines that arrive at a port, as files of (arrival TIMESTAMP, line STRING)."""


@dataclass(frozen=True)
class SourceFrames:
    """The frames of a stream: its tuples, and its bad records.

    Where only the time of a row can be bad (``is_untimed``), such rows are still among the good ones.
    """

    good: DataFrame
    bad: DataFrame


def read_stream(
    stream: Stream, spark: SparkSession, read_port: ReadPort, metrics: str | None = None
) -> SourceFrames:
    """Read a stream; under the name ``metrics`` its tuples and bad records are counted."""
    raw = _raw(stream, spark, read_port)
    return classify(raw, stream, metrics)


def classify(raw: DataFrame, stream: Stream, metrics: str | None = None) -> SourceFrames:
    """Separate tuples from bad records, and add the timestamp to the tuples."""
    timestamp = stream.timestamp
    frame = raw if BAD in raw.columns else raw.withColumn(BAD, F.lit(None).cast("string"))
    if SEGMENT not in frame.columns:
        # Without files, the order of arrival is the order in which Spark numbers its partitions.
        frame = frame.withColumn(SEGMENT, F.spark_partition_id().cast("bigint"))
    made = bool(stream.computed or stream.selection)
    if made:
        frame = prepared(frame, stream, BAD)
    time = _column(timestamp.column) if timestamp.column else F.lit(None).cast("timestamp")
    frame = _with_promises(frame.withColumn(TIME, time), stream)
    reason = F.when(F.col(BAD).isNotNull(), NOT_IN_SCHEMA)
    if made:
        reason = reason.when(F.col(FAILED).isNotNull(), F.col(FAILED))
    if timestamp.kind is TimestampKind.EXTERNAL:
        # A promise without a time is the last of its sub-stream.
        data = F.col(KEEP) if KEEP in frame.columns else F.lit(True)
        reason = reason.when(F.col(TIME).isNull() & data, NO_TIMESTAMP)
        if isinstance(frame.schema[TIME].dataType, T.DoubleType | T.FloatType):
            is_infinite = F.abs(F.col(TIME)) == float("inf")
            reason = reason.when((F.isnan(TIME) | is_infinite) & data, NOT_FINITE)
        if isinstance(frame.schema[TIME].dataType, T.LongType):
            outermost = is_outermost(_column(timestamp.column or "")) & data
            reason = F.when(reason.isNull() & outermost, OUTERMOST).otherwise(reason)
            frame = frame.withColumn(TIME, F.when(~outermost, F.col(TIME)))
    is_bad = reason.isNotNull()
    untimed = is_untimed(stream)
    uncounted = frame
    names = [f.name for f in stream.schema]
    as_text = F.col(RECORD) if made else F.coalesce(F.col(BAD), F.to_json(F.struct(*map(_column, names))))
    if metrics is not None:
        frame = frame.observe(
            metrics,
            F.count(F.lit(1)).alias("rows"),
            F.count_if(is_bad).alias("bad"),
            # An example for the warning, independent of the division of the input into tasks.
            F.min(F.when(is_bad, F.concat(reason, F.lit("\n"), F.substring(as_text, 1, _EXCERPT)))).alias(
                "bad_record"
            ),
            # Spark reads only the columns that the query needs, so that a record would be bad or not
            # depending on the query. This reads them all.
            *([F.max(_fingerprint(raw)).alias("fingerprint")] if BAD in raw.columns else []),
            _zoned(F.max(F.when(~is_bad, F.col(TIME))), frame.schema[TIME].dataType).alias("newest"),
        )
    ours = (BAD, FAILED, RECORD, ATTEMPT)
    hidden_names = [name for name in hidden(frame.columns) if not name.startswith(ours)]
    # A bad record has no timestamp, but an order of arrival.
    arrival = [_column(name) for name in hidden_names if name in (PARTITION, SEGMENT, FILE)]
    return SourceFrames(
        good=(uncounted if untimed else frame.where(~is_bad)).select(*map(_column, (*names, *hidden_names))),
        bad=frame.where(is_bad).select(
            as_text.alias("record"),
            reason.alias("reason"),
            F.lit(None).cast("timestamp").alias(TIME),
            *arrival,
        ),
    )


def _with_promises(frame: DataFrame, stream: Stream) -> DataFrame:
    """Mark the tuples that are promises, and their sub-streams, for each promised attribute."""
    frame = _with_clauses(frame, stream.own_promises, "")
    for number, (attribute, promises) in enumerate(stream.promises_on_others.items()):
        name = next(field.name for field in stream.schema if field.name.lower() == attribute)
        frame = frame.withColumn(f"{LINE}{number}", _column(name))
        frame = _with_clauses(frame, promises, str(number))
    marks = [F.col(name) for name in frame.columns if name.startswith(PROMISE)]
    if marks:
        frame = frame.withColumn(KEEP, ~functools.reduce(lambda one, other: one | other, marks))
    return frame


def _with_clauses(frame: DataFrame, promises: Iterable[Promise], suffix: str) -> DataFrame:
    for promise in promises:
        match promise:
            case PunctuationPromise(predicate, per):
                assert isinstance(predicate, Expr)
                is_promise = F.coalesce(F.expr(predicate.sql), F.lit(False))
                frame = frame.withColumn(PROMISE + suffix, is_promise)
            case OrderedPerPromise(per):
                pass
            case _:
                continue
        if per:
            frame = frame.withColumn(SUBSTREAM + suffix, F.to_json(F.struct(*map(_column, per))))
    return frame


def _zoned(time: Column, kind: T.DataType) -> Column:
    """Return a time for a report as text, because Python may not be able to represent it.

    Spark would write a timestamp in the zone of the JVM, without naming it.
    """
    if isinstance(kind, T.DateType | T.TimestampNTZType):
        return time.cast("string")
    return F.date_format(time, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX") if kind == T.TimestampType() else time


def _fingerprint(frame: DataFrame) -> Column:
    """Return a value that depends on every column; maps cannot be hashed."""
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
    """Number the rows of a micro-batch in the order of reading; streams cannot be numbered."""
    return batch.withColumn(ROW, F.monotonically_increasing_id())


def read_table(table: Table, spark: SparkSession) -> DataFrame:
    assert isinstance(table.origin, Reader)
    reader = spark.read.format(table.origin.format).options(**_options(table.origin))
    if table.schema is None:
        return reader.load()
    fields = columns_of_files(table.origin, source_columns(table.schema, table.computed))
    frame = reader.schema(_struct(fields)).load()
    return with_computed(frame, table.computed, table.schema).select(*(_column(f.name) for f in table.schema))


def _raw(stream: Stream, spark: SparkSession, read_port: ReadPort) -> DataFrame:
    """Return the stream's columns that the source has, and ``BAD`` if the reader marks bad records."""
    timestamp, declared = stream.read.timestamp, stream.source_fields
    internal = timestamp.column if timestamp.kind is TimestampKind.INTERNAL else None
    match stream.origin:
        case Port(number):
            # The port gives every file a time of its own.
            frame = parse_lines(_with_arrival(read_port(number), by_name=False), "line", declared)
            return frame.withColumnRenamed("arrival", internal) if internal else frame
        case Reader() as reader:
            frame = _read(reader, declared, spark, stream.name)
        case _:
            raise ExecutionError(
                f"stream '{stream.name}' was declared without a source",
                hint="add USING format OPTIONS (...) or SOURCE 'port4445' to its CREATE STREAM",
            )
    # Spark stores the time of a micro-batch before running it, and uses it again in a replay.
    return frame.withColumn(internal, F.current_timestamp()) if internal else frame


def _read(reader: Reader, declared: tuple[Field, ...], spark: SparkSession, name: str) -> DataFrame:
    format_ = reader.format.lower()
    source = spark.readStream.format(reader.format).options(**_options(reader))
    path = reader.option("path")
    by_name = True
    if format_ in FILE_FORMATS and path is not None:
        source = source.option("path", streamable(path, spark, f"stream '{name}'"))
        if not any(reader.option(limit) for limit in _LIMITS):
            source = source.option("maxBytesPerTrigger", str(_bytes_at_once(spark)))
        by_name = not reader.is_bounded or arrive_together(path, spark)
    native = NATIVE_COLUMNS.get(format_)
    if native is None:
        schema = _struct(columns_of_files(reader, declared))
        if format_ in CHECKED_FORMATS:
            source = source.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", BAD)
            schema = T.StructType([*schema.fields, T.StructField(BAD, T.StringType())])
        frame = source.schema(schema).load()
        return _with_arrival(frame, by_name=by_name) if format_ in FILE_FORMATS else frame
    frame = source.load()
    if format_ in FILE_FORMATS:
        frame = _with_arrival(frame, by_name=by_name)
    if is_whole_line(reader, declared):
        return frame.withColumnRenamed("value", declared[0].name)
    if format_ in LINE_FORMATS and not {f.name.lower() for f in declared} <= native:
        if format_ == "kafka":
            frame = frame.select("value", _topic_partition())
        return parse_lines(frame, "value", declared, reader.option("valueFormat"))
    hidden_columns = [_column(name) for name in hidden(frame.columns)]
    if format_ == "kafka":
        hidden_columns.append(_topic_partition())
    return frame.select(
        *(_column(f.name).cast(to_spark_type(f.type)).alias(f.name) for f in declared), *hidden_columns
    )


def _bytes_at_once(spark: SparkSession) -> int:
    """Return the bytes that all cores read at once: shards hold a micro-batch in memory."""
    cores = spark.sparkContext.defaultParallelism
    return cores * _bytes(spark.conf.get("spark.sql.files.maxPartitionBytes"))


def _topic_partition() -> Column:
    """Return the source partition of a tuple from Kafka; partitions of different topics differ."""
    return F.expr("pmod(hash(topic), 128) * 4096 + partition").cast("int").alias(PARTITION)


def parse_lines(
    frame: DataFrame, line: str, declared: tuple[Field, ...], form: str | None = None
) -> DataFrame:
    """Parse lines of JSON or CSV into columns; without a form, lines that begin with a brace are JSON."""
    schema = T.StructType([*_struct(declared).fields, T.StructField(BAD, T.StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
    text = _column(line).cast("string")
    as_json = F.from_json(text, schema, options)
    as_csv = F.from_csv(text, schema.toDDL(), options)
    if [field.type.kind for field in declared] == [Kind.STRING] and (form or "").lower() != "csv":
        # The only column is the line, with its commas and quotes.
        as_csv = F.struct(text.alias(declared[0].name), F.lit(None).cast("string").alias(BAD))
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


def _with_arrival(frame: DataFrame, *, by_name: bool) -> DataFrame:
    """Add the order of arrival: files by modification time and name, and pieces of a large file.

    Time and piece are one number, because every further column costs time: pieces begin at multiples of a
    size that is at least the smaller of these two. Names are needed only if times do not distinguish files.
    """
    conf = frame.sparkSession.conf
    sizes = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    smallest = min(_bytes(conf.get(size)) for size in sizes)
    shift = max(0, smallest.bit_length() - 1)
    modified = "unix_millis(_metadata.file_modification_time)"
    segment = F.expr(f"shiftleft({modified}, 22) | shiftright(_metadata.file_block_start, {shift})")
    named = [F.col("_metadata").getField("file_name").alias(FILE)] if by_name else []
    return frame.select("*", segment.alias(SEGMENT), *named)


def _bytes(size: str | None) -> int:
    """Parse a size as Spark writes it: 128MB, 4194304b."""
    digits = (size or "").rstrip("bB")
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    shift = units.get(digits[-1:].lower(), 0)
    return max(1, int(digits[:-1] if shift else digits or 1) << shift)


def _options(reader: Reader) -> dict[str, str]:
    """Return the user's options, with better defaults for csv than Spark's.

    A quote inside quotes is doubled, as usual, also in our output. A header that does not fit the schema is
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
