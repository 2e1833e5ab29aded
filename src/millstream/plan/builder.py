"""Builder of logical plans from resolved queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millstream.analysis.queries.call_nodes import is_running
from millstream.analysis.queries.from_clause import facts_of, with_window
from millstream.analysis.queries.relation_kind import is_on_windows, reads_relation, takes_relations
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import (
    FromItem,
    InstantColumn,
    JoinClause,
    Output,
    Query,
    ReadLateral,
    ReadQuery,
    ReadStream,
    ReadTable,
    Select,
    SetOperation,
    TableQuery,
    Unmatched,
)
from millstream.catalog.entries import Derived, Stream, Table, TimestampKind, View
from millstream.plan.grouping_sets import by_sets, copied, needs_rows
from millstream.plan.lateral_joins import lateral_join
from millstream.plan.nodes import (
    Arranged,
    BaseAggregate,
    Distinct,
    InOrder,
    Node,
    OverAggregate,
    PatternMatch,
    Project,
    RelationToStream,
    Rename,
    SparkQuery,
    StreamLimit,
    StreamScan,
    StreamUnion,
    TableJoin,
    TableScan,
    TableStream,
    WindowAggregate,
    Windowed,
    WindowJoin,
    WindowSetOperation,
    edge_field,
    filtered,
    windows_seen,
)
from millstream.plan.ranking import ranked
from millstream.plan.relation_variance import as_stream, current, default_stream, is_reported, varies
from millstream.plan.window_rows import with_bounds


def build(query: Query) -> Node:
    """Build the plan that corresponds exactly to the query; rules improve it afterwards."""
    plan = relation(query)
    return as_stream(plan, default_stream(plan)) if varies(plan) else plan


def relation(query: Query, *, on_windows: bool = False) -> Node:
    """Build the result of a query, which may vary with time; ``on_windows`` asks for contents of windows."""
    match query:
        case TableQuery():
            return SparkQuery(query.text, query.tables, query.fields, query.span, query.rows)
        case SetOperation():
            return _set_operation(query, on_windows=on_windows)
        case Select():
            return _select(query)


def _select(query: Select) -> Node:
    if query.unmatched:
        return _outer_join(query)
    plan = _from(query)
    if query.pattern is not None:
        return PatternMatch(filtered(plan, query.where), query.pattern, query.outputs)
    plan, query = with_bounds(plan, by_sets(query), always=bool(query.grouping_sets) and needs_rows(plan))
    if query.grouping_sets:
        plan = copied(plan, len(query.grouping_sets))
    plan = filtered(plan, query.where)
    plan = _aggregate(plan, query)
    plan = filtered(plan, query.having)
    if query.is_ranked:
        plan = ranked(plan, query)
        return plan if query.limit is None else StreamLimit(plan, query.limit.limit, query.limit.offset)
    plan = Project(filtered(plan, query.qualify), query.outputs)
    if query.limit is not None:
        plan = StreamLimit(plan, query.limit.limit, query.limit.offset)
    if query.distinct:
        plan = Distinct(plan)
    if query.arrangement is not None:
        plan = Arranged(plan, query.arrangement)
    if query.to_stream is None:
        return plan
    stream = as_stream(plan, query.to_stream)
    return stream if query.instant is None else _with_instant(stream, query.instant)


def _with_instant(stream: RelationToStream, column: InstantColumn) -> Node:
    """Put the instants at which rows come and go where SELECT names them."""
    stream = replace(stream, instant=column.type)
    *columns, instant = (Output(ref.name, of_column(ref)) for ref in stream.schema)
    place = column.position + len(columns) - len(stream.input.schema)
    return Project(stream, (*columns[:place], Output(column.name, instant.expr), *columns[place:]))


def _from(query: Select) -> Node:
    plan = _from_item(query.source, query)
    for join in query.joins:
        if isinstance(join.item, ReadLateral):
            plan = lateral_join(plan, join, join.item)
            continue
        right = _from_item(join.item, query)
        if plan.streaming and right.streaming:
            plan = WindowJoin(plan, right, join.kind, join.conditions)
        else:
            plan = TableJoin(plan, right, join.kind, join.condition)
    return plan


def _outer_join(query: Select) -> Node:
    """Build an outer join of bare streams: the pairs, merged with the rows whose time is up."""
    pairs = tuple(replace(j, kind="inner") if facts_of(j.item) is not None else j for j in query.joins)
    sides = [replace(query, joins=pairs, unmatched=(), limit=None)]
    sides += [_alone(query, unmatched) for unmatched in query.unmatched]
    plan, *others = (build(side) for side in sides)
    for other in others:
        plan = StreamUnion(plan, other, query.fields, all=True)
    return plan if query.limit is None else StreamLimit(plan, query.limit.limit, query.limit.offset)


def _alone(query: Select, unmatched: Unmatched) -> Select:
    """Return the query of the tuples that met nothing, with NULL for the columns of the other stream."""

    def value(column: ColumnRef) -> Expr | ColumnRef:
        is_missing = column.relation.lower() == unmatched.other.lower()
        return Expr((f"CAST(NULL AS {column.type})",), column.type) if is_missing else column

    def changed(exprs: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(expr.substitute(value) for expr in exprs)

    items = {item.alias: item for item in query.items()}
    kept = with_window(items[unmatched.stream], unmatched.kept)
    met = with_window(items[unmatched.other], unmatched.met)
    anti = JoinClause("anti", met, unmatched.conditions)
    tables = [join for join in query.joins if facts_of(join.item) is None]
    return replace(
        query,
        source=kept,
        joins=(anti, *(replace(join, conditions=changed(join.conditions)) for join in tables)),
        where=changed(query.where),
        outputs=tuple(replace(one, expr=one.expr.substitute(value)) for one in query.outputs),
        unmatched=(),
        limit=None,
    )


def _aggregate(plan: Node, query: Select) -> Node:
    if query.overs:
        if query.facts is None:
            plan = InOrder(plan, query.overs[0].along)
        return OverAggregate(plan, query.overs)
    if not query.aggregates and not query.group_by:
        return plan
    windowed = varies(plan) or any(not window.streaming for window in windows_seen(plan))
    if query.facts is None and not windowed:
        plan = InOrder(plan)
        windowed = not query.aggregates or not all(map(is_running, query.aggregates))
    if not windowed:
        return BaseAggregate(plan, query.group_by, query.aggregates)
    node = WindowAggregate(plan, query.group_by, query.aggregates)
    if query.current:
        return current(node)
    return _ungrouped_bounds(node) if is_reported(node) and query.to_stream is None else node


def _ungrouped_bounds(node: WindowAggregate) -> WindowAggregate:
    """Remove window bounds from GROUP BY: each report is of one window."""
    bounds = {bound for windowed in windows_seen(node.input) for bound in windowed.bounds}
    used = [(key, set(key.expr.columns())) for key in node.group_by]
    return replace(node, group_by=tuple(key for key, columns in used if not columns or not columns <= bounds))


def _from_item(item: FromItem, query: Select) -> Node:
    match item:
        case ReadTable():
            return _windowed(TableScan(item.table, item.alias), item)
        case ReadStream():
            return _windowed(_stream(item.stream, item.alias), item)
        case ReadQuery(window=None) if takes_relations(query) and reads_relation(item, query.items()):
            return Rename(relation(item.query), item.alias)
        case ReadQuery():
            return _windowed(Rename(build(item.query), item.alias), item)
        case ReadLateral():
            raise AssertionError("it is computed for rows of others, and stands behind them")


def _windowed(plan: Node, item: ReadStream | ReadTable | ReadQuery) -> Node:
    window, facts = item.window, facts_of(item)
    if facts is not None and facts.stored and not plan.streaming:
        order = (facts.timestamp.column or "").lower()
        plan = TableStream(plan, next(c for c in plan.schema if c.name.lower() == order))
    if window is None:
        return plan
    edge = edge_field(window, plan.schema, facts.timestamp.type if facts else None)
    return Windowed(plan, item.alias, window, edge)


def _stream(stream: Stream, alias: str) -> Node:
    """Build a stream; a derived stream is its query."""
    if isinstance(stream.origin, Derived):
        definition = stream.origin.definition
        assert isinstance(definition, Select | SetOperation)
        return Rename(build(definition), alias)
    return StreamScan(stream, alias)


def definition_of(relation: Table | View) -> Query | None:
    """Return the query that a table or view stands for when it is read; None if it has rows of its own.

    A query over tables is returned in the form that needs no Spark, if it has one.
    """
    match relation:
        case View(maintained=False, definition=definition) | Table(origin=Derived(definition=definition)):
            assert isinstance(definition, Query)
            simple = definition.simple if isinstance(definition, TableQuery) else None
            return simple if isinstance(simple, Select) else definition
        case _:
            return None


def _set_operation(query: SetOperation, *, on_windows: bool) -> Node:
    """Build a set operation: streams are merged by timestamp, contents of windows are combined."""
    on_windows = on_windows or is_on_windows(query)
    left, right = (relation(side, on_windows=on_windows) for side in (query.left, query.right))
    if query.facts is not None and not on_windows:
        latent = query.facts.timestamp.kind is TimestampKind.LATENT
        return StreamUnion(left, right, query.fields, query.all, latent)
    plan = WindowSetOperation(left, right, query.kind, query.all, query.columns)
    return as_stream(plan, query.to_stream) if query.to_stream else plan
