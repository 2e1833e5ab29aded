"""Types as they are written (``DECIMAL(10, 2)``, ``ARRAY<INT>``) to types as they are known."""

from __future__ import annotations

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types.coercion import MAX_PRECISION
from millstream.errors import AnalysisError
from millstream.syntax import nodes
from millstream.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_INTERVAL,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    UNKNOWN,
    VARIANT,
    YEAR_MONTH_INTERVAL,
    Field,
    Type,
    array,
    decimal,
    map_of,
    struct,
)

_D = exp.DType

_SIMPLE: dict[exp.DType, Type] = {
    _D.BOOLEAN: BOOLEAN,
    _D.TINYINT: TINYINT,
    _D.SMALLINT: SMALLINT,
    _D.INT: INT,
    _D.BIGINT: BIGINT,
    _D.FLOAT: FLOAT,
    _D.DOUBLE: DOUBLE,
    _D.TEXT: STRING,
    _D.CHAR: STRING,
    _D.VARCHAR: STRING,
    _D.BINARY: BINARY,
    _D.DATE: DATE,
    # sqlglot reads Spark's TIMESTAMP as one with time zone, which it is.
    _D.TIMESTAMP: TIMESTAMP,
    _D.TIMESTAMPTZ: TIMESTAMP,
    _D.TIMESTAMPLTZ: TIMESTAMP,
    _D.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    _D.VARIANT: VARIANT,
    _D.NULL: NULL,
    # Spark has these, but nothing here knows their rules.
    _D.TIME: UNKNOWN,
    _D.INTERVAL: UNKNOWN,
    _D.GEOMETRY: UNKNOWN,
    _D.GEOGRAPHY: UNKNOWN,
}

_INSTEAD = {_D.DATETIME: "TIMESTAMP", _D.JSON: "STRING or VARIANT", _D.UINT: "BIGINT", _D.UUID: "STRING"}


def from_datatype(node: exp.DataType) -> Type:
    """Return the type that is written, or an AnalysisError if Spark has no such type."""
    if isinstance(node, nodes.UnknownType):
        word, hint = node.args["word"], node.args.get("hint")
        raise error_at(node, f"'{word}' is not a type", hint=hint)
    kind = node.this
    if isinstance(kind, exp.Interval):
        return interval_type(kind.args.get("unit"))
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    parts = node.expressions
    if kind is _D.DECIMAL:
        return _decimal(node)
    if kind is _D.ARRAY and len(parts) == 1:
        return array(from_datatype(parts[0]))
    if kind is _D.MAP and len(parts) == 2:
        return map_of(from_datatype(parts[0]), from_datatype(parts[1]))
    if kind is _D.STRUCT:
        return struct(*(Field(part.name, from_datatype(part.args["kind"])) for part in parts))
    raise _no_such_type(node)


def interval_type(unit: exp.Expr | None) -> Type:
    """Return the type of an interval by its unit or span of units (``DAY TO SECOND``).

    >>> print(interval_type(exp.var("MONTHS")), interval_type(exp.var("day")))
    interval year to month interval day
    """
    if unit is None:
        return UNKNOWN
    names = [part.name.lower().removesuffix("s") for part in unit.find_all(exp.Var)]
    if any(name in ("year", "quarter", "month") for name in names):
        return YEAR_MONTH_INTERVAL
    return DAY_INTERVAL if all(name in ("day", "week") for name in names) else DAY_TIME_INTERVAL


def _decimal(node: exp.DataType) -> Type:
    numbers = [int(part.name) for part in node.expressions if part.name.isdigit()]
    precision, scale = (*numbers, *(10, 0)[len(numbers) :])[:2]
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        raise error_at(
            node,
            f"there is no DECIMAL({precision}, {scale})",
            hint=f"a decimal has 1 to {MAX_PRECISION} digits, those after the point included",
        )
    return decimal(precision, scale)


def _no_such_type(node: exp.DataType) -> AnalysisError:
    name = node.this.value if isinstance(node.this, exp.DType) else node.name
    instead = _INSTEAD.get(node.this)
    return error_at(node, f"there is no type {name}", hint=f"use {instead}" if instead else None)
