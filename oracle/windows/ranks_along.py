"""Ranking functions along a stream (semantics, section 5), tuple by tuple."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.analysis.queries.call_nodes import OverCall
from oracle.relations import Record, Relation, moment
from oracle.values.casts import cast
from oracle.values.expressions import compiled
from oracle.values.values import Value
from oracle.windows.frames import frame_of


def rank_along(call: OverCall, partition: Sequence[Record], place: int, relation: Relation) -> Value:
    """Return the result of a ranking function for a tuple, by its place in its partition."""
    now = moment(partition[place]) if call.call.name in ("rank", "dense_rank") else None
    match call.call.name:
        case "row_number":
            return place + 1
        case "rank":
            return 1 + sum(moment(record) < now for record in partition)  # type: ignore[operator]
        case "dense_rank":
            return len({moment(record) for record in partition if moment(record) <= now})  # type: ignore[operator]
        case "nth_value":
            return _nth(call, frame_of(call.frame, partition, place, relation), relation)
    return _other(call, partition, place, relation)


def _nth(call: OverCall, frame: Sequence[Record], relation: Relation) -> Value:
    values = [_value(call, 0, record, relation) for record in frame]
    counted = [value for value in values if value is not None or not call.call.ignore_nulls]
    number = _number(call)
    return counted[number - 1] if len(counted) >= number else None


def _other(call: OverCall, partition: Sequence[Record], place: int, relation: Relation) -> Value:
    """Return the value so many rows before or after; without such a row, the default at the tuple itself."""
    distance = _number(call) if call.call.name == "lead" else -_number(call)
    if call.call.ignore_nulls:
        before = [_value(call, 0, record, relation) for record in partition[:place]]
        known = [value for value in before if value is not None]
        if known:
            return known[-1]
    elif 0 <= place + distance < len(partition):
        return _value(call, 0, partition[place + distance], relation)
    return _value(call, 1, partition[place], relation) if len(call.call.arguments) > 1 else None


def _value(call: OverCall, argument: int, record: Record, relation: Relation) -> Value:
    expr = call.call.arguments[argument]
    return cast(compiled(expr, relation.schema)(record.values), expr.type, call.call.type)


def _number(call: OverCall) -> int:
    assert call.call.constants, "it has a distance or a place"
    return int(call.call.constants[0])
