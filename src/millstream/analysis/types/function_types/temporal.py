"""Result types of functions of dates, timestamps and intervals."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from millstream.analysis.types import coercion
from millstream.analysis.types.function_types.function_call import Call, Rule
from millstream.types import (
    BIGINT,
    DATE,
    INT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    UNKNOWN,
    Kind,
    Type,
    decimal,
)

_YEARS = ("year", "y", "years", "yr", "yrs")
_MONTHS = ("month", "mon", "mons", "months")
_DAYS = ("day", "d", "days")
_SECONDS = ("second", "s", "sec", "seconds", "secs")
_CLOCK = ("hour", "h", "hours", "hr", "hrs", "minute", "m", "min", "mins", "minutes")
_CALENDAR = (
    *("yearofweek", "quarter", "qtr", "week", "w", "weeks"),
    *("dayofweek", "dow", "dayofweek_iso", "dow_iso", "doy"),
)

_SECOND = decimal(8, 6)
_PARTS = {
    Kind.YEAR_MONTH_INTERVAL: dict.fromkeys(_YEARS, INT) | dict.fromkeys(_MONTHS, TINYINT),
    Kind.DAY_TIME_INTERVAL: dict.fromkeys(_DAYS, INT)
    | dict.fromkeys(_CLOCK, TINYINT)
    | dict.fromkeys(_SECONDS, _SECOND),
}
_PARTS_OF_TIMES = dict.fromkeys((*_YEARS, *_MONTHS, *_DAYS, *_CLOCK, *_CALENDAR), INT) | dict.fromkeys(
    _SECONDS, _SECOND
)


def extracted(call: Call, part: str, source: Type) -> Type:
    """Type ``EXTRACT(part FROM source)`` and ``date_part``."""
    if not source.is_known:
        return UNKNOWN
    if not (source.is_interval or coercion.converts(source, DATE)):
        call.fail(f"a {source} has no {part.lower()} to extract")
    result = _PARTS.get(source.kind, _PARTS_OF_TIMES).get(part.lower())
    if result is None:
        call.fail(f"cannot extract {part.lower()} from {source}")
    return result


def _date_part(call: Call) -> Type:
    part = call.arguments[0]
    if not (isinstance(part, exp.Literal) and part.is_string):
        return UNKNOWN
    return extracted(call, part.name, call.types[1])


def moved_by_units(call: Call) -> Type:
    """Type ``dateadd(unit, n, time)`` and ``timestampadd``."""
    amount, time = call.types
    if not coercion.converts(amount, BIGINT):
        call.fail(f"the amount must be a number, but this is {amount}")
    _check_times(call, [time])
    return time if time == TIMESTAMP_NTZ or not time.is_known else TIMESTAMP


def difference_in_units(call: Call) -> Type:
    """Type ``datediff(unit, time, time)`` and ``timestampdiff``."""
    _check_times(call, call.types)
    return BIGINT


def _check_times(call: Call, types: Sequence[Type]) -> None:
    for type_ in types:
        if not coercion.converts(type_, TIMESTAMP):
            call.fail(f"'{call.name}' needs a time, but this is {type_}")


RULES: dict[str, Rule] = {"date_part": _date_part}
