"""Streams and tables from DataFrames of Spark and pandas and from tables of Arrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.analysis.definitions.statement_analyzer import Definition, analyse
from millstream.catalog import Catalog
from millstream.catalog.entries import Origin, Reader, Registered, Rejected, Stream, Table
from millstream.errors import AnalysisError, ExecutionError, MillstreamError, did_you_mean
from millstream.syntax import parse_script
from millstream.types import Field, Kind

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

Slack = str | int | float | Decimal | timedelta

_WATERMARK = "spark.watermarkDelayMs"
"""Key of a column's metadata under which Spark stores the delay of its watermark."""


@dataclass(frozen=True)
class Clauses:
    """Clauses of CREATE STREAM for a stream from a frame."""

    order_by: str | None = None
    slack: Slack | None = None
    late_into: str | None = None
    bad_into: str | None = None
    ends: bool = False
    computed: Mapping[str, str] = field(default_factory=dict)
    """Expressions of computed columns, by their names."""


def stream_of(
    name: str, frame: Any, clauses: Clauses, directory: Callable[[], Path], catalog: Catalog
) -> tuple[tuple[Stream, ...], DataFrame | None]:
    """Return the catalog entries of a stream from a frame, and the DataFrame that it reads.

    A streaming DataFrame is read directly. Rows of pandas or Arrow are written to a file in ``directory``,
    which is read like any other file, so there is no DataFrame for them.
    """
    if not _is_spark(frame):
        path = directory() / f"{name}.parquet"
        rows = _arrow(name, frame)
        pq.write_table(rows, path)
        reader = Reader("parquet", (("path", str(path)),))
        return _entries(name, _fields(rows.schema), reader, clauses, catalog), None
    if not frame.isStreaming:
        raise ExecutionError(
            f"the DataFrame for stream '{name}' is not a streaming one",
            hint="use register_table, or readStream",
        )
    from millstream.spark.session.spark_types import fields_of

    watermarks = {f.name: f.metadata[_WATERMARK] for f in frame.schema.fields if _WATERMARK in f.metadata}
    entries = _entries(
        name,
        fields_of(frame.schema),
        Registered(is_bounded=clauses.ends),
        _with_watermark(name, watermarks, clauses),
        catalog,
    )
    return entries, _without_watermarks(frame) if watermarks else frame


def _with_watermark(name: str, watermarks: Mapping[str, int], clauses: Clauses) -> Clauses:
    """Take timestamp and slack from the watermark of a DataFrame, given in milliseconds by column."""
    if not watermarks:
        return clauses
    order_by = clauses.order_by or next(iter(watermarks))
    column = next((column for column in watermarks if column.lower() == order_by.lower()), None)
    if column is None:
        marked = next(iter(watermarks))
        raise AnalysisError(
            f"stream '{name}': the watermark of the DataFrame is on '{marked}', but order_by is '{order_by}'",
            hint=f"order by '{marked}', or register the DataFrame as it is before withWatermark",
        )
    slack = clauses.slack
    if slack is None and watermarks[column]:
        slack = timedelta(milliseconds=watermarks[column])
    return replace(clauses, order_by=order_by, slack=slack)


def table_of(name: str, frame: Any, spark: Callable[[], SparkSession]) -> tuple[Table, DataFrame]:
    """Return a table from a DataFrame, or from rows of pandas or Arrow."""
    from millstream.spark.session.spark_types import fields_of

    if not _is_spark(frame):
        frame = spark().createDataFrame(_arrow(name, frame))
    if frame.isStreaming:
        raise ExecutionError(
            f"the DataFrame for table '{name}' is a streaming one", hint="use register_stream"
        )
    return Table(name, fields_of(frame.schema), Registered(is_bounded=True)), frame


def _is_spark(frame: Any) -> bool:
    from pyspark.sql import DataFrame

    return isinstance(frame, DataFrame)


def _arrow(name: str, frame: Any) -> pa.Table:
    """Convert rows of pandas or Arrow to an Arrow table that Spark can read."""
    import pandas as pd

    match frame:
        case pa.Table():
            table = frame
        case pa.RecordBatch():
            table = pa.Table.from_batches([frame])
        case pd.DataFrame():
            table = _from_pandas(name, frame)
        case _:
            raise ExecutionError(
                f"'{name}' cannot be made of a {type(frame).__name__}",
                hint="pass a DataFrame of Spark or pandas, or a table of Arrow",
            )
    columns = [_micros(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _from_pandas(name: str, frame: pd.DataFrame) -> pa.Table:
    import pandas as pd

    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        for i, title in enumerate(frame.columns):
            column = frame.iloc[:, i]
            try:
                pa.Array.from_pandas(column)
            except (pa.ArrowException, ValueError, TypeError) as reason:
                types = sorted(
                    {type(v).__name__ for v in column if not pd.api.types.is_scalar(v) or pd.notna(v)}
                )
                raise _unreadable(name, str(title), types, reason) from None
        raise ExecutionError(f"'{name}' cannot be made of this DataFrame of pandas: {error}") from None


def _unreadable(name: str, column: str, types: Sequence[str], reason: Exception) -> ExecutionError:
    """Return the error for a column of pandas without a matching Spark type."""
    if len(types) > 1:
        return ExecutionError(
            f"column '{column}' of '{name}' has values of several types: {', '.join(types)}",
            hint=f"give it one type, as with frame['{column}'].astype(str) or pd.to_numeric",
        )
    of = f" of type {types[0]}" if types else ""
    return ExecutionError(
        f"column '{column}' of '{name}' has values{of} that Spark has no type for: {reason}",
        hint="convert the column to numbers, texts or times, or leave it out",
    )


def _micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert times to microseconds, Spark's unit; pandas counts nanoseconds."""
    if pa.types.is_timestamp(column.type) and column.type.unit != "us":
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column


def _fields(schema: pa.Schema) -> tuple[Field, ...]:
    from pyspark.sql.pandas.types import from_arrow_schema

    from millstream.spark.session.spark_types import fields_of

    return fields_of(from_arrow_schema(schema, prefer_timestamp_ntz=True))


def _without_watermarks(frame: DataFrame) -> DataFrame:
    """Remove Spark's watermark, which drops late rows silently."""
    from millstream.spark.sources.hidden_columns import column

    return frame.select(*(column(name).alias(name, metadata={}) for name in frame.columns))


def _instead_of_text(field: Field) -> str:
    return (
        f"convert it first: pd.to_datetime(frame['{field.name}']) in pandas, "
        f"pc.strptime in Arrow, to_timestamp('{field.name}') in Spark"
    )


def _entries(
    name: str, fields: tuple[Field, ...], origin: Origin, clauses: Clauses, catalog: Catalog | None = None
) -> tuple[Stream, ...]:
    """Create the stream and the streams of its late and bad tuples, checked like CREATE STREAM."""
    text = [f"CREATE OR REPLACE STREAM {_quoted(name)} (placeholder INT"]
    if clauses.computed:
        columns = [f"{_quoted(field.name)} {field.type}" for field in fields]
        columns += [f"{_quoted(column)} AS ({made})" for column, made in clauses.computed.items()]
        text = [f"CREATE OR REPLACE STREAM {_quoted(name)} ({', '.join(columns)})"]
        text += [f" ORDER BY {_quoted(clauses.order_by)}"] if clauses.order_by is not None else []
    elif clauses.order_by is not None:
        field = next((f for f in fields if f.name.lower() == clauses.order_by.lower()), None)
        if field is None:
            raise AnalysisError(
                f"unknown column '{clauses.order_by}' in order_by",
                hint=did_you_mean(clauses.order_by, [f.name for f in fields]),
            )
        if not field.type.is_ordered:
            raise AnalysisError(
                f"a stream cannot be ordered by '{clauses.order_by}', which is of type {field.type}",
                hint=_instead_of_text(field) if field.type.kind is Kind.STRING else None,
            )
        text += [f", {_quoted(field.name)} {field.type}) ORDER BY {_quoted(field.name)}"]
    else:
        text.append(")")
    if clauses.slack is not None:
        text.append(f" SLACK {_slack(clauses.slack)}")
    if clauses.late_into is not None:
        text.append(f" LATE INTO {_quoted(clauses.late_into)}")
    if clauses.bad_into is not None:
        text.append(f" BAD INTO {_quoted(clauses.bad_into)}")
    try:
        (statement,) = parse_script("".join(text))
        meaning = analyse(statement, catalog.copy() if catalog else Catalog()).meaning
    except MillstreamError as error:
        raise AnalysisError(f"stream '{name}': {error.message}", hint=error.hint) from None
    assert isinstance(meaning, Definition)
    declared, *others = (entry for entry in meaning.entries if isinstance(entry, Stream))
    schema = (*fields, *declared.schema[len(fields) :]) if clauses.computed else fields
    rejected = [
        replace(
            other,
            schema=schema if other.name == declared.late_into else other.schema,
            origin=replace(other.origin, is_bounded=origin.is_bounded),
            place=None,
        )
        for other in others
        if isinstance(other.origin, Rejected)
    ]
    # The user has not written the statement above, so no place in it is shown.
    return replace(declared, schema=schema, origin=origin, place=None), *rejected


def _slack(amount: Slack) -> str:
    match amount:
        case timedelta():
            return f"INTERVAL {amount // timedelta(microseconds=1)} MICROSECONDS"
        case str() if re.match(r"\s*(INTERVAL\b|\d+\s*ROWS?\b|[\d.]+\s*$)", amount, re.IGNORECASE) is None:
            return f"INTERVAL {amount}"
        case _:
            return str(amount)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
