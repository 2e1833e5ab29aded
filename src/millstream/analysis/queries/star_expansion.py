"""``*`` in SELECT: all columns of the relations in FROM, or of one of them."""

from __future__ import annotations

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.resolved_expression import ColumnRef, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.errors import did_you_mean


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
                outputs.append(Output(column.name, of_column(ref)))
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
