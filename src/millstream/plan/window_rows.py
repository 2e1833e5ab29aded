"""Rows of windows as reports, and conditions and arguments that need the bounds of a window.

The bounds of a window are known when it is reported. A condition on nothing else is one of HAVING. If bounds
stand beside columns of tuples, the tuples of each window are reported with its bounds, and NOW aggregates
them: bounds are columns then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, Part, of_column
from millstream.analysis.queries.resolved_query import GroupKey, Output, Select
from millstream.plan.nodes import (
    Filter,
    Node,
    Project,
    Rename,
    TableJoin,
    Windowed,
    WindowRows,
    edge_field,
    filtered,
    windows_seen,
)
from millstream.quantity import MICROSECONDS, Distance, Duration
from millstream.types import BOOLEAN, Type
from millstream.windows.window_properties import has_ends
from millstream.windows.window_spec import NowWindow, RangeWindow, RowWindow

Bounds = frozenset[ColumnRef]


def with_bounds(plan: Node, query: Select, *, always: bool) -> tuple[Node, Select]:
    """Return a plan of FROM and its query, in which only reports have bounds.

    With ``always``, rows of windows are aggregated in any case.
    """
    windows = list(windows_seen(plan))
    if len(windows) != 1 or query.current or query.to_stream is not None or not has_ends(windows[0].window):
        return plan, query
    bounds = frozenset(windows[0].bounds)
    if query.by_window and not query.distinct:
        plan, where = _reported(plan, windows[0], query.where)
        return plan, replace(query, where=where)
    if query.by_window:
        query = _grouped(query, bounds)
    if not query.aggregates and not query.group_by:
        return plan, query
    window = windows[0].window
    if (
        always
        or (isinstance(window, RangeWindow) and window.cases)
        or any(_mixes(expr, bounds) for expr in (*query.where, *(key.expr for key in query.group_by)))
        or any(not bounds.isdisjoint(expr.columns()) for expr in _of_tuples(query))
    ):
        return _again(plan, windows[0], query)
    of_windows = tuple(c for c in query.where if is_of_bounds(c, bounds))
    where = tuple(c for c in query.where if c not in of_windows)
    return plan, replace(query, where=where, having=(*of_windows, *query.having))


def is_of_bounds(expr: Expr, bounds: Bounds) -> bool:
    """Return whether an expression is made of bounds only."""
    used = set(expr.columns())
    return bool(used) and used <= bounds


def _mixes(expr: Expr, bounds: Bounds) -> bool:
    return not bounds.isdisjoint(expr.columns()) and not is_of_bounds(expr, bounds)


def _of_tuples(query: Select) -> Iterator[Expr]:
    """Yield the expressions that are evaluated for each tuple, except WHERE and GROUP BY."""
    for join in query.joins:
        yield from join.conditions
    for call in query.aggregates:
        yield from call.arguments
        if call.filter is not None:
            yield call.filter


def _reported(plan: Node, windowed: Windowed, where: Iterable[Expr]) -> tuple[Node, tuple[Expr, ...]]:
    """Report the rows of a window, and return the conditions that are left; those on tuples stand below."""
    stream = frozenset(windowed.input.schema)
    below = tuple(c for c in where if c.movable and stream.issuperset(c.columns()))
    rows: Node = WindowRows(filtered(windowed, below))
    if isinstance(windowed.window, RangeWindow) and windowed.window.cases:
        rows = _with_extents(rows, windowed, windowed.window)
    return _replaced(plan, lambda node: rows), tuple(c for c in where if c not in below)


def _with_extents(rows: Node, windowed: Windowed, window: RangeWindow) -> Node:
    """Keep the rows in the extents of windows whose range varies, which are parts of the longest."""
    bounds = {bound.name: bound for bound in windowed.bounds}
    name = (window.attribute or "").lower()
    attribute = next(column for column in windowed.input.schema if column.name.lower() == name)
    start = _start(window, bounds["window_end"], windowed.edge.type)
    inside = Expr((attribute, " >= ", *start.parts), BOOLEAN)
    outputs = tuple(
        Output(column.name, start if column == bounds["window_start"] else of_column(column))
        for column in rows.schema
    )
    return Rename(Project(filtered(rows, (inside,)), outputs), windowed.alias)


def _start(window: RangeWindow, end: ColumnRef, type_: Type) -> Expr:
    """Return the beginning of a window by the conditions on its end."""
    parts: list[Part] = ["CAST(CASE"]
    for when, reach in window.cases:
        if isinstance(when, Expr):
            parts += [" WHEN ", *when.substitute(lambda _: end).parts, " THEN "]
        else:
            parts.append(" ELSE ")
        parts += [end, f" - {_written(reach)}"]
    return Expr((*parts, f" END AS {type_})"), type_)


def _written(amount: Duration | Distance) -> str:
    if isinstance(amount, Distance):
        return str(amount.value)
    days, rest = divmod(amount.microseconds, MICROSECONDS["DAY"])
    seconds, fraction = divmod(amount.microseconds, MICROSECONDS["SECOND"])
    if not rest:
        return f"INTERVAL '{days}' DAY"
    return f"INTERVAL '{seconds}{f'.{fraction:06}' if fraction else ''}' SECOND"


def _again(plan: Node, windowed: Windowed, query: Select) -> tuple[Node, Select]:
    """Aggregate the rows of each window, which have its bounds as columns."""
    plan, where = _reported(plan, windowed, query.where)
    window = windowed.window
    counted = isinstance(window, RowWindow)
    timestamp = query.facts.timestamp.type if query.facts is not None else None
    # A table has no timestamp of its own.
    now = NowWindow(None if windowed.streaming else "window_end", window.partition_by)

    def at_once(rows: Node) -> Node:
        edge = edge_field(now, rows.schema, timestamp) if counted else windowed.edge
        return Windowed(rows, windowed.alias, now, edge)

    keys = {key.expr.column for key in query.group_by}
    bounds = [GroupKey(bound.name, of_column(bound)) for bound in windowed.bounds if bound not in keys]
    plan = _replaced(plan, at_once)
    return plan, replace(query, where=where, group_by=(*bounds, *query.group_by))


def _replaced(plan: Node, change: Callable[[Node], Node]) -> Node:
    """Put something in the place of the window, or of its rows, in a plan of FROM."""
    if isinstance(plan, Windowed | WindowRows) or (isinstance(plan, Rename) and _holds_rows(plan)):
        return change(plan)
    if isinstance(plan, Filter | TableJoin):
        return plan.map_inputs(lambda below: _replaced(below, change))
    return plan


def _holds_rows(node: Node) -> bool:
    """Return whether rows of windows stand below conditions and a new name."""
    while isinstance(node, Rename | Project | Filter):
        node = node.input
    return isinstance(node, WindowRows)


def _grouped(query: Select, bounds: Bounds) -> Select:
    """Return a query with GROUP BY in the place of DISTINCT."""
    keys, outputs = [], []
    for number, output in enumerate(query.outputs):
        column = output.expr.column or ColumnRef("", f"__group{number}", output.expr.type)
        if is_of_bounds(output.expr, bounds):
            outputs.append(output)
            continue
        keys.append(GroupKey(column.name, output.expr))
        outputs.append(replace(output, expr=replace(of_column(column), span=output.expr.span)))
    return replace(query, outputs=tuple(outputs), group_by=tuple(keys), distinct=False, by_window=False)
