"""Diagnosis of a bad record: the column that cannot be read, its value, and the option that helps."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any

from millstream.catalog.entries import (
    NO_TIMESTAMP,
    NOT_FINITE,
    NOT_IN_SCHEMA,
    OUTERMOST,
    Port,
    Reader,
    Stream,
)
from millstream.physical.csv_columns import columns_of_files
from millstream.types import Field, Kind, Type

_LONGEST = 120
"""Characters of a record shown in a message."""

_RANGES = MappingProxyType({Kind.TINYINT: 7, Kind.SMALLINT: 15, Kind.INT: 31, Kind.BIGINT: 63})
_MISSING = frozenset({"na", "n/a", "nan", "null", "none", "nil", "-", "--", "?", "\\n", "."})
_ZONE = r"(?:\s?(?:Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?|[A-Za-z]+/[A-Za-z_]+))?"
_ISO_DATE = re.compile(r"[+-]?\d{4,7}(?:-\d{1,2}){0,2}(?:[T ].*)?")
_ISO_TIME = re.compile(
    r"[+-]?\d{4,7}(?:-\d{1,2}(?:-\d{1,2}(?:[ T]\d{1,2}(?::\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)?"
    + _ZONE
    + r")?)?)?"
)
_CLOCK = re.compile(r"(?P<gap>[ T:]|, )(?P<h>\d{1,2}):\d\d(?P<s>:\d\d(?P<f>\.\d{1,9})?)?(?P<z> ?[+-]\d{4})?")
_YEAR_FIRST = re.compile(r"(?P<y>\d{4})(?P<sep>[/.-])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})")
_YEAR_LAST = re.compile(r"(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4})")
_MONTH_NAME = re.compile(r"(?P<d>\d{1,2})(?P<sep>[/ -])[A-Za-z]{3}(?P=sep)(?P<y>\d{4})")


def diagnosis(record: str, reason: str, stream: Stream) -> str:
    """Describe a bad record of a stream: an excerpt, the cause, and the remedy if one is known."""
    excerpt = record if len(record) <= _LONGEST else f"{record[:_LONGEST]}..."
    cause = _cause(record, reason, stream)
    return f"{excerpt!r}: {cause}" if cause else f"{excerpt!r}"


def _cause(record: str, reason: str, stream: Stream) -> str:
    timestamp = stream.timestamp.column
    if reason == NO_TIMESTAMP:
        return f"column '{timestamp}', the timestamp, is NULL"
    if reason == NOT_FINITE:
        return f"column '{timestamp}', the timestamp, is not a finite number"
    if reason == OUTERMOST:
        return f"column '{timestamp}', the timestamp, is the smallest or the largest BIGINT"
    if reason != NOT_IN_SCHEMA:
        return reason
    fields = list(stream.source_fields)
    reader = stream.origin if isinstance(stream.origin, Reader) else None
    if _is_json(record, stream):
        return _json_cause(record, fields)
    if reader is not None and reader.format.lower() == "xml":
        return ""
    if reader is not None:
        fields = list(columns_of_files(reader, tuple(fields)))
    return _csv_cause(record, fields, reader)


def _is_json(record: str, stream: Stream) -> bool:
    match stream.origin:
        case Port():
            return record.lstrip().startswith("{")
        case Reader() as reader:
            form = reader.option("valueFormat")
            if form is None and reader.format.lower() in ("csv", "json"):
                form = reader.format
            return record.lstrip().startswith("{") if form is None else form.lower() == "json"
        case _:
            return False


# ---------------------------------------------------------------- CSV


def _csv_cause(record: str, fields: list[Field], reader: Reader | None) -> str:
    def option(*names: str) -> str | None:
        return next((o for o in map(reader.option, names) if o), None) if reader is not None else None

    separator = (option("sep", "delimiter") or ",").replace("\\t", "\t")
    if len(separator) != 1:
        return ""
    values = next(csv.reader([record], delimiter=separator), [])
    if [value.strip().lower() for value in values] == [field.name.lower() for field in fields]:
        return "it is a header; add header 'true' to OPTIONS"
    if len(values) != len(fields):
        return _wrong_count(record, separator, len(values), len(fields))
    null = option("nullValue")
    formats = {Kind.TIMESTAMP: option("timestampFormat"), Kind.TIMESTAMP_NTZ: option("timestampNTZFormat")}
    formats[Kind.DATE] = option("dateFormat")
    suspect = ""
    for field, value in zip(fields, values, strict=True):
        if value in ("", null):
            continue
        pattern = formats.get(field.type.kind)
        if pattern is not None:
            suspect = suspect or _cannot(field, value, f"it may not match the given format {pattern!r}")
        elif not _fits_text(value, field.type):
            return _cannot(field, value, _remedy(value, field.type))
    return suspect


def _wrong_count(record: str, separator: str, fields: int, declared: int) -> str:
    cause = f"it has {fields} field{'' if fields == 1 else 's'}, and the stream has {declared} columns"
    for other in ";\t|,":
        if other != separator and record.count(other) == declared - 1:
            shown = "\\t" if other == "\t" else other
            return f"{cause}; add sep '{shown}' to OPTIONS"
    return cause


def _cannot(field: Field, value: str, remedy: str) -> str:
    cause = f"column '{field.name}' {field.type} cannot be read from '{value}'"
    return f"{cause}; {remedy}" if remedy else cause


def _fits_text(value: str, kind: Type) -> bool:
    """Return whether Spark's reader accepts a text as a value of this type."""
    check = _TEXT_CHECKS.get(kind.kind)
    if kind.kind in _RANGES:
        return _fits_integer(value, _RANGES[kind.kind])
    return check is None or check(value)


def _fits_integer(value: str, bits: int) -> bool:
    return re.fullmatch(r"[+-]?\d+", value) is not None and -(2**bits) <= int(value) < 2**bits


def _fits_double(value: str) -> bool:
    try:
        number = float(value)
    except ValueError:
        return False
    return "_" not in value and (math.isfinite(number) or value in ("NaN", "Inf", "-Inf"))


def _fits_decimal(value: str) -> bool:
    try:
        return "_" not in value and Decimal(value).is_finite()
    except InvalidOperation:
        return False


_TEXT_CHECKS: Mapping[Kind, Callable[[str], bool]] = MappingProxyType(
    {
        Kind.DOUBLE: _fits_double,
        Kind.FLOAT: _fits_double,
        Kind.DECIMAL: _fits_decimal,
        Kind.BOOLEAN: lambda value: value.lower() in ("true", "false"),
        Kind.TIMESTAMP: lambda value: _ISO_TIME.fullmatch(value) is not None,
        Kind.TIMESTAMP_NTZ: lambda value: _ISO_TIME.fullmatch(value) is not None,
        Kind.DATE: lambda value: _ISO_DATE.fullmatch(value) is not None,
    }
)


def _remedy(value: str, kind: Type) -> str:
    """Propose an option or a type that reads this value."""
    if value.strip().lower() in _MISSING:
        return f"if that stands for NULL, add nullValue '{value}' to OPTIONS"
    if kind.is_time:
        return _time_remedy(value.strip(), kind)
    if kind.is_numeric and value != value.strip():
        return "add ignoreLeadingWhiteSpace 'true', ignoreTrailingWhiteSpace 'true' to OPTIONS"
    if kind.is_integral and re.fullmatch(r"[+-]?\d+", value):
        return "declare it BIGINT" if _fits_integer(value, 63) else "declare it DECIMAL"
    if kind.is_integral and _fits_double(value):
        return "declare it DOUBLE"
    return "declare it STRING" if kind.is_numeric else ""


def _time_remedy(value: str, kind: Type) -> str:
    if re.fullmatch(r"\d{9,11}", value):
        return "these look like seconds since 1970; declare it BIGINT"
    if re.fullmatch(r"\d{12,14}", value):
        return "these look like milliseconds since 1970; declare it BIGINT"
    guesses = _formats(value)
    names = {Kind.TIMESTAMP: "timestampFormat", Kind.TIMESTAMP_NTZ: "timestampNTZFormat"}
    name = names.get(kind.kind, "dateFormat")
    if not guesses:
        return f"add {name} to OPTIONS"
    return f"add {' or '.join(f'{name} {guess!r}' for guess in guesses)} to OPTIONS"


def _formats(value: str) -> list[str]:
    """Guess the patterns of a time; several if day and month cannot be told apart."""
    dates: list[str] = []
    end = 0
    if match := _YEAR_FIRST.match(value):
        sep = match["sep"]
        dates, end = [f"yyyy{sep}{_digits('M', match['m'])}{sep}{_digits('d', match['d'])}"], match.end()
    elif match := _YEAR_LAST.match(value):
        sep, first, second = match["sep"], match["a"], match["b"]
        by_month = f"{_digits('M', first)}{sep}{_digits('d', second)}{sep}yyyy"
        by_day = f"{_digits('d', first)}{sep}{_digits('M', second)}{sep}yyyy"
        end = match.end()
        dates = [by_month] if int(second) > 12 else [by_day] if int(first) > 12 else [by_month, by_day]
    elif match := _MONTH_NAME.match(value):
        sep = match["sep"]
        dates, end = [f"{_digits('d', match['d'])}{sep}MMM{sep}yyyy"], match.end()
    if end == len(value):
        return dates
    clock = _CLOCK.fullmatch(value, end)
    if not dates or clock is None:
        return []
    gap = "'T'" if clock["gap"] == "T" else clock["gap"]
    seconds = ":ss" if clock["s"] else ""
    fraction = "." + "S" * (len(clock["f"]) - 1) if clock["f"] else ""
    zone = clock["z"].replace(clock["z"].strip(), "Z") if clock["z"] else ""
    return [f"{date}{gap}{_digits('H', clock['h'])}:mm{seconds}{fraction}{zone}" for date in dates]


def _digits(letter: str, written: str) -> str:
    """Return the pattern of a part of a date: two letters match two digits, one letter one or two."""
    return letter * 2 if len(written) == 2 else letter


# ---------------------------------------------------------------- JSON


def _json_cause(record: str, fields: list[Field]) -> str:
    try:
        value = json.loads(record)
    except ValueError:
        return "it is not valid JSON"
    if not isinstance(value, dict):
        return "it is not a JSON object"
    for field in fields:
        content = value.get(field.name)
        if content is not None and not _fits_json(content, field.type):
            shown = content if isinstance(content, str) else json.dumps(content)
            if isinstance(content, str) and field.type.is_numeric and _fits_text(content, field.type):
                return _cannot(field, json.dumps(content), "it is a text; declare it STRING")
            remedy = _remedy(shown, field.type) if isinstance(content, str | int | float) else ""
            return _cannot(field, shown, remedy)
    return ""


def _fits_json(value: Any, kind: Type) -> bool:
    match kind.kind:
        case Kind.STRUCT | Kind.MAP:
            return isinstance(value, dict)
        case Kind.ARRAY:
            return isinstance(value, list)
        case Kind.BOOLEAN:
            return isinstance(value, bool)
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return isinstance(value, int) and not isinstance(value, bool) and _fits_text(str(value), kind)
        case Kind.FLOAT | Kind.DOUBLE | Kind.DECIMAL:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            return isinstance(value, str) and _fits_text(value, kind)
        case _:
            return True
