"""Windows over an aggregate call (semantics, section 2): a result for every tuple, or for every slide.

ACTIVE EXPIRATION and EMIT EVERY make rows that belong to no tuple; they would be added beside `_yields`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from millstream.analysis.calls import OverCall
from millstream.plan.nodes import OverAggregate
from millstream.quantity import Duration, Quantity, Rows
from millstream.reference.aggregates import Aggregation, aggregation
from millstream.reference.errors import NotInterpreted
from millstream.reference.expressions import Function, compiled
from millstream.reference.points import at, earlier, length
from millstream.reference.relations import (
    TIMESTAMP_ITSELF,
    Record,
    Relation,
    in_order,
    is_final,
    moment,
)
from millstream.reference.values import same_key

Partition = tuple[Any, ...]


def over_aggregate(node: OverAggregate, relation: Relation) -> Relation:
    """Each tuple with the aggregates of its windows; late tuples are in none of them."""
    if relation.time_type is None:
        raise NotInterpreted("OVER on a table")
    for call in node.calls:
        _check(call, node.calls[0])
    tuples = [record for record in in_order(relation) if not record.is_late and is_final(record, relation)]
    columns = [_results(call, tuples, relation) for call in node.calls]
    chosen = _yields(node.calls[0], tuples, relation)
    records = [
        replace(record, values=(*record.values, *(column[i] for column in columns)))
        for i, record in enumerate(tuples)
        if i in chosen
    ]
    return relation.changed(records, node.schema)


def _check(call: OverCall, other: OverCall) -> None:
    if call.active_expiration:
        raise NotInterpreted("ACTIVE EXPIRATION")
    if call.emit_every is not None:
        raise NotInterpreted("EMIT EVERY in OVER")
    if call.slide is not None and call.partition_by != other.partition_by:
        raise NotInterpreted("SLIDE over different partitions in one SELECT")


def _results(call: OverCall, tuples: list[Record], relation: Relation) -> list[Any]:
    """The result of a call for each tuple, from its window alone."""
    aggregate: Aggregation = aggregation(call.call, relation.schema)
    partition_of = _partitioner(call, relation)
    history: dict[Partition, list[Record]] = defaultdict(list)
    results = []
    for record in tuples:
        before = history[partition_of(record)]
        before.append(record)
        results.append(aggregate.of(_window(call, before, relation)))
    return results


def _window(call: OverCall, before: list[Record], relation: Relation) -> list[Record]:
    """The window of the last tuple of a partition's history: itself, and how far back the frame reaches."""
    reach: Quantity | None = call.frame.preceding
    if reach is None:
        return before
    if isinstance(reach, Rows):
        return before[-reach.count - 1 :]
    assert relation.time_type is not None
    now = moment(before[-1])
    since = now if reach == Duration() else earlier(now, reach, relation.time_type)
    return [record for record in before if moment(record) >= since]


def _yields(call: OverCall, tuples: list[Record], relation: Relation) -> set[int]:
    """Which tuples give a result: all, or with SLIDE the last one of each slot of their partition."""
    if call.slide is None:
        return set(range(len(tuples)))
    partition_of = _partitioner(call, relation)
    slots: dict[tuple[Partition, Any], list[int]] = defaultdict(list)
    counts: dict[Partition, int] = defaultdict(int)
    for i, record in enumerate(tuples):
        partition = partition_of(record)
        if isinstance(call.slide, Rows):
            slot = counts[partition] // call.slide.count
            counts[partition] += 1
        else:
            slot = _slot(call.slide, record, relation)
        slots[partition, slot].append(i)
    if isinstance(call.slide, Rows):
        return {slot[-1] for slot in slots.values() if len(slot) == call.slide.count}
    assert relation.time_type is not None
    slide = length(call.slide, relation.time_type)
    passed, _ = relation.frontier(TIMESTAMP_ITSELF)
    return {members[-1] for (_, slot), members in slots.items() if at((slot + 1) * slide) <= passed}


def _slot(slide: Quantity, record: Record, relation: Relation) -> int:
    assert relation.time_type is not None
    return int(moment(record) // length(slide, relation.time_type))


def _partitioner(call: OverCall, relation: Relation) -> Any:
    keys: list[Function] = [compiled(expr, relation.schema) for expr in call.partition_by]
    return lambda record: same_key(key(record.values) for key in keys)
