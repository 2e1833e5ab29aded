"""Files of streams and tables without Spark: csv, lines of JSON, text, and parquet as Arrow tables.

Files arrive in the order of modification time and name, as they do on Spark. A record of a stream that cannot
be read in the schema is a bad record; in a table such values are NULL, as Spark reads them.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from millstream.catalog.entries import NOT_IN_SCHEMA, Reader, Stream, Table, source_columns
from millstream.errors import ExecutionError, MillstreamError, NotExecutableError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.physical.csv_columns import columns_of_files
from millstream.program.failures import OutsideError
from millstream.program.interpreted_functions import from_text
from millstream.stage.hidden_columns import ROW
from millstream.types import STRING, Field, Kind, Type

Convert = Callable[[Any], Any]

BAD_SCHEMA = pa.schema([("record", pa.string()), ("reason", pa.string()), (ROW, pa.int64())])

_OPTIONS = {
    "csv": frozenset({"path", "header", "sep", "delimiter", "quote", "escape", "nullvalue", "enforceschema"}),
    "json": frozenset({"path"}),
    "parquet": frozenset({"path"}),
    "text": frozenset({"path"}),
}
_IGNORED = frozenset({"follow", "partitions", "maxfilespertrigger", "maxbytespertrigger", "mode"})
"""Options that make no difference here: they cut the input, or ask for the mode that is used anyway."""


@dataclass(frozen=True)
class FileRows:
    """The rows of one file, and its bad records with their reasons; ROW is their number in the file."""

    rows: pa.Table
    bad: pa.Table


def read_stream_files(stream: Stream) -> list[FileRows]:
    """Read the files of a stream in the order of their arrival."""
    with _placed_at(stream):
        reader = _supported(stream.origin, f"stream '{stream.name}'")
        if not reader.is_bounded:
            raise NotExecutableError(
                f"stream '{stream.name}' waits for files, and the local engine reads bounded input only",
                hint="leave out follow 'true', or run without --engine local",
            )
        fields = columns_of_files(reader, stream.source_fields)
        paths = _paths(reader, f"stream '{stream.name}'")
        read = [_read(path, reader, fields, strict=True) for path in paths]
        names = [field.name for field in stream.source_fields]
        return [replace(one, rows=one.rows.select([*names, ROW])) for one in read]


def read_table_files(table: Table) -> pa.Table:
    """Read the files of a table."""
    what = f"table '{table.name}'"
    with _placed_at(table):
        reader = _supported(table.origin, what)
        if table.schema is None:
            raise NotExecutableError(
                f"{what} has no columns declared, and the local engine does not infer them",
                hint="declare them in its CREATE TABLE, or run without --engine local",
            )
        declared = source_columns(table.schema, table.computed)
        fields = columns_of_files(reader, declared)
        read = [_read(path, reader, fields, strict=False).rows for path in _paths(reader, what)]
        rows = [one.select([field.name for field in declared]) for one in read]
        return pa.concat_tables(rows) if rows else _schema(declared).empty_table()


@contextmanager
def _placed_at(relation: Stream | Table) -> Iterator[None]:
    """Give errors in reading a relation the place of its declaration."""
    try:
        yield
    except MillstreamError as error:
        error.place = error.place or relation.place
        raise


def _supported(origin: object, what: str) -> Reader:
    """Return the reader behind a relation if this module can replace it."""
    if not isinstance(origin, Reader):
        raise NotExecutableError(
            f"{what} is read from {origin}, and the local engine reads files only",
            hint="run without --engine local",
        )
    known = _OPTIONS.get(origin.format.lower())
    if known is None:
        raise NotExecutableError(
            f"{what} has the format '{origin.format}', and the local engine reads {', '.join(_OPTIONS)}",
            hint="run without --engine local",
        )
    for option, _ in origin.options:
        if option.lower() not in known | _IGNORED:
            raise NotExecutableError(
                f"{what} has the option '{option}', which only Spark's reader of {origin.format} knows",
                hint="run without --engine local",
            )
    return origin


def _paths(reader: Reader, what: str) -> list[Path]:
    """List files in the order of arrival: modification time, then name."""
    text = (reader.option("path") or "").removeprefix("file://")
    found = [Path(text)] if Path(text).exists() else [Path(path) for path in glob.glob(text)]  # noqa: PTH207
    if not found:
        raise ExecutionError(f"{what} reads '{text}', which does not exist")
    files = [file for path in found for file in (path.rglob("*") if path.is_dir() else [path])]
    visible = [file for file in files if file.is_file() and not file.name.startswith(("_", "."))]
    return sorted(visible, key=lambda file: (file.stat().st_mtime_ns // 1_000_000, file.name))


def _read(path: Path, reader: Reader, fields: Sequence[Field], *, strict: bool) -> FileRows:
    match reader.format.lower():
        case "parquet":
            rows = _parquet(path, fields)
            numbers = pa.array(range(len(rows)), pa.int64())
            return FileRows(rows.append_column(ROW, numbers), BAD_SCHEMA.empty_table())
        case "json":
            return _converted(_json_records(path, fields), fields, strict=strict)
        case "text":
            return _converted(_text_records(path, fields), fields, strict=strict)
        case _:
            return _converted(_csv_records(path, reader, fields), fields, strict=strict)


def _text_records(path: Path, fields: Sequence[Field]) -> Iterator[tuple[Record, Sequence[Convert]]]:
    if [field.type.kind for field in fields] != [Kind.STRING]:
        raise NotExecutableError(
            "the local engine reads text into one column of type STRING", hint="run without --engine local"
        )
    lines = _text(path, "utf-8")
    for line in lines.removesuffix("\n").split("\n") if lines else ():
        yield (line, [line]), [lambda text: text]


def _schema(fields: Iterable[Field]) -> pa.Schema:
    return pa.schema([(field.name, arrow_type(field.type)) for field in fields])


def _parquet(path: Path, fields: Sequence[Field]) -> pa.Table:
    table = parquet.read_table(path)
    names = {name.lower(): name for name in table.column_names}
    missing = [field for field in fields if field.name.lower() not in names]
    for field in missing:
        table = table.append_column(field.name, pa.nulls(len(table), arrow_type(field.type)))
        names[field.name.lower()] = field.name
    return table.select([names[field.name.lower()] for field in fields]).cast(_schema(fields))


# ---------------------------------------------------------------- records

Record = tuple[str, Sequence[Any] | None]
"""The text of a record, and a value for each column; None where the record has another form."""


def _converted(
    records: Iterator[tuple[Record, Sequence[Convert]]], fields: Sequence[Field], *, strict: bool
) -> FileRows:
    """Convert records to columns; a ``strict`` reader puts aside those with a value that does not fit."""
    columns: list[list[Any]] = [[] for _ in fields]
    numbers: list[int] = []
    bad: list[tuple[str, str, int]] = []
    for number, ((text, values), converters) in enumerate(records):
        row = None if values is None else _row(values, converters, strict=strict)
        if row is None and strict:
            bad.append((text, NOT_IN_SCHEMA, number))
            continue
        numbers.append(number)
        for column, value in zip(columns, row or [None] * len(columns), strict=True):
            column.append(value)
    arrays = [_array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    rows = pa.table(arrays, _schema(fields)).append_column(ROW, pa.array(numbers, pa.int64()))
    return FileRows(
        rows, pa.table([list(part) for part in zip(*bad, strict=True)] or [[], [], []], BAD_SCHEMA)
    )


def _row(values: Sequence[Any], converters: Sequence[Convert], *, strict: bool) -> list[Any] | None:
    row = []
    for value, convert in zip(values, converters, strict=True):
        try:
            row.append(None if value is None else convert(value))
        except (OutsideError, ValueError, TypeError, OverflowError):
            if strict:
                return None
            row.append(None)
    return row


def _array(values: list[Any], type_: Type) -> pa.Array:
    """Make an array of values; instants and dates are numbers, as casts give them."""
    target = arrow_type(type_)
    match type_.kind:
        case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ | Kind.DAY_TIME_INTERVAL:
            return pa.array(values, pa.int64()).cast(target)
        case Kind.DATE:
            return pa.array(values, pa.int32()).cast(target)
    return pa.array(values, target)


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that have content."""
    return [line for line in _text(path, "utf-8-sig").split("\n") if line.strip()]


def _text(path: Path, encoding: str) -> str:
    """Return the text of a file, which may be compressed, with its lines ended by LF."""
    try:
        with pa.input_stream(path, compression="detect") as opened:
            text: str = opened.read().decode(encoding, errors="replace")
    except OSError as error:
        raise ExecutionError(f"cannot read {path}: {error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _csv_records(
    path: Path, reader: Reader, fields: Sequence[Field]
) -> Iterator[tuple[Record, Sequence[Convert]]]:
    """Split lines into texts; an empty text without quotes is NULL."""
    lines = _lines(path)
    has_header = (reader.option("header") or "").lower() == "true"
    separator = reader.option("sep") or reader.option("delimiter") or ","
    quote, escape = reader.option("quote") or '"', reader.option("escape")
    invalid: set[int] = set()

    def skip(row: csv.InvalidRow) -> str:
        invalid.add(row.number)
        return "skip"

    parsing = csv.ParseOptions(
        delimiter=separator.replace("\\t", "\t"),
        quote_char=quote,
        double_quote=escape in (None, quote),
        escape_char=False if escape in (None, quote) else escape,
        invalid_row_handler=skip,
    )
    converting = csv.ConvertOptions(
        column_types={str(i): pa.string() for i in range(len(fields))},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[reader.option("nullValue") or ""],
        check_utf8=False,
    )
    # One thread, so that rows of another form are told by their numbers.
    naming = csv.ReadOptions(column_names=[str(i) for i in range(len(fields))], use_threads=False)

    def cells(part: Sequence[str]) -> Iterator[list[str | None] | None]:
        """Yield the cells of each line; None where their number is not that of the columns."""
        invalid.clear()
        table = csv.read_csv(pa.BufferReader("\n".join(part).encode()), naming, parsing, converting)
        if len(table) + len(invalid) != len(part):
            # A quote that is not closed takes the next lines with it; on Spark a record is a line.
            yield from ([None] if len(part) == 1 else (c for line in part for c in cells([line])))
            return
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        unread = frozenset(invalid)
        for number in range(1, len(part) + 1):
            yield None if number in unread else list(next(rows))

    converters = [_text_converter(field.type) for field in fields]
    if has_header and lines:
        _check_header(path, lines[0], next(cells(lines[:1])), fields)
        lines = lines[1:]
    for line, values in zip(lines, cells(lines) if lines else (), strict=True):
        yield (line, values), converters


def _check_header(
    path: Path, line: str, header: Sequence[str | None] | None, fields: Sequence[Field]
) -> None:
    """Refuse a header that names other columns than the schema, instead of mixing them up."""
    names = [field.name for field in fields]
    if header is None or [(cell or "").strip().lower() for cell in header] != [n.lower() for n in names]:
        raise ExecutionError(
            f"{path} has the header ({', '.join(cell.strip() for cell in line.split(','))}), "
            f"and not ({', '.join(names)})",
            hint="correct the names or their order in the schema, or drop the option header if there is none",
        )


def _json_records(path: Path, fields: Sequence[Field]) -> Iterator[tuple[Record, Sequence[Convert]]]:
    converters = [_json_converter(field.type) for field in fields]
    for line in _lines(path):
        try:
            value = json.loads(line, parse_float=Decimal)
        except ValueError:
            yield (line, None), converters
            continue
        yield (line, [value.get(f.name) for f in fields] if isinstance(value, dict) else None), converters


def _text_converter(type_: Type) -> Convert:
    if type_.kind is Kind.STRING:
        return lambda text: text
    if type_.kind is Kind.BOOLEAN:
        return lambda text: {"true": True, "false": False}[text.lower()] if text else None
    return lambda text: from_text(text, type_)


def _json_converter(type_: Type) -> Convert:
    """Convert a value of JSON as Spark does: numbers to numbers, texts to texts and times."""
    match type_.kind:
        case Kind.STRING:
            return lambda value: value if isinstance(value, str) else json.dumps(value, default=str)
        case Kind.BOOLEAN:
            return lambda value: _instance(value, bool)
        case Kind.DOUBLE | Kind.FLOAT:
            return lambda value: float(_instance(value, int, Decimal))
        case Kind.DECIMAL:
            return lambda value: from_text(str(_instance(value, int, Decimal, str)), type_)
        case _ if type_.is_integral:
            return lambda value: from_text(str(_instance(value, int)), type_)
        case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ | Kind.DATE:
            return lambda value: from_text(_instance(value, str), type_)
        case Kind.ARRAY:
            element = _json_converter(type_.element or STRING)
            return lambda value: [None if one is None else element(one) for one in _instance(value, list)]
    raise NotExecutableError(
        f"the local engine does not read values of type {type_} from JSON", hint="run without --engine local"
    )


def _instance(value: Any, *types: type) -> Any:
    """Return a value of one of these types; anything else does not fit the schema."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise TypeError(type(value).__name__)
    return value
