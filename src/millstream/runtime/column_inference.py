"""Columns that CREATE STREAM and CREATE TABLE leave out: read from files of parquet, csv and json.

Both engines and ``check`` use these rules, so a script has the same columns everywhere. Types of csv and json
are those of the first records of the first file.
"""

from __future__ import annotations

import csv
import glob
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from millstream.analysis.types.data_types import from_datatype
from millstream.catalog.entries import Reader
from millstream.errors import AnalysisError
from millstream.files import write_whole
from millstream.syntax import parse_expression
from millstream.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Field,
    Type,
    array,
    decimal,
)

if TYPE_CHECKING:
    import pyarrow as pa

_RECORDS = 1000
"""Records of csv and json that are looked at."""
_NAMED = "name the columns with their types: CREATE STREAM s (a INT, t TIMESTAMP) ..."
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def inferred_columns(reader: Reader) -> tuple[Field, ...]:
    """Return the columns of the files behind a reader."""
    files = _files(reader)
    match reader.format.lower():
        case "parquet":
            return _of_parquet(files)
        case "csv":
            return _of_csv(files[0], reader)
        case "json":
            return _of_json(files[0])
    raise AnalysisError(
        f"the columns of {reader.format} cannot be inferred: only those of parquet, csv and json", hint=_NAMED
    )


def _files(reader: Reader) -> list[Path]:
    text = (reader.option("path") or "").removeprefix("file://")
    if "://" in text:
        raise AnalysisError("columns are inferred only from files of this machine", hint=_NAMED)
    found = [Path(text)] if Path(text).exists() else [Path(path) for path in glob.glob(text)]  # noqa: PTH207
    files = [file for path in found for file in (path.rglob("*") if path.is_dir() else [path])]
    visible = [file for file in files if file.is_file() and not file.name.startswith(("_", "."))]
    if not visible:
        raise AnalysisError(
            f"there are no files in '{text}' from which columns could be inferred", hint=_NAMED
        )
    partitions = [file.parent.name for file in visible if "=" in file.parent.name]
    if partitions:
        raise AnalysisError(
            f"the directory '{partitions[0]}' makes a column of its own, whose type is ambiguous", hint=_NAMED
        )
    return sorted(visible, key=lambda file: (file.stat().st_mtime_ns // 1_000_000, file.name))


# ---------------------------------------------------------------- parquet


def _of_parquet(files: list[Path]) -> tuple[Field, ...]:
    import pyarrow as pa
    from pyarrow import parquet

    columns: list[tuple[Field, ...]] = []
    for file in files:
        try:
            opened = parquet.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            raise AnalysisError(f"{file} cannot be read as parquet: {error}", hint=_NAMED) from None
        stored = map(opened.schema.column, range(len(opened.schema)))
        old = {column.name for column in stored if column.physical_type == "INT96"}
        columns.append(tuple(_field(field, old) for field in opened.schema_arrow))
    for file, other in zip(files, columns, strict=True):
        if other != columns[0]:
            raise AnalysisError(
                f"the columns are ambiguous: those of {file} are not those of {files[0]}", hint=_NAMED
            )
    return columns[0]


def _field(field: pa.Field, old: set[str]) -> Field:
    """Return a column; times of the ``old`` type of Spark have the zone of the session."""
    return Field(field.name, TIMESTAMP if field.name in old else _type(field.type, field.name))


def _type(given: pa.DataType, name: str) -> Type:
    import pyarrow as pa

    simple = {
        pa.bool_(): BOOLEAN,
        pa.int8(): TINYINT,
        pa.int16(): SMALLINT,
        pa.int32(): INT,
        pa.int64(): BIGINT,
        pa.float32(): FLOAT,
        pa.float64(): DOUBLE,
        pa.string(): STRING,
        pa.large_string(): STRING,
        pa.binary(): BINARY,
        pa.date32(): DATE,
    }
    if given in simple:
        return simple[given]
    if pa.types.is_timestamp(given):
        return TIMESTAMP_NTZ if given.tz is None else TIMESTAMP
    if pa.types.is_decimal(given):
        return decimal(given.precision, given.scale)
    if pa.types.is_dictionary(given):
        return _type(given.value_type, name)
    if pa.types.is_list(given):
        return array(_type(given.value_type, name))
    raise AnalysisError(f"the type of column '{name}', {given}, cannot be inferred", hint=_NAMED)


# ---------------------------------------------------------------- csv and json


def _of_csv(file: Path, reader: Reader) -> tuple[Field, ...]:
    if (reader.option("header") or "").lower() != "true":
        raise AnalysisError("columns are inferred only from csv with header 'true'", hint=_NAMED)
    separator = (reader.option("sep") or reader.option("delimiter") or ",").replace("\\t", "\t")
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        rows = csv.reader(text, delimiter=separator, quotechar=reader.option("quote") or '"')
        header = [name.strip() for name in next(rows, [])]
        records = [row for row in itertools.islice(rows, _RECORDS) if len(row) == len(header)]
    _check_names(header, file)
    null = reader.option("nullValue") or ""
    return tuple(
        Field(name, _of_texts(row[i] for row in records if row[i] not in ("", null)))
        for i, name in enumerate(header)
    )


def _check_names(names: list[str], file: Path) -> None:
    if not names or not all(names):
        raise AnalysisError(f"{file} has no header with a name for each column", hint=_NAMED)
    for i, name in enumerate(names):
        if name.lower() in (other.lower() for other in names[:i]):
            raise AnalysisError(f"{file} has two columns '{name}'", hint=_NAMED)


def _of_texts(texts: Iterable[str]) -> Type:
    """Return the narrowest type of all texts; without any it is STRING."""
    values = list(texts)
    if not values:
        return STRING
    for pattern, type_ in ((_INTEGER, BIGINT), (_NUMBER, DOUBLE), (_DATE, DATE), (_TIME, TIMESTAMP)):
        if all(pattern.fullmatch(value) for value in values):
            return type_
    return BOOLEAN if all(value.lower() in ("true", "false") for value in values) else STRING


def _of_json(file: Path) -> tuple[Field, ...]:
    columns: dict[str, list[Any]] = {}
    for record in _objects(file):
        for name, value in record.items():
            columns.setdefault(name, [])
            if value is not None:
                columns[name].append(value)
    if not columns:
        raise AnalysisError(f"{file} has no JSON objects, a line for each", hint=_NAMED)
    _check_names(list(columns), file)
    return tuple(Field(name, _of_values(values, name)) for name, values in columns.items())


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        for line in itertools.islice(lines, _RECORDS):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def _of_values(values: list[Any], name: str) -> Type:
    kinds = {type(value) for value in values}
    if kinds <= {str}:
        found = _of_texts(values)
        return found if found in (DATE, TIMESTAMP) else STRING
    if kinds == {bool}:
        return BOOLEAN
    if kinds == {int} and all(abs(value) < 2**63 for value in values):
        return BIGINT
    if kinds <= {int, float}:
        return DOUBLE
    if kinds == {list}:
        return array(_of_values([one for value in values for one in value if one is not None], name))
    names = {dict: "object", list: "array", str: "string", float: "number", int: "number", bool: "boolean"}
    shown = ", ".join(sorted({names[kind] for kind in kinds}))
    raise AnalysisError(f"the type of column '{name}' is ambiguous: its values are {shown}", hint=_NAMED)


# ---------------------------------------------------------------- over a restart


@dataclass(frozen=True)
class KeptColumns:
    """Infers columns once for a checkpoint: a later run uses those of the first one."""

    file: Path

    def __call__(self, reader: Reader) -> tuple[Field, ...]:
        key = f"{reader.format.lower()} {reader.option('path')}"
        kept = json.loads(self.file.read_text(encoding="utf-8")) if self.file.exists() else {}
        if key not in kept:
            kept[key] = [[field.name, str(field.type)] for field in inferred_columns(reader)]
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, lambda path: path.write_text(json.dumps(kept), encoding="utf-8"))
        return tuple(Field(name, _named_type(type_)) for name, type_ in kept[key])


def _named_type(name: str) -> Type:
    cast = parse_expression(f"CAST(NULL AS {name})")
    assert isinstance(cast, exp.Cast)
    return from_datatype(cast.to)
