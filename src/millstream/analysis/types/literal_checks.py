"""Texts that stand where a number, a time or a condition is wanted.

Spark (ANSI mode) converts a text beside a number to a number, and so on. Of a text that is written out it
is known whether that can succeed: where it cannot, the query would fail with its first row.
"""

from __future__ import annotations

import re
from calendar import monthrange

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.types import DOUBLE, Kind, Type

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[df]?|nan|inf|infinity|0x[\da-f.]+p[+-]?\d+)", re.IGNORECASE
)
_CONDITION = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_YEAR, _MONTH, _DAY = r"[+-]?(?P<year>\d{4,7})", r"(?P<month>\d{1,2})", r"(?P<day>\d{1,2})"
_CLOCK = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.\d*)?)?)?"
    r"(?P<zone>[^\d:.].*)?"
)
_SPECIAL_TIMES = frozenset({"epoch", "now", "today", "tomorrow", "yesterday"})


def check_literal(node: exp.Expr, wanted: Type, *, whole: bool = False) -> None:
    """Raise if a text is written here that Spark cannot convert to what stands beside it.

    With ``whole``, beside a whole number only a whole number will do.
    """
    literal = node.unnest()
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return
    noun = _cannot_be(literal.name, wanted if whole or not wanted.is_numeric else DOUBLE)
    if noun is None:
        return
    shown = literal.name if len(literal.name) <= 30 else f"{literal.name[:28]}.."
    raise error_at(
        node,
        f"'{shown}' is not {noun}, but stands beside a value of type {wanted}",
        hint=_written(wanted) if wanted.is_time else "a column stands without quotes",
    )


def _written(wanted: Type) -> str:
    return "write '2026-01-31'" if wanted.kind is Kind.DATE else "write '2026-01-31 07:00:00'"


def _cannot_be(text: str, wanted: Type) -> str | None:
    """Name the kind of value that a text would have to be, and is not.

    >>> from millstream.types import BOOLEAN, DOUBLE, INT, TIMESTAMP
    >>> _cannot_be("cheap", DOUBLE), _cannot_be(" 1e3 ", DOUBLE), _cannot_be("1.5", INT), _cannot_be("7", INT)
    ('a number', None, 'a whole number', None)
    >>> _cannot_be("maybe", BOOLEAN), _cannot_be("noon", TIMESTAMP), _cannot_be("2026-01-31", TIMESTAMP)
    ('true or false', 'a time', None)
    """
    text = text.strip()
    if wanted.is_integral:
        return None if _WHOLE.fullmatch(text) else "a whole number" if _NUMBER.fullmatch(text) else "a number"
    if wanted.is_numeric:
        return None if _NUMBER.fullmatch(text) else "a number"
    if wanted.kind is Kind.BOOLEAN:
        return None if text.lower() in _CONDITION else "true or false"
    if wanted.is_time:
        noun = "a date" if wanted.kind is Kind.DATE else "a time"
        return None if _is_time(text, wanted.kind) or text.lower() in _SPECIAL_TIMES else noun
    return None


def _is_time(text: str, kind: Kind) -> bool:
    """Tell whether Spark can read a date or a timestamp; the name of a time zone is for Spark to know.

    >>> [_is_time(text, Kind.TIMESTAMP) for text in ("2015", "2015-3-1T7:30Z", "7:30", "2015-02-29")]
    [True, True, True, False]
    >>> _is_time("2015-03-01 noon", Kind.DATE), _is_time("2015-03-01 24:00", Kind.TIMESTAMP_NTZ)
    (True, False)
    """
    if kind is Kind.TIMESTAMP and (clock := re.fullmatch(f"T?(?=\\d+:){_CLOCK}", text)):
        return _is_clock(clock)
    behind = r"(?:[ T].*)?" if kind is Kind.DATE else f"(?:[ T]{_CLOCK})?"
    found = re.fullmatch(rf"{_YEAR}(?:-{_MONTH}(?:-{_DAY}{behind})?)?", text, re.DOTALL)
    if found is None:
        return False
    year, month, day = (int(found[part] or 1) for part in ("year", "month", "day"))
    # The calendar repeats itself every 400 years, and Python's knows no year 0.
    in_calendar = 1 <= month <= 12 and 1 <= day <= monthrange(2000 + year % 400, month)[1]
    return in_calendar and (kind is Kind.DATE or _is_clock(found))


def _is_clock(found: re.Match[str]) -> bool:
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    return hour < 24 and minute < 60 and second < 60
