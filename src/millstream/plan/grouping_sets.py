"""GROUPING SETS, ROLLUP and CUBE: a copy of each tuple for each set, grouped by the set and its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.analysis.queries.grouping.group_clause import SET
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import GroupKey, Select
from millstream.catalog.entries import SlackPromise
from millstream.plan.nodes import (
    Filter,
    GroupingSets,
    Node,
    StreamScan,
    TableJoin,
    Windowed,
    WindowJoin,
    windows_seen,
)
from millstream.plan.ranking import renamed
from millstream.plan.time_attributes import attribute_beside_time
from millstream.windows.window_properties import is_contextual


def by_sets(query: Select) -> Select:
    """Group by the number of the set, and by the keys that are in it; the others are NULL."""
    sets = query.grouping_sets
    if not sets:
        return query
    keys, results = [GroupKey(SET.name, of_column(SET))], {}
    for number, key in enumerate(query.group_by):
        holding = [str(i) for i, one in enumerate(sets) if number in one]
        column = key.expr.column
        if len(holding) == len(sets):
            keys.append(key)
            continue
        parts = ("CASE WHEN ", SET, f" IN ({', '.join(holding)}) THEN ", *key.expr.parts, " END")
        made = GroupKey(f"__group{number}" if column else key.name, replace(key.expr, parts=parts, tree=None))
        keys.append(made)
        if column is not None:
            results[column] = ColumnRef("", made.name, column.type)
    query = renamed(query, _named(results))
    having = tuple(map(_named(results), query.having))
    return replace(query, group_by=tuple(keys), having=having)


def _named(results: dict[ColumnRef, ColumnRef]) -> Callable[[Expr], Expr]:
    return lambda expr: expr.substitute(lambda column: results.get(column, column)) if results else expr


def needs_rows(plan: Node) -> bool:
    """Return whether copies of tuples would change windows or promises: rows of windows are copied."""
    windows = list(windows_seen(plan))
    if len(windows) != 1:
        return False
    streams = [node.stream for node in windows[0].walk() if isinstance(node, StreamScan)]
    generous = any(isinstance(p, SlackPromise) and p.generous for stream in streams for p in stream.promises)
    return generous or is_contextual(windows[0].window) or attribute_beside_time(windows[0]) is not None


def copied(plan: Node, count: int) -> Node:
    """Copy the tuples of a plan of FROM below its first window."""
    match plan:
        case Windowed():
            return replace(plan, input=GroupingSets(plan.input, count))
        case Filter():
            return replace(plan, input=copied(plan.input, count))
        case TableJoin() if plan.right.streaming and not plan.left.streaming:
            return replace(plan, right=copied(plan.right, count))
        case TableJoin() | WindowJoin():
            return replace(plan, left=copied(plan.left, count))
        case _:
            return GroupingSets(plan, count)
