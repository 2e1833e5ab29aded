"""Conversions between types, explicit and implicit, by Spark's ANSI rules.

All functions here are about types alone, and UNKNOWN goes together with everything. The rules are those of
Spark's ``AnsiTypeCoercion``, ``DecimalPrecision`` and ``Cast.canAnsiCast``.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from millstream.types import (
    BIGINT,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INTEGRAL_KINDS,
    NULL,
    NUMERIC_KINDS,
    TIME_KINDS,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNKNOWN,
    Field,
    Kind,
    Type,
    array,
    decimal,
    map_of,
    struct,
)

MAX_PRECISION = 38

_NESTED = (Kind.ARRAY, Kind.MAP, Kind.STRUCT)
_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 20}


class Widening(IntEnum):
    """Degree to which types may change to meet; each step allows those before it."""

    TIGHT = 0
    """No value changes: integers to wider ones, dates to timestamps. For ``=`` inside arrays and structs."""
    WIDE = 1
    """Decimals may lose digits. For greatest and least."""
    STRINGS = 2
    """A string becomes whatever it meets. For CASE, coalesce, IN, array, UNION."""


def common_type(a: Type, b: Type, widening: Widening = Widening.STRINGS) -> Type | None:
    """Return the least type that values of both types can be converted to, or None.

    >>> from millstream.types import DATE, INT, STRING, BOOLEAN
    >>> print(common_type(INT, decimal(10, 2)), common_type(STRING, DATE), common_type(INT, BOOLEAN))
    decimal(12,2) date None
    """
    if not (a.is_known and b.is_known):
        return UNKNOWN
    if a == b or b.kind is Kind.NULL:
        return a
    if a.kind is Kind.NULL:
        return b
    if a.is_numeric and b.is_numeric:
        return _common_number(a, b, widening)
    if a.is_time and b.is_time:
        return TIMESTAMP if TIMESTAMP in (a, b) else TIMESTAMP_NTZ
    if a.kind is b.kind:
        return DAY_TIME_INTERVAL if a.is_interval else _common_nested(a, b, widening)
    if widening is Widening.STRINGS and Kind.STRING in (a.kind, b.kind):
        return _string_becomes(b if a.kind is Kind.STRING else a)
    return None


def common_type_of(types: Iterable[Type], widening: Widening = Widening.STRINGS) -> Type | None:
    """Return the common type of any number of types; void for none."""
    so_far = NULL
    for type_ in types:
        wider = common_type(so_far, type_, widening)
        if wider is None:
            return None
        so_far = wider
    return so_far


def _common_number(a: Type, b: Type, widening: Widening) -> Type | None:
    if Kind.DECIMAL in (a.kind, b.kind):
        if not (a.kind in _DIGITS or b.kind in _DIGITS or a.kind is b.kind):
            return DOUBLE if widening else None
        x, y = as_decimal(a), as_decimal(b)
        wider = _wider_decimal(x, y)
        # Only an integer disappears in a decimal without a trace; two decimals may both have to give.
        lossless = a.kind is not b.kind and wider in (a, b)
        return wider if widening or lossless else None
    if a.is_integral and b.is_integral:
        return max(a, b, key=lambda type_: INTEGRAL_KINDS.index(type_.kind))
    return DOUBLE


def as_decimal(type_: Type) -> Type:
    """Return a decimal for all values of an integral type; a decimal as it is."""
    return decimal(_DIGITS[type_.kind], 0) if type_.kind in _DIGITS else type_


def _wider_decimal(a: Type, b: Type) -> Type:
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    if whole + scale <= MAX_PRECISION:
        return decimal(whole + scale, scale)
    return decimal(MAX_PRECISION, max(0, MAX_PRECISION - whole))


def _common_nested(a: Type, b: Type, widening: Widening) -> Type | None:
    if a.kind is Kind.STRUCT:
        return _common_struct(a, b, widening)
    element = common_type(_part(a.element), _part(b.element), widening)
    if element is None or a.kind is Kind.ARRAY:
        return element and array(element)
    # A key that has to be parsed from a string might become NULL, and keys may not be NULL.
    key = common_type(_part(a.key), _part(b.key), min(widening, Widening.WIDE))
    return key and map_of(key, element)


def _common_struct(a: Type, b: Type, widening: Widening) -> Type | None:
    if [f.name.lower() for f in a.fields] != [f.name.lower() for f in b.fields]:
        return None
    fields = []
    for x, y in zip(a.fields, b.fields, strict=True):
        type_ = common_type(x.type, y.type, widening)
        if type_ is None:
            return None
        fields.append(Field(x.name, type_))
    return struct(*fields)


def _string_becomes(other: Type) -> Type | None:
    if other.is_integral:
        return BIGINT
    if other.is_numeric:
        return DOUBLE
    return None if other.is_interval or other.kind in _NESTED else other


def _part(type_: Type | None) -> Type:
    return type_ or UNKNOWN


# ---------------------------------------------------------------- comparing


def can_compare(a: Type, b: Type) -> bool:
    """Tell whether ``a = b`` and ``a < b`` have a meaning.

    >>> from millstream.types import INT, STRING
    >>> can_compare(INT, STRING), can_compare(INT, TIMESTAMP)
    (True, False)
    """
    if not (can_sort(a) and can_sort(b)):
        return False
    if a.is_numeric and b.is_numeric:
        return True
    if a.kind in _NESTED and b.kind in _NESTED:
        return same_shape(a, b) or common_type(a, b, Widening.TIGHT) is not None
    return common_type(a, b) is not None


def can_sort(type_: Type) -> bool:
    """Tell whether values of the type have an order."""
    if type_.kind is Kind.STRUCT:
        return all(can_sort(field.type) for field in type_.fields)
    if type_.kind is Kind.ARRAY:
        return can_sort(_part(type_.element))
    return type_.kind not in (Kind.MAP, Kind.VARIANT)


def same_shape(a: Type, b: Type) -> bool:
    """Tell whether two types are the same but for the names of fields."""
    if not (a.is_known and b.is_known):
        return True
    if a.kind is Kind.STRUCT and b.kind is Kind.STRUCT:
        return len(a.fields) == len(b.fields) and all(
            same_shape(x.type, y.type) for x, y in zip(a.fields, b.fields, strict=True)
        )
    if a.kind is Kind.ARRAY and b.kind is Kind.ARRAY:
        return same_shape(_part(a.element), _part(b.element))
    return a == b


# ---------------------------------------------------------------- converting

_INTERVALS = frozenset({Kind.DAY_TIME_INTERVAL, Kind.YEAR_MONTH_INTERVAL})
_EXACT = frozenset({*INTEGRAL_KINDS, Kind.DECIMAL})
_FLAT = frozenset(set(Kind) - {*_NESTED, Kind.NULL, Kind.UNKNOWN})

# What CAST can make of each flat type, besides itself and a string.
_CASTS: dict[Kind, frozenset[Kind]] = {
    Kind.BOOLEAN: NUMERIC_KINDS | {Kind.VARIANT},
    **dict.fromkeys(_EXACT, NUMERIC_KINDS | _INTERVALS | {Kind.BOOLEAN, Kind.TIMESTAMP, Kind.VARIANT}),
    **dict.fromkeys((Kind.FLOAT, Kind.DOUBLE), NUMERIC_KINDS | {Kind.BOOLEAN, Kind.TIMESTAMP, Kind.VARIANT}),
    Kind.STRING: _FLAT,
    Kind.BINARY: frozenset({Kind.VARIANT}),
    Kind.DATE: TIME_KINDS | {Kind.VARIANT},
    Kind.TIMESTAMP: TIME_KINDS | NUMERIC_KINDS | {Kind.VARIANT},
    Kind.TIMESTAMP_NTZ: TIME_KINDS | {Kind.VARIANT},
    **dict.fromkeys(_INTERVALS, _EXACT),
    Kind.VARIANT: frozenset(set(Kind) - _INTERVALS - {Kind.NULL}),
}


def can_cast(given: Type, wanted: Type) -> bool:
    """Tell whether CAST can convert one type to the other at all.

    >>> from millstream.types import BOOLEAN, DATE, INT, STRING
    >>> can_cast(STRING, DATE), can_cast(BOOLEAN, DATE), can_cast(array(INT), array(STRING))
    (True, False, True)
    """
    if not (given.is_known and wanted.is_known) or given.kind is Kind.NULL:
        return True
    if given.kind in _NESTED:
        return wanted.kind is Kind.STRING or _can_cast_parts(given, wanted)
    return wanted.kind in (given.kind, Kind.STRING) or wanted.kind in _CASTS[given.kind]


def _can_cast_parts(given: Type, wanted: Type) -> bool:
    match given.kind, wanted.kind:
        case Kind.ARRAY, Kind.VARIANT:
            return can_cast(_part(given.element), wanted)
        case Kind.STRUCT, Kind.STRUCT:
            return len(given.fields) == len(wanted.fields) and all(
                can_cast(x.type, y.type) for x, y in zip(given.fields, wanted.fields, strict=True)
            )
        case (Kind.ARRAY, Kind.ARRAY) | (Kind.MAP, Kind.MAP):
            return can_cast(_part(given.element), _part(wanted.element)) and can_cast(
                _part(given.key), _part(wanted.key)
            )
        case _:
            return False


def converts(given: Type, wanted: Type) -> bool:
    """Tell whether Spark converts an argument to the type of a parameter without being asked."""
    return (given.kind is Kind.STRING and wanted.kind in _FLAT) or stores(given, wanted)


def stores(given: Type, wanted: Type) -> bool:
    """Tell whether a value may be stored in a column of a type (INSERT, the result of a function).

    >>> from millstream.types import INT, STRING
    >>> stores(DOUBLE, INT), stores(INT, STRING), stores(STRING, INT)
    (True, True, False)
    """
    if given == wanted or not (given.is_known and wanted.is_known) or given.kind is Kind.NULL:
        return True
    if wanted.kind is Kind.STRING:
        return given.kind in _FLAT
    if given.kind is wanted.kind and given.kind in (Kind.ARRAY, Kind.MAP):
        return stores(_part(given.element), _part(wanted.element)) and stores(
            _part(given.key), _part(wanted.key)
        )
    if given.kind is wanted.kind is Kind.STRUCT:
        return len(given.fields) == len(wanted.fields) and all(
            stores(x.type, y.type) for x, y in zip(given.fields, wanted.fields, strict=True)
        )
    return (
        given.kind is wanted.kind
        or (given.is_numeric and wanted.is_numeric)
        or (given.is_time and wanted.is_time)
    )
