"""Windows over an aggregate call (semantics, section 2): a result for every tuple, or for every slide.

ACTIVE EXPIRATION makes rows that belong to no tuple; they would be added beside `_early`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from millstream.analysis.calls import OverCall
from millstream.plan.nodes import OverAggregate
from millstream.quantity import Duration, Quantity, Rows
from millstream.reference.aggregates import Aggregation, aggregation
from millstream.reference.errors import NotInterpreted
from millstream.reference.expressions import Function, compiled
from millstream.reference.points import Point, at, earlier, length, to_point
from millstream.reference.relations import (
    BEGINNING,
    TIMESTAMP_ITSELF,
    Record,
    Relation,
    attribute_of,
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
    call = node.calls[0]
    on_time = [record for record in in_order(relation) if not record.is_late]
    tuples = [record for record in on_time if is_final(record, relation)]
    columns = [_results(each, tuples, relation) for each in node.calls]
    slots = _slots(call, tuples, relation)
    chosen = [slot.members[-1] for slot in slots if slot.is_over]
    reported = [(i, tuples[i].time, True) for i in sorted(chosen)]
    reported += [(i, time, False) for i, time in _early(call, slots, tuples, relation)]
    records = []
    for i, time, complete in reported:
        added = (*(column[i] for column in columns), *((complete,) if call.emit_every is not None else ()))
        records.append(replace(tuples[i], values=(*tuples[i].values, *added), time=time))
    waiting = [record for record in on_time if not is_final(record, relation)]
    if not isinstance(call.slide, Rows):
        # In a slot that counts tuples, those that are there are no yield tuples.
        waiting += [tuples[i] for slot in slots if not slot.is_over for i in slot.members]
    return _promises(relation, waiting).changed(records, node.schema)


def _promises(relation: Relation, waiting: list[Record]) -> Relation:
    """What is promised about the results: no more than the tuples that still wait to be one allow."""
    frontiers = dict(relation.frontiers)
    for attribute, (instant, _) in relation.frontiers.items():
        position = next((i for i, c in enumerate(relation.schema) if attribute_of(c) == attribute), None)
        points = [
            moment(record)
            if position is None
            else to_point(record.values[position], relation.schema[position].type)
            for record in waiting
        ]
        least = min((at(point) for point in points if point is not None), default=instant)
        if least < instant:
            frontiers[attribute] = (least, ())
    return replace(relation, frontiers=frontiers)


def _check(call: OverCall, other: OverCall) -> None:
    if call.active_expiration:
        raise NotInterpreted("ACTIVE EXPIRATION")
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


@dataclass(frozen=True)
class _Slot:
    """Tuples of one partition, by their positions; the last is the yield tuple, once the slot is over."""

    members: list[int]
    is_over: bool
    number: int


def _slots(call: OverCall, tuples: list[Record], relation: Relation) -> list[_Slot]:
    """The slots of all partitions; without SLIDE each tuple is one."""
    if call.slide is None:
        return [_Slot([i], True, i) for i in range(len(tuples))]
    partition_of = _partitioner(call, relation)
    slots: dict[tuple[Partition, int], list[int]] = defaultdict(list)
    counts: dict[Partition, int] = defaultdict(int)
    for i, record in enumerate(tuples):
        partition = partition_of(record)
        if isinstance(call.slide, Rows):
            number = counts[partition] // call.slide.count
            counts[partition] += 1
        else:
            number = int(moment(record) // _length(call.slide, relation))
        slots[partition, number].append(i)
    if isinstance(call.slide, Rows):
        return [_Slot(slot, len(slot) == call.slide.count, n) for (_, n), slot in slots.items()]
    slide, (passed, _) = _length(call.slide, relation), relation.frontier(TIMESTAMP_ITSELF)
    return [_Slot(slot, at((n + 1) * slide) <= passed, n) for (_, n), slot in slots.items()]


def _early(
    call: OverCall, slots: list[_Slot], tuples: list[Record], relation: Relation
) -> Iterator[tuple[int, Point | None]]:
    """With EMIT EVERY, which tuples are reported before their slot is over, and when."""
    if isinstance(call.emit_every, Rows):
        assert isinstance(call.slide, Rows)
        for slot in slots:
            for place, i in enumerate(slot.members):
                count = slot.number * call.slide.count + place + 1
                if count % call.emit_every.count == 0 and count % call.slide.count:
                    yield i, tuples[i].time
    elif call.emit_every is not None:
        assert call.slide is not None
        slide, every = _length(call.slide, relation), _length(call.emit_every, relation)
        reached, _ = relation.frontiers.get(TIMESTAMP_ITSELF, BEGINNING)
        for slot in slots:
            instant = (slot.number * slide // every + 1) * every
            while instant < (slot.number + 1) * slide and at(instant) <= reached:
                before = [i for i in slot.members if moment(tuples[i]) < instant]
                if before:
                    yield before[-1], instant
                instant += every


def _length(quantity: Quantity, relation: Relation) -> Point:
    assert relation.time_type is not None
    return length(quantity, relation.time_type)


def _partitioner(call: OverCall, relation: Relation) -> Any:
    keys: list[Function] = [compiled(expr, relation.schema) for expr in call.partition_by]
    return lambda record: same_key(key(record.values) for key in keys)
