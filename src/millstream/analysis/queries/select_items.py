"""Items of SELECT with a meaning of their own: ``*``, and ``instant`` of ISTREAM and its kin."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.resolved_expression import ColumnRef, of_column
from millstream.analysis.queries.resolved_query import InstantColumn, Output
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.errors import did_you_mean
from millstream.types import TIMESTAMP, bound_type

_INSTANT = "instant"


def star_of(item: exp.Expr) -> exp.Star | None:
    """Return the star of ``*`` or ``s.*``."""
    if isinstance(item, exp.Star):
        return item
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return item.this
    return None


def expanded(item: exp.Expr, star: exp.Star, scope: Scope) -> list[Output]:
    """Return the columns that a star stands for, without those named by EXCEPT."""
    table = item.table if isinstance(item, exp.Column) else ""
    relations = scope.relations
    if table:
        relation = scope.relation(table)
        if relation is None:
            raise error_at(
                item,
                f"unknown stream or table '{table}' in this query",
                hint=did_you_mean(table, [r.alias for r in relations]),
            )
        relations = [relation]
    left_out = _left_out(star, relations)
    outputs = []
    for relation in relations:
        if relation.fields is None:
            raise error_at(
                item,
                f"the columns of '{relation.alias}' are not known before Spark reads it",
                hint="name the columns, or declare them with CREATE TABLE",
            )
        for column in relation.fields:
            home = scope.merged.get(column.name.lower(), relation.alias)
            if column.name.lower() not in left_out and (table or home.lower() == relation.alias.lower()):
                ref = ColumnRef(relation.alias, column.name, column.type)
                filled = None if table else scope.filled.get(column.name.lower())
                outputs.append(Output(column.name, filled or of_column(ref)))
    return outputs


def _left_out(star: exp.Star, relations: list[ScopeRelation]) -> set[str]:
    known = {field.name.lower() for relation in relations for field in relation.fields or ()}
    names = set()
    for column in star.args.get("except_") or ():
        if column.name.lower() not in known:
            raise error_at(
                column, f"unknown column '{column.name}' in EXCEPT", hint=did_you_mean(column.name, known)
            )
        names.add(column.name.lower())
    return names


def instant_column(
    item: exp.Expr, node: exp.Expr, scope: Scope, facts: StreamFacts | None
) -> InstantColumn | None:
    """Return the column if an item of SELECT is ``instant`` and no relation has a column of that name."""
    if facts is None or not node.args.get("operation_modifiers"):
        return None
    if any(relation.find(_INSTANT) for relation in scope.relations):
        return None
    value = item.this if isinstance(item, exp.Alias) else item
    named = [c for c in value.find_all(exp.Column) if [part.name.lower() for part in c.parts] == [_INSTANT]]
    if not named:
        return None
    if named[0] is not value:
        raise error_at(
            named[0],
            "'instant' is a column of its own in SELECT, and no part of an expression",
            hint="compute with it in a query above: FROM (SELECT CHANGES instant, ...) AS c",
        )
    return InstantColumn(0, item.alias_or_name, bound_type(facts.timestamp.type or TIMESTAMP))


def placed(
    column: InstantColumn, position: int, before: InstantColumn | None, item: exp.Expr
) -> InstantColumn:
    """Put the column behind so many others; ``before`` is one that has been selected already."""
    if before is not None:
        raise error_at(item, "'instant' is selected twice", hint="once is enough")
    return replace(column, position=position)
