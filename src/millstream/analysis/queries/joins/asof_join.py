"""ASOF JOIN: the latest tuple of each key at or before a tuple, as a window of one row of each key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.from_clause import facts_of, with_window
from millstream.analysis.queries.joins.scalar_subqueries import conjuncts
from millstream.analysis.queries.relation_kind import has_content
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import FromItem
from millstream.analysis.queries.scope import Scope
from millstream.errors import AnalysisError
from millstream.quantity import Rows
from millstream.windows.window_spec import RowWindow

ASOF = "ASOF"
_FORM = "a ASOF JOIN b ON a.k = b.k AND a.t >= b.t"
_TIMED = (exp.GTE, exp.LTE, exp.GT, exp.LT)


def refuse_on_tables(node: exp.Expr) -> None:
    """Refuse ASOF JOIN in a query over tables, which Spark does not have."""
    for join in node.find_all(exp.Join):
        if join.method == ASOF:
            raise error_at(
                join.this,
                "ASOF JOIN is for streams",
                hint="on tables rank the rows: row_number() OVER (PARTITION BY a.id ORDER BY b.t DESC)",
            )


def matched_conditions(join: exp.Join) -> Iterator[exp.Expr]:
    """Yield the conditions of ASOF JOIN, in MATCH_CONDITION and in ON."""
    for clause in (join.args.get("match_condition"), join.args.get("on")):
        if clause is not None:
            yield from conjuncts(clause)


def latest_of_keys(
    join: exp.Join, item: FromItem, left: FromItem | None, equal: Iterable[Expr], scope: Scope
) -> FromItem:
    """Return the right side of an ASOF JOIN with the window of the latest tuple of each key.

    ``equal`` are its equalities; the order of the timestamps is checked, and follows from the window.
    """
    if left is None:
        raise error_at(
            join.this, "ASOF JOIN beside a table function", hint="put the join into FROM (SELECT ...)"
        )
    _check_sides(join, item, left)
    _check_times(join, item, left, scope)
    keys = tuple(dict.fromkeys(_key(join, item, one).name for one in equal))
    return with_window(item, RowWindow(partition_by=keys, range=Rows(1), slide=Rows(1)))


def is_of_times(condition: Expr) -> bool:
    """Tell whether a condition compares timestamps, and no keys."""
    return condition.tree is not None and isinstance(condition.tree.unnest(), _TIMED)


def times_of(join: exp.Join) -> list[exp.Expr]:
    """Return the comparisons of timestamps among the conditions of an ASOF JOIN."""
    return [one.unnest() for one in matched_conditions(join) if isinstance(one.unnest(), _TIMED)]


def _check_sides(join: exp.Join, item: FromItem, left: FromItem) -> None:
    for side in (left, item):
        facts = facts_of(side)
        if facts is None or facts.timestamp.column is None or has_content(side):
            raise error_at(
                join.this,
                f"ASOF JOIN takes streams with a timestamp and no window, not '{side.alias}'",
                hint="join a table or a view with JOIN, and a window as [PARTITION BY k ROWS 1]",
            )


def _check_times(join: exp.Join, item: FromItem, left: FromItem, scope: Scope) -> None:
    found = times_of(join)
    wanted = f"{left.alias}.{_timestamp(left)} >= {item.alias}.{_timestamp(item)}"
    if len(found) != 1:
        raise error_at(join.this, "ASOF JOIN compares the timestamps once", hint=f"add {wanted}; {_FORM}")
    compared = found[0]
    one, other = compared.this, compared.expression
    larger, smaller = (one, other) if isinstance(compared, exp.GTE | exp.GT) else (other, one)
    ordered = [(larger, left), (smaller, item)]
    if isinstance(found[0], exp.GT | exp.LT) or not all(_is_timestamp(n, side, scope) for n, side in ordered):
        raise error_at(
            found[0], "ASOF JOIN takes the latest tuple at or before another one", hint=f"write {wanted}"
        )


def _key(join: exp.Join, item: FromItem, condition: Expr) -> ColumnRef:
    match condition.parts:
        case (ColumnRef() as one, str() as text, ColumnRef() as other) if text.strip() == "=":
            sides = [column for column in (one, other) if column.relation.lower() == item.alias.lower()]
            if len(sides) == 1:
                return sides[0]
    raise AnalysisError(
        "ASOF JOIN takes equalities of columns beside the timestamps",
        span=condition.span,
        hint="put other conditions into WHERE, or into a query in FROM (SELECT ...)",
    )


def _is_timestamp(node: exp.Expr, item: FromItem, scope: Scope) -> bool:
    found = scope.resolve(node) if isinstance(node, exp.Column) else None
    column = None if found is None or found.fields else found.column
    return column is not None and (column.relation.lower(), column.name.lower()) == (
        item.alias.lower(),
        _timestamp(item).lower(),
    )


def _timestamp(item: FromItem) -> str:
    facts = facts_of(item)
    assert facts is not None and facts.timestamp.column is not None  # noqa: PT018 (both were checked)
    return facts.timestamp.column
