"""Expressions that the engine makes by itself, as texts with columns in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, Part, of_column
from millstream.types import BIGINT, BOOLEAN, INT, STRING, Kind, Type

_NESTED = (Kind.ARRAY, Kind.MAP, Kind.STRUCT, Kind.VARIANT)


_OUTERMOST = "CAST('-9223372036854775808' AS BIGINT), CAST('9223372036854775807' AS BIGINT)"


def sort_key(value: Expr) -> Expr:
    """Return what results are sorted by: a map has no order, but its text has."""
    if not _has_map(value.type):
        return value
    return Expr(("to_json(struct(", *value.parts, "))"), STRING)


def _has_map(type_: Type) -> bool:
    parts = [type_.element, *(field.type for field in type_.fields)]
    return type_.kind is Kind.MAP or any(part is not None and _has_map(part) for part in parts)


def is_atomic(type_: Type) -> bool:
    """Tell whether values of a type have no parts."""
    return type_.kind not in _NESTED


def is_double(type_: Type) -> bool:
    """Tell whether a type is DOUBLE or FLOAT."""
    return type_.kind in (Kind.DOUBLE, Kind.FLOAT)


def column(name: str, type_: Type) -> Expr:
    """Return a column that has no relation, whatever characters its name has."""
    return of_column(ColumnRef("", name, type_))


def constant(text: str, type_: Type) -> Expr:
    """Return a constant as it is written."""
    return Expr((text,), type_)


def nothing(type_: Type) -> Expr:
    """Return a NULL of a type."""
    return Expr((f"CAST(NULL AS {type_text(type_)})",), type_)


def cast(expr: Expr, type_: Type) -> Expr:
    """Convert a value to a type."""
    if expr.type == type_:
        return expr
    return Expr(("CAST(", *expr.parts, f" AS {type_text(type_)})"), type_)


def is_null(expr: Expr) -> Expr:
    """Ask whether there is no value."""
    return Expr((*_operand(expr), " IS NULL"), BOOLEAN)


def is_not_null(expr: Expr) -> Expr:
    """Ask whether there is a value."""
    return Expr((*_operand(expr), " IS NOT NULL"), BOOLEAN)


def when(condition: Expr, value: Expr) -> Expr:
    """Return a value where a condition holds, and NULL elsewhere."""
    return Expr(("CASE WHEN ", *condition.parts, " THEN ", *value.parts, " END"), value.type)


def all_hold(conditions: Sequence[Expr]) -> Expr:
    """Combine conditions by AND."""
    parts: list[Part] = []
    for condition in conditions:
        parts += [*([" AND "] if parts else []), *_operand(condition)]
    return Expr(tuple(parts), BOOLEAN)


def holds(condition: Expr) -> Expr:
    """Return FALSE where a condition is NULL."""
    return Expr(("coalesce(", *condition.parts, ", FALSE)"), BOOLEAN)


def has_place(value: Expr) -> Expr:
    """Ask whether a value has a place in an order; NaN and infinities have none."""
    present = is_not_null(value)
    if value.type.kind is Kind.BIGINT:
        # The outermost numbers stand for infinities.
        text = _operand(value)
        return Expr((*present.parts, " AND NOT ", *text, f" IN ({_OUTERMOST})"), BOOLEAN)
    if not is_double(value.type):
        return present
    text = _operand(value)
    numbers = (
        " AND NOT ",
        *text,
        " = CAST('NaN' AS DOUBLE) AND abs(",
        *text,
        ") <> CAST('Infinity' AS DOUBLE)",
    )
    return Expr((*present.parts, *numbers), BOOLEAN)


def hashes(keys: Iterable[Expr]) -> tuple[Expr, Expr]:
    """Return 128 bits of hash of some keys.

    Spark's hash passes over NULLs, so that (NULL, 1) would be (1, NULL).
    """
    parts: list[Part] = []
    for key in keys:
        parts += [*([", "] if parts else []), "(", *is_null(key).parts, "), ", *_hashed(key)]
    return Expr(("xxhash64(", *parts, ")"), BIGINT), Expr(("xxhash64(1, ", *parts, ")"), BIGINT)


def struct_of(values: Sequence[tuple[str, Expr]], type_: Type) -> Expr:
    """Return a struct of named values."""
    parts: list[Part] = []
    for name, value in values:
        parts += [*([", "] if parts else []), f"{text_literal(name)}, ", *value.parts]
    return Expr(("named_struct(", *parts, ")"), type_)


def text_literal(text: str) -> str:
    """Write a text as a literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def type_text(type_: Type) -> str:
    """Write a type, with the names of fields in quotes."""
    match type_.kind:
        case Kind.ARRAY if type_.element is not None:
            return f"array<{type_text(type_.element)}>"
        case Kind.MAP if type_.key is not None and type_.element is not None:
            return f"map<{type_text(type_.key)}, {type_text(type_.element)}>"
        case Kind.STRUCT:
            fields = (f"`{f.name.replace('`', '``')}`: {type_text(f.type)}" for f in type_.fields)
            return f"struct<{', '.join(fields)}>"
        case _:
            return str(type_)


def _hashed(key: Expr) -> tuple[Part, ...]:
    if is_double(key.type):
        # There are two zeros, which are one group.
        text = _operand(key)
        return ("CASE WHEN ", *text, " = 0 THEN CAST(0 AS DOUBLE) ELSE ", *text, " END")
    return key.parts if is_atomic(key.type) else ("to_json(struct(", *key.parts, "))")


def _operand(expr: Expr) -> tuple[Part, ...]:
    """Return the parts of an expression that stands beside an operator."""
    if expr.column is not None:
        return expr.parts
    return ("(", *expr.parts, ")")


ONE = constant("1", INT)
TRUE = constant("TRUE", BOOLEAN)
