"""Ranking functions and the first rows of reports (semantics, section 6), row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from millstream.analysis.queries.call_nodes import OrderKey, RankCall
from millstream.plan.nodes import WindowRank
from oracle.relations import TIMESTAMP_ITSELF, Record, Relation, attribute_of, in_order, moment
from oracle.values.casts import cast
from oracle.values.expressions import compiled
from oracle.values.points import at
from oracle.values.values import Value, order_key, same_key

Compare = Callable[[Record, Record], int]


def window_rank(node: WindowRank, relation: Relation, source: int) -> Relation:
    """Return the rows of every complete instant, report by report, with their ranks and in their order."""
    rows = [record for record in in_order(relation) if not record.is_late]
    waiting = [record for record in rows if not _is_complete(record, relation)]
    known = [attribute_of(column) for column in relation.schema]
    places = [known.index(attribute_of(column)) for column in node.report]
    reports: dict[Any, list[Record]] = {}
    for record in rows:
        if _is_complete(record, relation):
            values = tuple(record.values[i] for i in places)
            # Reports of one instant come in the order of their values.
            time = None if relation.time_type is None else moment(record)
            key = time, tuple(map(order_key, values))
            reports.setdefault(key, []).append(record)
    records = []
    for _, content in sorted(reports.items(), key=lambda item: item[0]):
        ranked = _ranked(node, content, relation)
        ranked.sort(key=cmp_to_key(_comparison(node.order_by, relation)))
        end = None if node.limit is None else node.offset + node.limit
        records += ranked[node.offset : end]
    numbered = [replace(record, order=(source, i)) for i, record in enumerate(records)]
    schema = (*relation.schema, *(call.result for call in node.calls))
    return relation.held_back(waiting).changed(numbered, schema)


def _is_complete(record: Record, relation: Relation) -> bool:
    """Tell whether all rows of the instant of a record are there."""
    if relation.time_type is None:
        return True
    promise, origins = relation.frontier(TIMESTAMP_ITSELF)
    return at(moment(record)) < promise or (at(moment(record)) == promise and origins[:1] == (float("inf"),))


def _ranked(node: WindowRank, content: list[Record], relation: Relation) -> list[Record]:
    columns = [_results(call, content, relation) for call in node.calls]
    return [
        replace(record, values=(*record.values, *(column[i] for column in columns)))
        for i, record in enumerate(content)
    ]


def _results(call: RankCall, content: list[Record], relation: Relation) -> list[Value]:
    """Return the results of a call for each row, from its partition alone."""
    keys = [compiled(expr, relation.schema) for expr in call.partition_by]
    compare = _comparison(call.order_by, relation)
    results: list[Value] = []
    for row in content:
        own = same_key(key(row.values) for key in keys)
        partition = [other for other in content if same_key(key(other.values) for key in keys) == own]
        partition.sort(key=cmp_to_key(compare))
        place = next(i for i, other in enumerate(partition) if other is row)
        results.append(_result(call, partition, place, compare, relation))
    return results


def _result(call: RankCall, rows: list[Record], place: int, compare: Compare, relation: Relation) -> Value:
    peers = [i for i, other in enumerate(rows) if compare(other, rows[place]) == 0]
    before = peers[0]
    match call.name:
        case "row_number":
            return place + 1
        case "rank":
            return before + 1
        case "dense_rank":
            smaller = rows[:before]
            return 1 + sum(i == 0 or compare(smaller[i - 1], r) != 0 for i, r in enumerate(smaller))
        case "percent_rank":
            return float(Fraction(before, len(rows) - 1)) if len(rows) > 1 else 0.0
        case "cume_dist":
            return float(Fraction(peers[-1] + 1, len(rows)))
        case "ntile":
            buckets = [number for number in range(call.number) for _ in range(_size(number, len(rows), call))]
            return buckets[place] + 1
    return _value(call, rows, place, peers, relation)


def _size(bucket: int, rows: int, call: RankCall) -> int:
    return rows // call.number + (bucket < rows % call.number)


def _value(call: RankCall, rows: list[Record], place: int, peers: list[int], relation: Relation) -> Value:
    """Return the value of another row; without one, the default at the row itself."""
    assert call.argument is not None
    argument = compiled(call.argument, relation.schema)
    values = [cast(argument(row.values), call.argument.type, call.type) for row in rows]
    counted = [i for i, value in enumerate(values) if value is not None or not call.ignore_nulls]
    if call.name in ("lag", "lead"):
        distance = call.number if call.name == "lead" else -call.number
        if distance == 0:
            return values[place]
        candidates = [i for i in counted if (i > place if distance > 0 else i < place)]
        candidates = candidates if distance > 0 else candidates[::-1]
        if len(candidates) >= abs(distance):
            return values[candidates[abs(distance) - 1]]
        if call.default is None:
            return None
        default = compiled(call.default, relation.schema)(rows[place].values)
        return cast(default, call.default.type, call.type)
    frame, whole = call.frame, len(rows)
    first = 0 if frame.start is None else place + frame.start if frame.rows else peers[0]
    last = whole - 1 if frame.end is None else place + frame.end if frame.rows else peers[-1]
    inside = [i for i in counted if first <= i <= last]
    if call.name == "last_value":
        return values[inside[-1]] if inside else None
    return values[inside[call.number - 1]] if len(inside) >= call.number else None


def _comparison(keys: Iterable[OrderKey], relation: Relation) -> Compare:
    """Return the comparison of rows by keys; NULL stands where the key says."""
    functions = [(compiled(key.expr, relation.schema), key) for key in keys]

    def compare(one: Record, other: Record) -> int:
        for function, key in functions:
            left, right = function(one.values), function(other.values)
            if (left is None) != (right is None):
                return -1 if (left is None) == key.nulls_first else 1
            if left is None:
                continue
            a, b = order_key(left), order_key(right)
            if a != b:
                return -1 if (a < b) != key.descending else 1
        return 0

    return compare
