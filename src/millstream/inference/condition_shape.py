"""The shape of conditions: conditions on a tuple alone, and bounds of counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from millstream.ir import typed_nodes
from millstream.ir.pattern import End, Pattern
from millstream.ir.typed_nodes import Call, Cast, Column, Constant, Expr, GroupColumn
from millstream.types import Kind


def own_tuple(condition: Expr, pattern: Pattern, element: int, *, alone: bool = False) -> Expr | None:
    """Return a condition on the tuple and its predecessors alone in canonical form; None for other ones.

    In the canonical form the scan number of a column is the distance back to its tuple, so equal conditions
    of different elements are equal, and can be evaluated once for all attempts. A tuple ``alone`` is also the
    first of its star.
    """
    for part in typed_nodes.walk(condition):
        if isinstance(part, GroupColumn | typed_nodes.Scalar | typed_nodes.Exists | typed_nodes.InQuery):
            return None
        if isinstance(part, Column):
            place = pattern.places[part.scan]
            is_first = place.end is End.FIRST and pattern.elements[element].star and not alone
            if place.element != element or is_first:
                return None
    found: Expr = with_columns(condition, lambda c: replace(c, scan=pattern.places[c.scan].back))
    return found


def with_columns(part: Any, change: Callable[[Column], Expr]) -> Any:
    """Return an expression, or a tuple of them, with its columns replaced."""
    if isinstance(part, Column):
        return change(part)
    if isinstance(part, tuple):
        return tuple(with_columns(one, change) for one in part)
    if is_dataclass(part) and not isinstance(part, type) and isinstance(part, typed_nodes.PARTS):
        return replace(part, **{f.name: with_columns(getattr(part, f.name), change) for f in fields(part)})
    return part


def measures_in(condition: Expr) -> set[int]:
    return {part.index for part in typed_nodes.walk(condition) if isinstance(part, GroupColumn)}


def at_least(condition: Expr, pattern: Pattern) -> int | None:
    """Return the count of which a condition is a lower bound, if it is nothing else."""
    return _count(condition, pattern, (">", ">="), ("<", "<="))


def at_most(condition: Expr, pattern: Pattern) -> tuple[int, Expr] | None:
    """Return the count of which a condition gives an upper bound, and that bound as a condition."""
    match condition:
        case Call("=", (a, b)):
            found = [at_most(Call("<=", pair, condition.type), pattern) for pair in ((a, b), (b, a))]
            return found[0] or found[1]
    count = _count(condition, pattern, ("<", "<="), (">", ">="))
    return None if count is None else (count, condition)


def _count(condition: Expr, pattern: Pattern, before: tuple[str, ...], after: tuple[str, ...]) -> int | None:
    match condition:
        case Call(name, (a, Constant(value))) if name in before and value is not None:
            return _counted(a, pattern)
        case Call(name, (Constant(value), a)) if name in after and value is not None:
            return _counted(a, pattern)
    return None


def _counted(expr: Expr, pattern: Pattern) -> int | None:
    match expr:
        case Cast(argument, wanted) if wanted.kind in (Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL):
            return _counted(argument, pattern)
        case GroupColumn(index):
            measure = pattern.measures[index]
            aggregation = measure.aggregation
            is_count = aggregation.name == "count" and aggregation.user is None
            return index if is_count and measure.rows is None and not aggregation.distinct else None
    return None
