"""GROUP BY and aggregates over the content of windows, or of a whole table."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import ColumnRef, of_column
from millstream.plan.maintained_relations import is_in_order
from millstream.plan.nodes import WindowAggregate, WindowRows
from millstream.plan.relation_variance import is_scalar
from millstream.plan.time_attributes import timestamps
from oracle.bodies import of_content
from oracle.relations import TIMESTAMP_ITSELF, Attribute, Record, Relation, Report, attribute_of, in_order
from oracle.uda_versions import arguments_of, base_of
from oracle.uda_versions import results as user_results
from oracle.values.aggregates import aggregation, is_in_python
from oracle.values.expressions import column_key, compiled
from oracle.values.values import Value, order_key, same_key


def window_aggregate(
    node: WindowAggregate, content: Relation, source: int, *, arranged: bool = False
) -> Relation:
    """Return a row for each report of a window and each non-empty group, with the report's timestamp.

    With ``arranged`` rows have no order, and each call takes them in the order of its arguments.
    """
    columns = [column_key(column) for column in content.schema]
    keys = [key.expr.column or ColumnRef("", key.name, key.expr.type) for key in node.group_by]
    functions = [compiled(key.expr, content.schema) for key in node.group_by]
    carried: list[ColumnRef] = []
    if content.windows is not None:
        # PATTR partitions the result too.
        keys += content.windows.partition_by
        functions += [compiled(of_column(c), content.schema) for c in content.windows.partition_by]
        carried = list(content.windows.bounds)
    calls = [_call(call, content.schema, arranged=arranged) for call in node.aggregates]

    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in in_order(content):
        groups[record.window, same_key(f(record.values) for f in functions)].append(record)
    for empty in _empty(content, groups):
        groups[empty, ()] = []
    if content.windows is None and not keys and not groups:
        # A whole table is one group, empty or not.
        groups[None, ()] = []

    records = []
    for (report, _), members in groups.items():
        values = [_plain(f(members[0].values)) for f in functions]
        row = dict(zip(map(column_key, keys), values, strict=True))
        if members:
            row = dict(zip(columns, members[0].values, strict=True)) | row
        elif report is not None:
            row |= zip(map(column_key, carried), (report.start, report.end, report.shown), strict=True)
        place = (0,) if report is None else report.place
        order = (source, *place, *map(order_key, values))
        group_values = [row[column_key(column)] for column in (*keys, *carried)]
        time = None if report is None else report.time
        # The user's aggregates return nothing for a window without tuples, which has a row all the same.
        is_empty = report is not None and not members
        combinations = itertools.product(*((call(members) or [None] * is_empty) for call in calls))
        records += [Record((*group_values, *results), time, order) for results in combinations]
    schema = (*keys, *carried, *(call.result for call in node.aggregates))
    return _stamped(node, content, schema, records)


def _empty(content: Relation, groups: Iterable[tuple[Report | None, Any]]) -> list[Report]:
    """Return the windows without tuples that are reported: those behind the first with tuples."""
    windows, present = content.windows, [report for report, _ in groups if report is not None]
    if windows is None or not windows.every or not present:
        return []
    first, last = min(r.wid for r in present), max(r.wid for r in present)
    after = max(last, windows.reached)
    known = {report.wid for report in present}
    return [report for report in windows.every if first < report.wid <= after and report.wid not in known]


def window_rows(node: WindowRows, content: Relation, source: int) -> Relation:
    """Return the content of each report of a window: reports are in order, and rows in that of the stream."""
    assert content.windows is not None
    parts = [compiled(of_column(c), content.schema) for c in content.windows.partition_by]
    records = []
    for number, record in enumerate(in_order(content)):
        assert record.window is not None
        own = map(order_key, (part(record.values) for part in parts))
        order = (source, *record.window.place, *own, number)
        records.append(replace(record, time=record.window.time, order=order, promised=None, window=None))
    return _stamped(node, content, content.schema, records)


def maintained_groups(
    node: WindowAggregate, rows: Sequence[tuple[Value, ...]], schema: Sequence[ColumnRef]
) -> list[tuple[Value, ...]]:
    """Return the groups of a relation at an instant. An empty relation has a row only without GROUP BY.

    Tuples of one window have an order. Pairs, groups and rows of set operations have none.
    """
    if not rows and not is_scalar(node):
        return []
    records = [Record(row, None, (number,)) for number, row in enumerate(rows)]
    groups = window_aggregate(node, Relation(tuple(schema), records), 0, arranged=not is_in_order(node.input))
    # Only windows that end have bounds.
    places = [groups.schema.index(c) if c in groups.schema else None for c in node.schema]
    return [tuple(None if i is None else r.values[i] for i in places) for r in groups.records]


def _call(
    call: AggregateCall, schema: Sequence[ColumnRef], *, arranged: bool
) -> Callable[[list[Record]], list[Value]]:
    """Return the results of a call over some content: one, unless the aggregate is user-defined."""
    results = _results(call, schema)
    if not arranged:
        return results
    arguments = [compiled(argument, schema) for argument in call.arguments]
    return lambda members: results(sorted(members, key=lambda r: same_key(f(r.values) for f in arguments)))


def _results(call: AggregateCall, schema: Sequence[ColumnRef]) -> Callable[[list[Record]], list[Value]]:
    if call.user is None or is_in_python(call):
        aggregate = aggregation(call, schema)
        return lambda members: [aggregate.of(members)]
    body = base_of(call)
    arguments = arguments_of(call, body, schema)
    return lambda members: user_results(call, of_content(body, [arguments(record) for record in members]))


def _stamped(
    node: WindowAggregate | WindowRows,
    content: Relation,
    schema: tuple[ColumnRef, ...],
    records: list[Record],
) -> Relation:
    windows = content.windows
    if windows is None:
        return Relation(schema, records)
    ends: list[Attribute] = [attribute_of(c) for c in schema if c in timestamps(node)]
    return Relation(
        schema,
        records,
        time_type=windows.type,
        latent=windows.latent,
        ended=content.ended,
        frontiers=dict.fromkeys((TIMESTAMP_ITSELF, *ends), windows.frontier),
    )


def _plain(value: Value) -> Value:
    """Return 0.0 for both zeros, which group together."""
    return 0.0 if isinstance(value, float) and value == 0 else value
