"""OVER windows (semantics, section 5): a result for every tuple, or for every slide.

A user-defined aggregate may return any number of rows for a tuple; the tuple is emitted with each. ACTIVE
EXPIRATION also emits a row for each tuple that expires.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from millstream.analysis.queries.call_nodes import OverCall, ranks_along
from millstream.plan.nodes import OverAggregate
from millstream.quantity import Duration, Quantity, Rows
from oracle.bodies import of_content
from oracle.errors import NotInterpreted
from oracle.relations import TIMESTAMP_ITSELF, Record, Relation, in_order, is_final, moment
from oracle.uda_versions import active_results, arguments_of, base_of, over_results
from oracle.uda_versions import results as user_results
from oracle.values.aggregates import aggregation, is_in_python
from oracle.values.expressions import Function, compiled
from oracle.values.points import Point, at, last_instant, length
from oracle.values.values import same_key
from oracle.windows.frames import frame_of, is_complete
from oracle.windows.ranks_along import rank_along

Partition = tuple[Any, ...]


def over_aggregate(node: OverAggregate, relation: Relation, source: int) -> Relation:
    """Return each tuple with the aggregates of its windows; late tuples are in none of them.

    Expiry rows have a ``source`` of their own, after those of all tuples.
    """
    if relation.time_type is None:
        raise NotInterpreted("OVER on a table")
    for call in node.calls:
        _check(call, node.calls[0])
    call = node.calls[0]
    on_time = [record for record in in_order(relation) if not record.is_late]
    tuples = [record for record in on_time if is_final(record, relation)]
    answered = _complete(node.calls, tuples, relation)
    if call.active_expiration:
        waiting = [record for record in on_time if not is_final(record, relation)]
        return relation.held_back(waiting).changed(_active(call, tuples, relation, source), node.schema)
    columns = [_results(each, tuples, relation) for each in node.calls]
    slots = _slots(call, tuples, relation)
    chosen = [slot.members[-1] for slot in slots if slot.is_over and slot.members[-1] in answered]
    reported = [(i, tuples[i].time, True) for i in sorted(chosen)]
    reported += [(i, time, False) for i, time in _early(call, slots, tuples, relation)]
    records = []
    for i, time, complete in reported:
        marks = (complete,) if call.emit_every is not None else ()
        found = itertools.product(*(column[i] for column in columns))
        records += [replace(tuples[i], values=(*tuples[i].values, *row, *marks), time=time) for row in found]
    return relation.held_back(_waiting(node, on_time, relation.before_end())).changed(records, node.schema)


def _waiting(node: OverAggregate, on_time: list[Record], relation: Relation) -> list[Record]:
    """Return the tuples that may still get results, which promises about results cannot pass."""
    call = node.calls[0]
    tuples = [record for record in on_time if is_final(record, relation)]
    waiting = [record for record in on_time if not is_final(record, relation)]
    if isinstance(call.slide, Rows):
        return waiting  # in a slot that counts tuples, the present tuples are not yield tuples
    answered = _complete(node.calls, tuples, relation)
    slots = _slots(call, tuples, relation)
    waiting += [tuples[i] for slot in slots if not slot.is_over for i in slot.members]
    return waiting + [record for i, record in enumerate(tuples) if i not in answered]


def _check(call: OverCall, other: OverCall) -> None:
    if call.slide is not None and call.partition_by != other.partition_by:
        raise NotInterpreted("SLIDE over different partitions in one SELECT")


def _complete(calls: Sequence[OverCall], tuples: list[Record], relation: Relation) -> set[int]:
    """Return the tuples, by their positions, whose frames no later tuple can change."""
    complete = set(range(len(tuples)))
    for call in calls:
        for members in _partitions(call, tuples, relation):
            partition = [tuples[i] for i in members]
            for place, i in enumerate(members):
                if not is_complete(call.frame, partition, place, relation):
                    complete.discard(i)
    return complete


def _results(call: OverCall, tuples: list[Record], relation: Relation) -> list[list[Any]]:
    """Return the results of a call for each tuple, from its window alone."""
    if call.call.user is not None and not is_in_python(call.call):
        return _of_user(call, tuples, relation)
    ranks = ranks_along(call.call)
    aggregate = None if ranks else aggregation(call.call, relation.schema)
    results: list[list[Any]] = [[] for _ in tuples]
    for members in _partitions(call, tuples, relation):
        partition = [tuples[i] for i in members]
        for place, i in enumerate(members):
            if aggregate is None:
                results[i].append(rank_along(call, partition, place, relation))
            else:
                results[i].append(aggregate.of(frame_of(call.frame, partition, place, relation)))
    return results


def _of_user(call: OverCall, tuples: list[Record], relation: Relation) -> list[list[Any]]:
    found: list[list[Any]] = [[] for _ in tuples]
    for members in _partitions(call, tuples, relation):
        history = [tuples[i] for i in members]
        frames = [frame_of(call.frame, history, i, relation) for i in range(len(history))]

        def left(j: int, i: int, history: list[Record] = history, frames: Any = frames) -> bool:
            return not any(one is history[j] for one in frames[i])

        if call.frame.until is None:
            returned = over_results(call, history, relation.schema, left)
        else:
            base = base_of(call.call)
            values = arguments_of(call.call, base, relation.schema)
            returned = [of_content(base, [values(record) for record in frame]) for frame in frames]
        for i, rows in zip(members, returned, strict=True):
            found[i] = user_results(call.call, rows)
    return found


def _active(call: OverCall, tuples: list[Record], relation: Relation, source: int) -> list[Record]:
    """Return each tuple on its arrival and on its expiry, which follows the tuples of that instant."""
    reach = _length(call.frame.preceding or Duration(), relation)
    assert relation.time_type is not None
    passed, _ = relation.frontier(TIMESTAMP_ITSELF)
    records = []
    for members in _partitions(call, tuples, relation):
        history = [tuples[i] for i in members]
        times = [moment(record) for record in history]
        if call.call.user is not None and not is_in_python(call.call):
            came, gone = active_results(call, history, relation.schema, times, reach)
            found = [[user_results(call.call, rows) for rows in part] for part in (came, gone)]
        else:
            found = _active_builtin(call, history, times, reach, relation)
        for i, record in enumerate(history):
            left = min(times[i] + reach, last_instant(relation.time_type))
            leaves = replace(record, time=left, order=(source, *record.order))
            happens = [(record, found[0][i])]
            happens += [(leaves, found[1][i])] if at(left) < passed else []
            records += [replace(r, values=(*r.values, value)) for r, values in happens for value in values]
    return records


def _active_builtin(
    call: OverCall, history: list[Record], times: list[Point], reach: Point, relation: Relation
) -> list[list[list[Any]]]:
    aggregate = aggregation(call.call, relation.schema)
    came, gone = [], []
    for i in range(len(history)):
        came.append([aggregate.of([history[j] for j in range(i + 1) if times[j] + reach >= times[i]])])
        there = [j for j in range(len(history)) if times[j] <= times[i] + reach]
        gone.append([aggregate.of([history[j] for j in there if j > i])])
    return [came, gone]


def _partitions(call: OverCall, tuples: list[Record], relation: Relation) -> list[list[int]]:
    """Return the positions of tuples by partition."""
    partition_of = _partitioner(call, relation)
    found: dict[Partition, list[int]] = defaultdict(list)
    for i, record in enumerate(tuples):
        found[partition_of(record)].append(i)
    return list(found.values())


@dataclass(frozen=True)
class _Slot:
    """Tuples of one partition, by their positions; the last is the yield tuple, once the slot is over."""

    members: list[int]
    is_over: bool
    number: int


def _slots(call: OverCall, tuples: list[Record], relation: Relation) -> list[_Slot]:
    """Return the slots of all partitions; without SLIDE each tuple is one."""
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
    """Yield the tuples that EMIT EVERY reports before their slot is over, with the time of the report."""
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
        reached, _ = relation.before_end().frontier(TIMESTAMP_ITSELF)
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
