"""Moving an expression below an operator: its columns become what they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.plan.nodes import Project, Rename

Key = tuple[str, str]

_LONGEST = 500
"""Characters of an expression that other expressions may be put into; renamed columns always may."""


def outputs_of(project: Project) -> dict[Key, Expr]:
    """What each column of a projection is computed from."""
    return {("", output.name.lower()): output.expr for output in project.outputs}


def columns_of(rename: Rename) -> dict[Key, ColumnRef]:
    """What each column of a renamed input is called below."""
    return {
        (own.relation, own.name.lower()): below
        for own, below in zip(rename.schema, rename.input.schema, strict=True)
    }


def substituted(expr: Expr, values: Mapping[Key, Expr | ColumnRef]) -> Expr | None:
    """The expression in terms of the values, or None where it may not be moved or would grow too long."""
    if not expr.movable:
        return None
    for column in expr.columns():
        value = values.get((column.relation, column.name.lower()))
        if value is None or (isinstance(value, Expr) and not value.movable):
            return None
    if _grows_too_long(expr, values):
        return None
    return expr.substitute(lambda column: values[column.relation, column.name.lower()])


def _grows_too_long(expr: Expr, values: Mapping[Key, Expr | ColumnRef]) -> bool:
    """Whether the values would make an expression long: along a chain of streams lengths may even double."""
    columns = list(expr.columns())
    found = [values[column.relation, column.name.lower()] for column in columns]
    grown = sum(len(value.sql) for value in found if isinstance(value, Expr) and value.column is None)
    return grown > 0 and grown + len(expr.sql) > _LONGEST


def pushed_below(
    conditions: Iterable[Expr], values: Mapping[Key, Expr | ColumnRef]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The conditions that can be tested further down (in terms of the values), and those that cannot."""
    below, above = [], []
    for condition in conditions:
        moved = substituted(condition, values)
        if moved is None:
            above.append(condition)
        else:
            below.append(moved)
    return tuple(below), tuple(above)
