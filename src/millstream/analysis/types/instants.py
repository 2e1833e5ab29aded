"""Bounds of windows as instants, without Spark."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from millstream.errors import NotExecutableError
from millstream.syntax import parse_expression
from millstream.types import Kind, Type

MICROSECONDS_PER_DAY = 86_400_000_000
_DAYS_PER_400_YEARS = 146_097

_TIME = re.compile(
    r"(?P<year>[+-]?\d{4,7})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?)?"
    r"(?P<zone>[^\d:.].*)?)?)?)?"
)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?(?::?(?P<seconds>\d{2}))?"
)


def literal_text(text: str) -> str:
    """Return the text of a bound that is a literal in quotes, or a cast of one.

    >>> literal_text("TIMESTAMP '2026-01-31'"), literal_text("'09:30'")
    ('2026-01-31', '09:30')
    """
    node = parse_expression(text)
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return str(node.name)


def instant(text: str, wanted: Type, zone: str = "UTC") -> int:
    """Return a time as Spark reads it, in microseconds; a date is its midnight.

    ``zone`` is where times without a zone are; of a TIMESTAMP_NTZ, zones are ignored.

    >>> from millstream.types import DATE, TIMESTAMP
    >>> instant("1970-01-02", DATE), instant("1970-01-01T01:00:00.5+01:00", TIMESTAMP)
    (86400000000, 500000)
    """
    if text.strip().lower() == "epoch":
        return 0
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise NotExecutableError(f"'{text}' is not a time", hint="write '2026-01-31 07:00:00'")
    year, month, day = int(found["year"]), int(found["month"] or 1), int(found["day"] or 1)
    if not (1 <= month <= 12 and 1 <= day <= monthrange(2000 + year % 400, month)[1]):
        raise NotExecutableError(f"'{text}' is not a time", hint="there is no such day")
    # The calendar repeats itself every 400 years, and Python's knows few of them.
    eras = (year - 2000) // 400
    near = date(year - 400 * eras, month, day)
    midnight = (near - date(1970, 1, 1)).days * MICROSECONDS_PER_DAY
    midnight += eras * _DAYS_PER_400_YEARS * MICROSECONDS_PER_DAY
    if wanted.kind is Kind.DATE:
        return midnight
    seconds = (int(found["hour"] or 0) * 60 + int(found["minute"] or 0)) * 60 + int(found["second"] or 0)
    local = midnight + seconds * 1_000_000 + int((found["fraction"] or "").ljust(6, "0")[:6] or 0)
    if wanted.kind is Kind.TIMESTAMP_NTZ:
        return local
    moment = datetime.combine(near, time()) + timedelta(seconds=seconds)
    offset = _zone((found["zone"] or zone).strip(), text).utcoffset(moment)
    return local - (0 if offset is None else int(offset.total_seconds()) * 1_000_000)


def _zone(name: str, text: str) -> tzinfo:
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    if found := _OFFSET.fullmatch(name):
        minutes, seconds = int(found["minutes"] or 0), int(found["seconds"] or 0)
        length = timedelta(hours=int(found["hours"]), minutes=minutes, seconds=seconds)
        return timezone(length if found["sign"] == "+" else -length)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise NotExecutableError(
            f"'{text}' has a time zone that is not known", hint="write one as 'Europe/Oslo' or '+01:00'"
        ) from None
