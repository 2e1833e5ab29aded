"""Inputs of the interpreter: streams in order of arrival, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from millstream.types import Field, Kind, Type
from oracle.errors import Overflow
from oracle.values.values import BITS, Months, Value, fitted, order_key


@dataclass(frozen=True)
class Row:
    """A tuple by its columns; a missing column is NULL.

    An internal timestamp is passed like any other column: it is the time recorded on arrival. ``stamp`` is
    such a record too, for a tuple without a timestamp of its own: the time at the first operator that needed
    one.
    """

    values: Mapping[str, Value]
    stamp: datetime | None = None


@dataclass(frozen=True)
class Heartbeat:
    """A heartbeat: no tuple before ``time`` is still to come, on the timestamp or on the attribute ``on``."""

    time: Value
    on: str | None = None


Arrival = Row | Heartbeat


@dataclass(frozen=True)
class Arrivals:
    """A stream: the arrivals of each source partition, in order."""

    partitions: Sequence[Sequence[Arrival]]


Input = Arrivals | Sequence[Mapping[str, Value]]
"""A stream, or the rows of a table."""

_PYTHON: dict[Kind, type | tuple[type, ...]] = {
    Kind.BOOLEAN: bool,
    **dict.fromkeys(BITS, int),
    Kind.FLOAT: float,
    Kind.DOUBLE: float,
    Kind.DECIMAL: Decimal,
    Kind.STRING: str,
    Kind.BINARY: bytes,
    Kind.DATE: date,
    Kind.TIMESTAMP: datetime,
    Kind.TIMESTAMP_NTZ: datetime,
    Kind.DAY_TIME_INTERVAL: timedelta,
    Kind.YEAR_MONTH_INTERVAL: Months,
}


def row_values(given: Mapping[str, Value], schema: Sequence[Field], name: str) -> tuple[Value, ...]:
    """Return the values in the order of the columns, checked against their types."""
    by_name = {column.lower(): value for column, value in given.items()}
    unknown = set(by_name) - {field.name.lower() for field in schema}
    if unknown:
        raise ValueError(f"'{name}' has no column {', '.join(sorted(unknown))}")
    return tuple(checked(by_name.get(field.name.lower()), field.type, name) for field in schema)


def checked(value: Value, type_: Type, name: str) -> Value:
    """Return a value of its type; raise an error in the test otherwise."""
    if value is None:
        return None
    if type_.element is not None and type_.key is None and isinstance(value, list):
        return [checked(one, type_.element, name) for one in value]
    class_ = _PYTHON.get(type_.kind)
    wrong = class_ is None or not isinstance(value, class_)
    wrong = wrong or (isinstance(value, bool) and type_.kind is not Kind.BOOLEAN)
    wrong = wrong or (isinstance(value, datetime) and type_.kind is Kind.DATE)
    if isinstance(value, datetime):
        wrong = wrong or (value.tzinfo is None) is (type_.kind is Kind.TIMESTAMP)
    try:
        if not wrong and order_key(exact := fitted(value, type_, name)) == order_key(value):
            return exact
    except Overflow:
        pass
    raise ValueError(f"'{name}': {value!r} is no value of type {type_}")
