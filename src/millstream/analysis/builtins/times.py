"""Result types of functions of dates, timestamps and intervals."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from millstream.analysis import coercion
from millstream.analysis.builtins.call import Call, Rule
from millstream.types import BIGINT, DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, TINYINT, UNKNOWN, Kind, Type, decimal

UNITS = frozenset("microsecond millisecond second minute hour day dayofyear week month quarter year".split())
"""Units that may be the first argument of dateadd and datediff."""

_SECONDS = ("second", "s", "sec", "seconds", "secs")
_OF_DATE = frozenset(
    "year y years yr yrs yearofweek quarter qtr month mon mons months week w weeks day d days"
    " dayofweek dow dayofweek_iso dow_iso doy".split()
)
_OF_TIME = frozenset((*_SECONDS, *"hour h hours hr hrs minute m min mins minutes".split()))
_OF_YEARS = {"year": INT, "y": INT, "years": INT, "yr": INT, "yrs": INT}
_OF_MONTHS = dict.fromkeys(("month", "mon", "mons", "months"), TINYINT)
_OF_DAYS = {"day": INT, "d": INT, "days": INT}


def extracted(call: Call, part: str, source: Type) -> Type:
    """Of ``EXTRACT(part FROM source)`` and ``date_part``."""
    part = part.lower()
    seconds = decimal(8, 6)
    if source.kind is Kind.YEAR_MONTH_INTERVAL:
        result = (_OF_YEARS | _OF_MONTHS).get(part)
    elif source.kind is Kind.DAY_TIME_INTERVAL:
        small = seconds if part in _SECONDS else TINYINT
        result = small if part in _OF_TIME else _OF_DAYS.get(part)
    else:
        result = (seconds if part in _SECONDS else INT) if part in _OF_DATE | _OF_TIME else None
        if not (coercion.converts(source, DATE) or source == TIMESTAMP_NTZ):
            call.fail(f"a {source} has no {part} to extract")
    if result is None:
        call.fail(f"cannot extract {part} from {source}")
    return result


def _date_part(call: Call) -> Type:
    part = call.arguments[0]
    if not (isinstance(part, exp.Literal) and part.is_string):
        return UNKNOWN
    return extracted(call, part.name, call.types[1])


def moved_by_units(call: Call) -> Type:
    """Of ``dateadd(unit, n, time)`` and ``timestampadd``."""
    amount, time = call.types
    if not coercion.converts(amount, BIGINT):
        call.fail(f"the amount must be a number, but this is {amount}")
    _check_times(call, [time])
    return time if time == TIMESTAMP_NTZ or not time.is_known else TIMESTAMP


def difference_in_units(call: Call) -> Type:
    """Of ``datediff(unit, time, time)`` and ``timestampdiff``."""
    _check_times(call, call.types)
    return BIGINT


def _check_times(call: Call, types: Sequence[Type]) -> None:
    for type_ in types:
        if not coercion.converts(type_, TIMESTAMP):
            call.fail(f"'{call.name}' needs a time, but this is {type_}")


RULES: dict[str, Rule] = {"date_part": _date_part}
