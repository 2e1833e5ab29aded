"""Frames of OVER (semantics, section 5): the tuples of a partition that belong to one of them."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.analysis.queries.call_nodes import Frame
from millstream.quantity import Duration, Quantity, Rows, negative, size
from oracle.relations import TIMESTAMP_ITSELF, Record, Relation, moment
from oracle.values.points import Point, at, earlier


def frame_of(frame: Frame, partition: Sequence[Record], place: int, relation: Relation) -> list[Record]:
    """Return the tuples in the frame of a tuple, by its place in its partition."""
    if frame.rows:
        first = 0 if frame.preceding is None else place - _count(frame.preceding)
        last = place if frame.until is None else place - _count(frame.until)
        return [partition[i] for i in range(max(first, 0), min(last, len(partition) - 1) + 1)]
    found = []
    for i, record in enumerate(partition):
        since = frame.preceding is None or moment(record) >= _instant(
            partition[place], frame.preceding, relation
        )
        if frame.until is None:
            until = i <= place
        else:
            until = moment(record) <= _instant(partition[place], frame.until, relation)
        if since and until:
            found.append(record)
    return found


def is_complete(frame: Frame, partition: Sequence[Record], place: int, relation: Relation) -> bool:
    """Tell whether no tuple that is still to come can be in the frame of a tuple."""
    if frame.until is None or not frame.follows or relation.ended:
        return True
    if frame.rows:
        return place - _count(frame.until) < len(partition)
    return at(_instant(partition[place], frame.until, relation)) < relation.frontier(TIMESTAMP_ITSELF)[0]


def _count(quantity: Quantity) -> int:
    assert isinstance(quantity, Rows)
    return quantity.count


def _instant(record: Record, before: Quantity, relation: Relation) -> Point:
    """Return the instant so far before a tuple, or after it."""
    assert relation.time_type is not None
    now = moment(record)
    if before == Duration():
        return now
    if size(before) < 0:
        return now + (now - earlier(now, negative(before), relation.time_type))
    return earlier(now, before, relation.time_type)
