"""Functions of Spark that only the local engine computes itself: of times, patterns and texts.

Timestamps are microseconds and dates days from the epoch, in UTC.
"""

from __future__ import annotations

import calendar
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from millstream.local.time_patterns import read_time, write_time
from millstream.program.failures import OutsideError
from millstream.program.interpreted_functions import from_text
from millstream.types import BIGINT, DATE, INT, STRING, TIMESTAMP, Type

_DAY = 86_400_000_000
_FIRST = date(1970, 1, 1)


@dataclass(frozen=True)
class LocalFunction:
    """A function of values that are not NULL, and the types in which it takes its arguments.

    A NULL argument gives NULL, unless the function ``takes_nulls``. Further arguments have the last type.
    """

    compute: Callable[..., Any]
    parameters: tuple[Type, ...]
    takes_nulls: bool = False

    def parameter(self, index: int) -> Type:
        return self.parameters[min(index, len(self.parameters) - 1)]


# ---------------------------------------------------------------- times


def _instant(text: str, pattern: str | None = None) -> int:
    """Compute to_timestamp; a text that does not fit is an error, as in Spark's ANSI mode."""
    if pattern is None:
        return int(from_text(text.strip(), TIMESTAMP))
    found = read_time(text, pattern)
    if found is None:
        raise OutsideError(f"'{text}' is no timestamp of the form '{pattern}'")
    return found


def _instant_or_null(text: str, pattern: str | None = None) -> int | None:
    try:
        return _instant(text, pattern)
    except OutsideError:
        return None


def _day(text: str, pattern: str | None = None) -> int:
    return int(from_text(text.strip(), DATE)) if pattern is None else _instant(text, pattern) // _DAY


def _truncated(unit: str, micros: int) -> int | None:
    length = _LENGTHS.get(unit.lower())
    if length is not None:
        return micros // length * length
    day = _truncated_day(micros // _DAY, unit)
    return None if day is None else day * _DAY


def _truncated_day(day: int, unit: str) -> int | None:
    name = _UNITS.get(unit.lower())
    on = _FIRST + timedelta(days=day)
    match name:
        case "week":
            return day - on.weekday()
        case "month":
            return day - on.day + 1
        case "quarter":
            return (on.replace(month=(on.month - 1) // 3 * 3 + 1, day=1) - _FIRST).days
        case "year":
            return (on.replace(month=1, day=1) - _FIRST).days
    return None


def _last_day(day: int) -> int:
    on = _FIRST + timedelta(days=day)
    return day + calendar.monthrange(on.year, on.month)[1] - on.day


def _months_added(day: int, months: int) -> int:
    on = _FIRST + timedelta(days=day)
    year, month = divmod(on.year * 12 + on.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return (date(year, month + 1, min(on.day, last)) - _FIRST).days


def _made_date(year: int, month: int, day: int) -> int:
    try:
        return (date(year, month, day) - _FIRST).days
    except ValueError as error:
        raise OutsideError(f"there is no date {year}-{month}-{day}: {error}") from None


_LENGTHS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": _DAY,
    "dd": _DAY,
}
_UNITS = {
    "week": "week",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "quarter": "quarter",
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
}


# ---------------------------------------------------------------- texts


def _extracted(text: str, pattern: str, group: int = 1) -> str:
    found = re.search(pattern, text)
    return (found.group(group) or "") if found else ""


def _replaced(text: str, pattern: str, replacement: str) -> str:
    return re.sub(pattern, re.sub(r"\$(\d)", r"\\\1", replacement), text)


def _joined(separator: str | None, *parts: str | None) -> str | None:
    return None if separator is None else separator.join(part for part in parts if part is not None)


def _before_separator(text: str, separator: str, count: int) -> str:
    if not separator or count == 0:
        return ""
    parts = text.split(separator)
    return separator.join(parts[:count] if count > 0 else parts[count:])


def _translated(text: str, letters: str, replacements: str) -> str:
    table: dict[str, str] = {}
    for index, letter in enumerate(letters):
        table.setdefault(letter, replacements[index] if index < len(replacements) else "")
    return "".join(table.get(letter, letter) for letter in text)


def _at_path(text: str, path: str) -> str | None:
    """Compute get_json_object for paths of names and numbers: ``$.a.b[0]``."""
    steps = re.findall(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]", path[1:])
    try:
        value = json.loads(text)
        for name, number, quoted in steps:
            value = value[int(number)] if number else value[name or quoted]
    except (ValueError, LookupError, TypeError):
        return None
    return value if isinstance(value, str) or value is None else json.dumps(value, separators=(",", ":"))


def _sha2(text: str, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return None if name is None else hashlib.new(name, text.encode()).hexdigest()


FUNCTIONS: dict[str, LocalFunction] = {
    **dict.fromkeys(("to_timestamp", "to_timestamp_ltz"), LocalFunction(_instant, (STRING,))),
    "try_to_timestamp": LocalFunction(_instant_or_null, (STRING,)),
    "to_date": LocalFunction(_day, (STRING,)),
    "date_trunc": LocalFunction(_truncated, (STRING, TIMESTAMP)),
    "trunc": LocalFunction(_truncated_day, (DATE, STRING)),
    "date_format": LocalFunction(write_time, (TIMESTAMP, STRING)),
    "from_unixtime": LocalFunction(
        lambda seconds, pattern="yyyy-MM-dd HH:mm:ss": write_time(seconds * 1_000_000, pattern),
        (BIGINT, STRING),
    ),
    "date_add": LocalFunction(lambda day, days: day + days, (DATE, INT)),
    "date_sub": LocalFunction(lambda day, days: day - days, (DATE, INT)),
    **dict.fromkeys(("datediff", "date_diff"), LocalFunction(lambda a, b: a - b, (DATE,))),
    "add_months": LocalFunction(_months_added, (DATE, INT)),
    "last_day": LocalFunction(_last_day, (DATE,)),
    "make_date": LocalFunction(_made_date, (INT,)),
    "weekday": LocalFunction(lambda day: (day + 3) % 7, (DATE,)),
    "weekofyear": LocalFunction(lambda day: (_FIRST + timedelta(days=day)).isocalendar().week, (DATE,)),
    "dayname": LocalFunction(lambda day: write_time(day * _DAY, "EEE"), (DATE,)),
    "monthname": LocalFunction(lambda day: write_time(day * _DAY, "MMM"), (DATE,)),
    "regexp_extract": LocalFunction(_extracted, (STRING, STRING, INT)),
    "regexp_replace": LocalFunction(_replaced, (STRING,)),
    "concat_ws": LocalFunction(_joined, (STRING,), takes_nulls=True),
    "substring_index": LocalFunction(_before_separator, (STRING, STRING, INT)),
    "translate": LocalFunction(_translated, (STRING,)),
    "get_json_object": LocalFunction(_at_path, (STRING,)),
    "md5": LocalFunction(lambda text: hashlib.md5(text.encode()).hexdigest(), (STRING,)),
    **dict.fromkeys(
        ("sha", "sha1"), LocalFunction(lambda text: hashlib.sha1(text.encode()).hexdigest(), (STRING,))
    ),
    "sha2": LocalFunction(_sha2, (STRING, INT)),
}
