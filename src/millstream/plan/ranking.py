"""Plans of SELECT with ranking functions, or with ORDER BY and LIMIT of each report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.analysis.queries.call_nodes import OrderKey, RankCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import Output, Select, TopRows
from millstream.plan.nodes import (
    Distinct,
    Filter,
    Node,
    Project,
    TableJoin,
    WindowAggregate,
    WindowRank,
    WindowRows,
    filtered,
)
from millstream.plan.relation_variance import RSTREAM, as_stream, varies

Renaming = Callable[[Expr], Expr]


def ranked(plan: Node, query: Select) -> Node:
    """Rank the rows of each report, or of the content of windows whenever it is evaluated."""
    if query.distinct:
        plan = Distinct(Project(plan, query.outputs))
        columns = {o.expr: of_column(c) for o, c in zip(query.outputs, plan.schema, strict=True)}
        outputs = tuple(Output(c.name, of_column(c)) for c in plan.schema)
        query = renamed(replace(query, outputs=outputs), lambda expr: columns.get(expr, expr))
    report: tuple[ColumnRef, ...] = ()
    if varies(plan) or query.to_stream is not None:
        plan, rename = _at_instants(plan, query)
        query = renamed(query, rename)
    else:
        report = _report(plan)
    top = query.top or TopRows(())
    if query.ranks and (query.qualify or query.top is None):
        plan = filtered(WindowRank(plan, report, query.ranks), query.qualify)
    if query.top is not None:
        calls = () if query.qualify else query.ranks
        plan = WindowRank(plan, report, calls, top.order_by, top.limit, top.offset)
    return Project(plan, query.outputs)


def _report(plan: Node) -> tuple[ColumnRef, ...]:
    """Return the columns that tell reports of one instant apart."""
    while isinstance(plan, Filter | TableJoin):
        plan = plan.input if isinstance(plan, Filter) else plan.left if plan.left.streaming else plan.right
    windowed = plan.windowed if isinstance(plan, WindowAggregate | WindowRows) else None
    if windowed is None:
        return ()
    windowed = windowed.reported or windowed
    bounds = [bound for bound in windowed.bounds if bound.name in ("wid", "complete")]
    return (*bounds, *windowed.partition)


def _at_instants(plan: Node, query: Select) -> tuple[Node, Renaming]:
    """Return the content of windows at every evaluation, with the columns that are used."""
    exprs = [output.expr for output in query.outputs] + list(query.qualify)
    exprs += [expr for call in query.ranks for expr in call.expressions()]
    exprs += [key.expr for key in query.top.order_by] if query.top is not None else []
    results = {call.result for call in query.ranks}
    used = dict.fromkeys(c for expr in exprs for c in expr.columns() if c not in results)
    available = {(c.relation.lower(), c.name.lower()): c for c in plan.schema}
    names = {
        column: ColumnRef("", f"__c{i}", available[column.relation.lower(), column.name.lower()].type)
        for i, column in enumerate(used)
    }
    outputs = tuple(Output(new.name, of_column(column)) for column, new in names.items())
    content = as_stream(Project(plan, outputs or _any_column(plan)), RSTREAM)
    return content, lambda expr: expr.substitute(lambda column: names.get(column, column))


def _any_column(plan: Node) -> tuple[Output, ...]:
    return (Output("__c0", of_column(plan.schema[0])),)


def renamed(query: Select, rename: Renaming) -> Select:
    """Return a query with other columns in SELECT, QUALIFY, ORDER BY and ranks."""
    top = query.top
    return replace(
        query,
        outputs=tuple(replace(output, expr=rename(output.expr)) for output in query.outputs),
        qualify=tuple(map(rename, query.qualify)),
        ranks=tuple(_renamed_call(call, rename) for call in query.ranks),
        top=None if top is None else replace(top, order_by=_renamed_keys(top.order_by, rename)),
    )


def _renamed_call(call: RankCall, rename: Renaming) -> RankCall:
    return replace(
        call,
        partition_by=tuple(map(rename, call.partition_by)),
        order_by=_renamed_keys(call.order_by, rename),
        argument=None if call.argument is None else rename(call.argument),
        default=None if call.default is None else rename(call.default),
    )


def _renamed_keys(keys: tuple[OrderKey, ...], rename: Renaming) -> tuple[OrderKey, ...]:
    return tuple(replace(key, expr=rename(key.expr)) for key in keys)
