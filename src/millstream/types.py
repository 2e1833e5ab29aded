"""The types of ESL, which are Spark's, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """Kinds of types; the value is Spark's name."""

    BOOLEAN = "boolean"
    TINYINT = "tinyint"
    SMALLINT = "smallint"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    DAY_TIME_INTERVAL = "interval day to second"
    YEAR_MONTH_INTERVAL = "interval year to month"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"
    VARIANT = "variant"
    NULL = "void"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Type:
    """A type of ESL.

    >>> str(decimal(10, 2))
    'decimal(10,2)'
    >>> str(Type(Kind.ARRAY, element=INT))
    'array<int>'
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    key: Type | None = None
    element: Type | None = None
    fields: tuple[Field, ...] = ()
    whole_days: bool = False
    """For a day-time interval: it counts whole days, so that a date plus it is a date."""

    def __str__(self) -> str:
        match self.kind:
            case Kind.DAY_TIME_INTERVAL if self.whole_days:
                return "interval day"
            case Kind.DECIMAL:
                return f"decimal({self.precision},{self.scale})"
            case Kind.ARRAY:
                return f"array<{self.element}>"
            case Kind.MAP:
                return f"map<{self.key},{self.element}>"
            case Kind.STRUCT:
                return f"struct<{','.join(f'{f.name}:{f.type}' for f in self.fields)}>"
            case _:
                return str(self.kind.value)

    @property
    def is_known(self) -> bool:
        """Return False for a type that only Spark can determine, when the query runs."""
        return self.kind is not Kind.UNKNOWN

    @property
    def is_integral(self) -> bool:
        return self.kind in INTEGRAL_KINDS

    @property
    def is_numeric(self) -> bool:
        return self.kind in NUMERIC_KINDS

    @property
    def is_time(self) -> bool:
        """Return whether intervals measure distances of this type."""
        return self.kind in TIME_KINDS

    @property
    def is_interval(self) -> bool:
        return self.kind in (Kind.DAY_TIME_INTERVAL, Kind.YEAR_MONTH_INTERVAL)

    @property
    def is_ordered(self) -> bool:
        """Return whether a stream may be ordered by this type, and a window defined on it."""
        return self.is_numeric or self.is_time or not self.is_known


@dataclass(frozen=True)
class Field:
    """A named column."""

    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


INTEGRAL_KINDS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
"""Integral kinds from the narrowest to the widest."""
NUMERIC_KINDS = frozenset({*INTEGRAL_KINDS, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE})
TIME_KINDS = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ})

BOOLEAN = Type(Kind.BOOLEAN)
TINYINT = Type(Kind.TINYINT)
SMALLINT = Type(Kind.SMALLINT)
INT = Type(Kind.INT)
BIGINT = Type(Kind.BIGINT)
FLOAT = Type(Kind.FLOAT)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
BINARY = Type(Kind.BINARY)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIMESTAMP_NTZ = Type(Kind.TIMESTAMP_NTZ)
DAY_TIME_INTERVAL = Type(Kind.DAY_TIME_INTERVAL)
DAY_INTERVAL = Type(Kind.DAY_TIME_INTERVAL, whole_days=True)
YEAR_MONTH_INTERVAL = Type(Kind.YEAR_MONTH_INTERVAL)
VARIANT = Type(Kind.VARIANT)
NULL = Type(Kind.NULL)
UNKNOWN = Type(Kind.UNKNOWN)


def decimal(precision: int = 10, scale: int = 0) -> Type:
    """Return Spark's DECIMAL; without arguments DECIMAL(10, 0), as in Spark."""
    return Type(Kind.DECIMAL, precision=precision, scale=scale)


def bound_type(attribute: Type) -> Type:
    """Return the type of window bounds and timestamps on an attribute: the widest of its kind.

    A window may begin before, or end behind, everything that a narrow type can hold.

    >>> print(bound_type(TINYINT), bound_type(decimal(4, 2)), bound_type(DATE))
    bigint decimal(18,2) date
    """
    if attribute.is_integral:
        return BIGINT
    if attribute.kind is Kind.DECIMAL and attribute.precision <= 18:
        return decimal(18, attribute.scale)
    return attribute


def array(element: Type) -> Type:
    return Type(Kind.ARRAY, element=element)


def map_of(key: Type, element: Type) -> Type:
    return Type(Kind.MAP, key=key, element=element)


def struct(*fields: Field) -> Type:
    return Type(Kind.STRUCT, fields=fields)
