"""The types of literals, conversions, and parts of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types import coercion
from millstream.analysis.types.coercion import MAX_PRECISION
from millstream.analysis.types.data_types import from_datatype, interval_type
from millstream.analysis.types.function_types.collections import struct_of
from millstream.analysis.types.function_types.temporal import extracted
from millstream.errors import did_you_mean
from millstream.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    NULL,
    STRING,
    UNKNOWN,
    Kind,
    Type,
    array,
    decimal,
)

if TYPE_CHECKING:
    from millstream.analysis.types.expression_types import Typer


def _literal(typer: Typer, node: exp.Literal) -> Type:
    if node.is_string:
        return STRING
    text = node.name.lower()
    if "e" in text:
        return DOUBLE
    whole, point, fraction = text.partition(".")
    negative = isinstance(node.parent, exp.Neg)  # there is one more negative number than positive ones
    if not point and int(whole) < 2**63 + negative:
        return INT if int(whole) < 2**31 + negative else BIGINT
    digits = max(len((whole + fraction).lstrip("0")), len(fraction), 1)
    if digits > MAX_PRECISION:
        raise error_at(node, f"a number has at most {MAX_PRECISION} digits", hint="write it as 1.5e40")
    return decimal(digits, len(fraction))


def _interval(typer: Typer, node: exp.Interval) -> Type:
    length = node.this
    if length is not None and not isinstance(length, exp.Literal):
        type_ = typer.type_of(length)
        if not coercion.converts(type_, DOUBLE):
            raise error_at(length, f"the length of an interval must be a number, but this is {type_}")
    return interval_type(node.args.get("unit"))


def _cast(typer: Typer, node: exp.Cast) -> Type:
    given, wanted = typer.type_of(node.this), from_datatype(node.to)
    if not coercion.can_cast(given, wanted):
        raise error_at(node, f"cannot convert {given} to {wanted}")
    return wanted


def _extract(typer: Typer, node: exp.Extract) -> Type:
    call = typer.call("extract", node, node.expression)
    return extracted(call, node.name, call.types[0])


# ---------------------------------------------------------------- parts


def field_type(whole: Type, name: str, node: exp.Expr) -> Type:
    """Return the type of a field of a struct, an entry of a map, or that field of all structs in an array."""
    match whole.kind:
        case Kind.UNKNOWN | Kind.NULL:
            return whole
        case Kind.STRUCT:
            found = next((f.type for f in whole.fields if f.name.lower() == name.lower()), None)
            if found is None:
                raise error_at(
                    node,
                    f"unknown field '{name}'",
                    hint=did_you_mean(name, [f.name for f in whole.fields])
                    or f"the fields are those of {whole}",
                )
            return found
        case Kind.MAP if whole.key == STRING:
            return whole.element or UNKNOWN
        case Kind.ARRAY if whole.element and whole.element.kind in (Kind.STRUCT, Kind.UNKNOWN):
            return array(field_type(whole.element, name, node))
        case _:
            raise error_at(node, f"{whole} has no field '{name}'")


def path_type(whole: Type, path: Iterable[str], node: exp.Expr) -> Type:
    """Return the type of a field of a field, and so on."""
    return reduce(lambda type_, name: field_type(type_, name, node), path, whole)


def _dot(typer: Typer, node: exp.Dot) -> Type:
    if not isinstance(node.expression, exp.Identifier):
        return UNKNOWN  # a function in a schema, as in s.f(x)
    return field_type(typer.type_of(node.this), node.expression.name, node)


def _bracket(typer: Typer, node: exp.Bracket) -> Type:
    whole = typer.type_of(node.this)
    if len(node.expressions) != 1:
        return UNKNOWN
    index = node.expressions[0]
    at = typer.type_of(index)
    match whole.kind:
        case Kind.UNKNOWN | Kind.NULL:
            return whole
        case Kind.STRUCT if isinstance(index, exp.Literal) and index.is_string:
            return field_type(whole, index.name, node)
        case Kind.ARRAY if at.is_integral or at.kind in (Kind.NULL, Kind.UNKNOWN):
            return whole.element or UNKNOWN
        case Kind.MAP if coercion.converts(at, whole.key or UNKNOWN):
            return whole.element or UNKNOWN
        case _:
            raise error_at(node, f"cannot take an element of {whole} by {at}")


def _tuple(typer: Typer, node: exp.Tuple) -> Type:
    return struct_of(typer.call("struct", node, *node.expressions))


def _inside(typer: Typer, node: exp.Expr) -> Type:
    return typer.type_of(node.this)


def _named_argument(typer: Typer, node: exp.Kwarg) -> Type:
    return typer.type_of(node.expression)


def _is_string(typer: Typer, node: exp.Expr) -> Type:
    return STRING


RULES: dict[type[exp.Expr], Callable[[Typer, Any], Type]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda typer, node: BOOLEAN,
    exp.Null: lambda typer, node: NULL,
    exp.HexString: lambda typer, node: BINARY,
    **dict.fromkeys((exp.RawString, exp.National, exp.Concat, exp.Collate), _is_string),
    exp.Interval: _interval,
    exp.Cast: _cast,
    exp.Extract: _extract,
    **dict.fromkeys((exp.Paren, exp.Alias, exp.Escape), _inside),
    **dict.fromkeys((exp.IgnoreNulls, exp.RespectNulls, exp.Ordered), _inside),
    exp.Kwarg: _named_argument,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Tuple: _tuple,
}
