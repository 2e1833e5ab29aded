"""Conversion of values to Spark's text and back (ANSI mode, session time zone UTC)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

from millstream.types import Field, Kind, Type
from oracle.errors import NotConvertible, NotInterpreted
from oracle.values.values import Value, single

_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}
_SPECIAL = {
    **dict.fromkeys(("nan",), math.nan),
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_DATE = re.compile(r"(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_TIME = re.compile(
    r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?\s*(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?", re.IGNORECASE
)


# ---------------------------------------------------------------- writing


def to_text(value: Value, type_: Type) -> str:
    """CAST(value AS STRING).

    >>> from millstream.types import DOUBLE
    >>> [to_text(x, DOUBLE) for x in (1.0, 1e7, 1.5e-5, math.inf)]
    ['1.0', '1.0E7', '1.5E-5', 'Infinity']
    """
    match type_.kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DOUBLE:
            return _java(repr(value), value)
        case Kind.FLOAT:
            digits = (f"{value:.{n}g}" for n in range(1, 10))
            return _java(next((d for d in digits if single(float(d)) == value), repr(value)), value)
        case Kind.DECIMAL:
            return f"{value:f}"
        case Kind.TIMESTAMP:
            return _timestamp(value.astimezone(UTC))
        case Kind.TIMESTAMP_NTZ:
            return _timestamp(value)
        case Kind.STRING | Kind.DATE | Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return str(value)
        case _:
            raise NotInterpreted(f"CAST of {type_} to a string")


def _java(text: str, value: float) -> str:
    """Format a double as Java does: with an exponent below 10^-3 and from 10^7."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    if value == 0:
        return "-0.0" if sign else "0.0"
    power = exponent + len(digits) - 1
    minus = "-" if sign else ""
    if -3 <= power < 7:
        whole, fraction = f"{abs(Decimal(text)):f}".partition(".")[::2]
        return f"{minus}{whole}.{fraction.rstrip('0') or '0'}"
    return f"{minus}{figures[0]}.{figures[1:] or '0'}E{power}"


def _timestamp(value: datetime) -> str:
    fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
    return f"{value.year:04}-{value:%m-%d %H:%M:%S}{fraction}"


def record_text(values: Sequence[Value], schema: Sequence[Field]) -> str:
    """Return a tuple as JSON, without its NULLs, as a bad record is stored."""
    record = {
        field.name: _json(value, field.type)
        for value, field in zip(values, schema, strict=True)
        if value is not None
    }
    parts = (f"{json.dumps(name, ensure_ascii=False)}:{text}" for name, text in record.items())
    return f"{{{','.join(parts)}}}"


def _json(value: Value, type_: Type) -> str:
    match type_.kind:
        case Kind.TIMESTAMP:
            return f'"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"'
        case Kind.TIMESTAMP_NTZ:
            return f'"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}"'
        case Kind.STRING | Kind.DATE:
            return json.dumps(str(value), ensure_ascii=False)
        case Kind.DOUBLE | Kind.FLOAT if not math.isfinite(value):
            return f'"{to_text(value, type_)}"'
        case _:
            return to_text(value, type_)


# ---------------------------------------------------------------- reading


def from_text(text: str, type_: Type) -> Value:
    """Evaluate CAST(text AS type); bounded numbers are returned as an int or a Decimal."""
    trimmed = text.strip()
    match type_.kind:
        case Kind.BOOLEAN if trimmed.lower() in _TRUE | _FALSE:
            return trimmed.lower() in _TRUE
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT if re.fullmatch(r"[+-]?\d+", trimmed):
            return int(trimmed)
        case Kind.DOUBLE | Kind.FLOAT if trimmed.lower() in _SPECIAL:
            return _SPECIAL[trimmed.lower()]
        case Kind.DOUBLE | Kind.FLOAT if re.fullmatch(_NUMBER, trimmed.rstrip("dDfF")):
            return float(trimmed.rstrip("dDfF"))
        case Kind.DECIMAL if re.fullmatch(_NUMBER, trimmed):
            try:
                return Decimal(trimmed)
            except InvalidOperation:
                pass
        case Kind.DATE:
            return _read_date(re.split(r"[ T]", trimmed, maxsplit=1)[0], text, type_)
        case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            return _read_timestamp(trimmed, type_)
    raise NotConvertible(f"'{text}' is no value of type {type_}")


def _read_date(text: str, whole: str, type_: Type) -> date:
    match = re.fullmatch(_DATE, text)
    try:
        if match:
            return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        pass
    raise NotConvertible(f"'{whole}' is no value of type {type_}")


def _read_timestamp(text: str, type_: Type) -> datetime:
    first, *rest = re.split(r"[ T]", text, maxsplit=1)
    day = _read_date(first, text, type_)
    zone = UTC if type_.kind is Kind.TIMESTAMP else None
    value = datetime(day.year, day.month, day.day, tzinfo=zone)
    if not rest:
        return value
    match = re.fullmatch(_TIME, rest[0].strip())
    if match is None:
        raise NotConvertible(f"'{text}' is no value of type {type_}")
    hour, minute, second = (int(match[i] or 0) for i in (1, 2, 3))
    # Digits behind the microseconds are cut off.
    microsecond = int(f"{match[4] or '':0<6.6}")
    try:
        value = value.replace(hour=hour, minute=minute, second=second, microsecond=microsecond)
    except ValueError:
        raise NotConvertible(f"'{text}' is no value of type {type_}") from None
    offset = match[5]
    if offset is None or zone is None or offset.upper() in ("Z", "UTC"):
        return value
    sign = -1 if offset[0] == "-" else 1
    hours, _, minutes = offset[1:].partition(":") if ":" in offset else (offset[1:3], "", offset[3:])
    shift = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return value.replace(tzinfo=timezone(sign * shift)).astimezone(UTC)
