"""Substitution of columns by their definitions, to move an expression below an operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.plan.nodes import Project, Rename

Key = tuple[str, str]

_LONGEST = 500
"""Limit on the characters of a substituted expression; renamed columns are always substituted."""


def outputs_of(project: Project) -> dict[Key, Expr]:
    """Return the expression of each column of a projection."""
    return {("", output.name.lower()): output.expr for output in project.outputs}


def columns_of(rename: Rename) -> dict[Key, ColumnRef]:
    """Return the column below each column of a renamed input."""
    return {
        (own.relation, own.name.lower()): below
        for own, below in zip(rename.schema, rename.input.schema, strict=True)
    }


def substituted(expr: Expr, values: Mapping[Key, Expr | ColumnRef]) -> Expr | None:
    """Return the expression with its columns replaced; None if not movable, or if it grows too long."""
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
    """Return whether substitution makes an expression too long: a chain of streams may double its length."""
    columns = list(expr.columns())
    substitutes = [values[column.relation, column.name.lower()] for column in columns]
    grown = sum(len(value.sql) for value in substitutes if isinstance(value, Expr) and value.column is None)
    return grown > 0 and grown + len(expr.sql) > _LONGEST


def pushed_below(
    conditions: Iterable[Expr], values: Mapping[Key, Expr | ColumnRef]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Divide conditions into those that can be tested below, with columns replaced, and those that cannot."""
    below, above = [], []
    for condition in conditions:
        moved = substituted(condition, values)
        if moved is None:
            above.append(condition)
        else:
            below.append(moved)
    return tuple(below), tuple(above)
