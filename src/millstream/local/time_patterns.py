"""Spark's patterns of dates and times, such as ``yyyy-MM-dd HH:mm:ss``, for reading and writing texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from itertools import groupby
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from millstream.errors import NotExecutableError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Letters:
    """A run of one letter of a pattern."""

    letter: str
    count: int


Part = Letters | str


def read_time(text: str, pattern: str) -> int | None:
    """Return the microseconds from the epoch that a text stands for, in UTC, or None if it does not fit.

    >>> read_time("17/May/2015:10:05:03 +0200", "dd/MMM/yyyy:HH:mm:ss Z") == read_time("08:05:03", "HH:mm:ss")
    False
    >>> read_time("1970-01-02", "yyyy-MM-dd")
    86400000000
    """
    found = _reader(pattern).fullmatch(text)
    if found is None:
        return None
    fields = {name: value for name, value in found.groupdict().items() if value is not None}
    try:
        time = datetime(
            int(fields.get("y", 1970)) + (2000 if len(fields.get("y", "")) == 2 else 0),
            _month(fields.get("M", "1")),
            int(fields.get("d", 1)),
            _hour(fields),
            int(fields.get("m", 0)),
            int(fields.get("s", 0)),
            int(fields.get("S", "0").ljust(6, "0")[:6]),
            _zone(fields.get("zone", "Z")),
        )
    except (ValueError, ZoneInfoNotFoundError):
        return None
    return (time - EPOCH) // timedelta(microseconds=1)


def write_time(micros: int, pattern: str) -> str:
    """Return the text of an instant, in UTC.

    >>> write_time(0, "EEE dd MMM yyyy h:mm a")
    'Thu 01 Jan 1970 12:00 AM'
    """
    time = EPOCH + timedelta(microseconds=micros)
    return "".join(
        part if isinstance(part, str) else _written(part, time)
        for part in _parts(pattern)
        if part not in ("[", "]")
    )


def _parts(pattern: str) -> Iterator[Part]:
    """Split a pattern into runs of letters and texts; quotes enclose texts, brackets what may be absent."""
    for piece in re.findall(r"'(?:[^']|'')*'|[A-Za-z]+|[^A-Za-z']", pattern):
        if piece == "''":
            yield "'"
        elif piece.startswith("'"):
            yield piece[1:-1].replace("''", "'")
        elif piece.isalpha():
            yield from (Letters(letter, len(list(run))) for letter, run in groupby(piece))
        else:
            yield piece


@lru_cache(maxsize=256)
def _reader(pattern: str) -> re.Pattern[str]:
    source = ""
    for part in _parts(pattern):
        match part:
            case Letters():
                source += _readable(part, pattern)
            case "[":
                source += "(?:"
            case "]":
                source += ")?"
            case _:
                source += re.escape(part)
    return re.compile(source, re.ASCII | re.IGNORECASE)


def _readable(part: Letters, pattern: str) -> str:
    match part.letter:
        case "M" | "L" if part.count == 3:
            return f"(?P<M>{'|'.join(month[:3] for month in _MONTHS)})"
        case "M" | "L" if part.count == 4:
            return f"(?P<M>{'|'.join(_MONTHS)})"
        case "E":
            return f"(?:{'|'.join(day if part.count == 4 else day[:3] for day in _DAYS)})"
        case "a":
            return "(?P<a>AM|PM)"
        case "Z" | "X" | "x":
            return r"(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)"
        case "V" | "z":
            return r"(?P<zone>[A-Za-z_]+(?:/[A-Za-z_]+)*|[+-]\d{2}:\d{2})"
        case "S":
            return rf"(?P<S>\d{{1,{part.count}}})"
        case "y" | "M" | "L" | "d" | "H" | "h" | "m" | "s":
            name = "M" if part.letter == "L" else part.letter
            return rf"(?P<{name}>\d{{1,4}})" if part.count == 1 else rf"(?P<{name}>\d{{{part.count}}})"
    raise _unknown(part, pattern)


def _unknown(part: Letters, pattern: str = "") -> NotExecutableError:
    where = f" in '{pattern}'" if pattern else ""
    return NotExecutableError(
        f"the letter '{part.letter}' of a pattern of times{where} cannot be used by the local engine yet",
        hint="run without --engine local",
    )


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    name = text.capitalize()
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name))


def _hour(fields: dict[str, str]) -> int:
    if "h" in fields:
        if not 1 <= int(fields["h"]) <= 12:
            raise ValueError(fields["h"])
        return int(fields["h"]) % 12 + (12 if fields.get("a", "").upper() == "PM" else 0)
    return int(fields.get("H", 0))


def _zone(text: str) -> timezone | ZoneInfo:
    if text in "Zz":
        return UTC
    if text[0] in "+-":
        digits = text[1:].replace(":", "").ljust(4, "0")
        length = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        return timezone(length if text[0] == "+" else -length)
    return ZoneInfo(text)


_WRITERS: dict[str, Callable[[datetime, int], str]] = {
    "y": lambda time, count: f"{time.year % 100:02}" if count == 2 else str(time.year).zfill(count),
    "M": lambda time, count: _name(_MONTHS[time.month - 1], time.month, count),
    "L": lambda time, count: _name(_MONTHS[time.month - 1], time.month, count),
    "d": lambda time, count: str(time.day).zfill(count),
    "D": lambda time, count: str(time.timetuple().tm_yday).zfill(count),
    "E": lambda time, count: _DAYS[time.weekday()] if count == 4 else _DAYS[time.weekday()][:3],
    "H": lambda time, count: str(time.hour).zfill(count),
    "h": lambda time, count: str((time.hour - 1) % 12 + 1).zfill(count),
    "m": lambda time, count: str(time.minute).zfill(count),
    "s": lambda time, count: str(time.second).zfill(count),
    "S": lambda time, count: f"{time.microsecond:06}".ljust(count, "0")[:count],
    "a": lambda time, count: "AM" if time.hour < 12 else "PM",
    "Q": lambda time, count: str((time.month + 2) // 3).zfill(count),
    "X": lambda time, count: "Z",
    "x": lambda time, count: ("+00", "+0000", "+00:00")[min(count, 3) - 1],
    "Z": lambda time, count: "+0000",
}


def _name(month: str, number: int, count: int) -> str:
    return str(number).zfill(count) if count < 3 else month[:3] if count == 3 else month


def _written(part: Letters, time: datetime) -> str:
    writer = _WRITERS.get(part.letter)
    if writer is None:
        raise _unknown(part)
    return writer(time, part.count)
