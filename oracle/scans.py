"""Scans of streams: tuples on time, late tuples, bad records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.entries import Stream, Table, TimestampKind, source_columns
from millstream.plan import nodes
from millstream.types import TIMESTAMP, Field
from oracle.disorder_promises import Promised, promised_attributes
from oracle.errors import Failure
from oracle.inputs import Arrivals, Heartbeat, checked, row_values
from oracle.relations import TIMESTAMP_ITSELF, Attribute, Frontier, Record, Relation, attribute_of, slowest
from oracle.values.casts import cast
from oracle.values.expressions import compiled, holds
from oracle.values.points import Instant, Point, at, to_point
from oracle.values.texts import record_text
from oracle.values.values import Value

NO_TIMESTAMP = "the timestamp is NULL"
NOT_FINITE = "the timestamp is not finite"
OUTERMOST = "the timestamp is the smallest or the largest BIGINT"


@dataclass
class Scanned:
    """A stream as it was read; ``on_time`` includes the late tuples of a GENEROUS stream, marked."""

    stream: Stream
    alias: str
    on_time: list[Record] = field(default_factory=list)
    late: list[Record] = field(default_factory=list)
    bad: list[tuple[Record, str]] = field(default_factory=list)
    frontiers: dict[Attribute, Frontier] = field(default_factory=dict)
    given: dict[tuple[int, ...], tuple[Value, ...]] = field(default_factory=dict)
    """The columns of the source of each bad record."""

    def tuples(self, ended: bool) -> Relation:
        """Return the stream itself."""
        timestamp = self.stream.timestamp
        return Relation(
            schema=self._schema(self.stream),
            records=tuple(self.on_time),
            time_type=timestamp.type or TIMESTAMP,
            latent=timestamp.kind is TimestampKind.LATENT,
            ended=ended,
            frontiers=self.frontiers,
        )

    def rejected(self, stream: Stream, reason: str, ended: bool) -> Relation:
        """Return the stream of LATE INTO or BAD INTO, which is latent."""
        records = self.late if reason == "late" else [self._as_text(*bad) for bad in self.bad]
        frontiers = _frontiers_by_stamp(records)
        return Relation(
            self._schema(stream), tuple(records), TIMESTAMP, latent=True, ended=ended, frontiers=frontiers
        )

    def _schema(self, stream: Stream) -> tuple[ColumnRef, ...]:
        return tuple(ColumnRef(self.alias, f.name, f.type) for f in stream.schema)

    def _as_text(self, record: Record, reason: str) -> Record:
        read = self.stream.read
        fields = source_columns(read.schema, read.computed)
        text = record_text(self.given[record.order], fields)
        return Record((text, reason), None, record.order, record.stamp)


def scan(stream: Stream, arrivals: Arrivals, source: int, alias: str) -> Scanned:
    """Classify the arrivals of each source partition one by one, by the promises of earlier ones."""
    scanned = Scanned(stream, alias)
    promises = [_scan_partition(scanned, arrivals, (source, i)) for i in range(len(arrivals.partitions))]
    for attribute in promises[0] if promises else ():
        scanned.frontiers[attribute] = slowest(
            (promise[attribute], (source, i)) for i, promise in enumerate(promises)
        )
    if stream.timestamp.kind is TimestampKind.LATENT:
        scanned.frontiers |= _frontiers_by_stamp(scanned.on_time)
    return scanned


def stream_of_rows(node: nodes.TableStream, rows: Relation, source: int) -> Relation:
    """Return the rows of a table as a stream that has ended, in the order of a column."""
    place = rows.schema.index(node.column)
    type_ = node.column.type
    timed: list[tuple[Point, tuple[Value, ...]]] = []
    for record in rows.records:
        point = to_point(record.values[place], type_)
        if point is None:
            raise Failure(f"a row has no place in the order of '{node.column.name}'")
        timed.append((point, record.values))
    timed.sort(key=lambda row: row[0])
    records = [Record(values, point, (source, 0, number)) for number, (point, values) in enumerate(timed)]
    frontiers: dict[Attribute, Frontier] = {}
    if timed:
        newest = (at(timed[-1][0]), (source, 0))
        frontiers = dict.fromkeys((TIMESTAMP_ITSELF, attribute_of(node.column)), newest)
    return Relation(rows.schema, records, type_, ended=True, frontiers=frontiers)


def _frontiers_by_stamp(records: Sequence[Record]) -> dict[Attribute, Frontier]:
    """Return the frontiers of a latent stream: its newest recorded time, which no two tuples share."""
    stamps = [record.stamp for record in records if record.stamp is not None]
    return {TIMESTAMP_ITSELF: (at(max(stamps) + 1), ())} if stamps else {}


def _scan_partition(
    scanned: Scanned, arrivals: Arrivals, origin: tuple[int, int]
) -> dict[Attribute, Instant]:
    stream = scanned.stream
    attributes = promised_attributes(stream)
    for offset, arrival in enumerate(arrivals.partitions[origin[1]]):
        if isinstance(arrival, Heartbeat):
            _heartbeat(stream, attributes, arrival)
            continue
        read = stream.read
        given = row_values(arrival.values, source_columns(read.schema, read.computed), read.name)
        stamp = to_point(checked(arrival.stamp, TIMESTAMP, stream.name), TIMESTAMP)
        order = (*origin, offset)
        selected = selected_values(given, stream)
        if selected is None:
            continue
        values, failure = selected
        scanned.given[order] = given
        if failure is not None:
            scanned.bad.append((Record(values, None, order, stamp), failure))
            continue
        # No short cut: a tuple may be a promise about several attributes.
        punctuated = [attribute.punctuated_by(values) for attribute in attributes.values()]
        if any(punctuated):
            continue
        time, reason = _timestamp(stream, values)
        if reason is not None:
            scanned.bad.append((Record(values, None, order, stamp), reason))
            continue
        broken = [attribute for attribute in attributes.values() if attribute.is_broken_by(values)]
        if not broken:
            scanned.on_time.append(Record(values, time, order, stamp))
        else:
            scanned.late.append(Record(values, None, order, stamp))
            if all(attribute.generous for attribute in broken):
                promised = _promises(scanned, attributes)
                scanned.on_time.append(Record(values, time, order, stamp, promised))
        for attribute in attributes.values():
            attribute.see(values)
    return _promises(scanned, attributes)


Computed = tuple[tuple[Value, ...], str | None]
"""The columns of a tuple, and the reason if one cannot be computed."""


def computed_values(given: Sequence[Value], relation: Stream | Table) -> Computed:
    """Return the columns of a row, computed ones included."""
    schema = relation.schema or ()
    computed = {column.name: column.expr for column in relation.computed}
    values: list[Value] = []
    failures: list[str] = []
    rest = iter(given)
    for i, one in enumerate(schema):
        before = [ColumnRef("", f.name, f.type) for f in schema[:i]]
        is_given = one.name not in computed
        values.append(next(rest) if is_given else _attempt(computed[one.name], one, before, values, failures))
    return tuple(values), next(iter(failures), None)


def selected_values(given: Sequence[Value], stream: Stream) -> Computed | None:
    """Return the columns of a tuple behind the query of its stream; None if the query leaves it out."""
    values, failure = computed_values(given, stream.read)
    if stream.selection is None or failure is not None:
        return values, failure
    schema = stream.read.schema
    for step in stream.selection.steps:
        before = [ColumnRef(step.alias, f.name, f.type) for f in schema]
        for condition in step.conditions:
            assert isinstance(condition, Expr)
            try:
                if not holds(condition, before)(values):
                    return None
            except Failure:
                return values, "the condition of the stream's query cannot be computed"
        failures: list[str] = []
        columns = zip(step.columns, step.schema, strict=True)
        values = tuple(_attempt(one.expr, field_, before, values, failures) for one, field_ in columns)
        if failures:
            return values, failures[0]
        schema = step.schema
    return values, None


def _attempt(
    expr: object, field_: Field, before: list[ColumnRef], values: Sequence[Value], failures: list[str]
) -> Value:
    """Return the value of a column; NULL, and a reason, if it cannot be computed."""
    assert isinstance(expr, Expr)
    try:
        return cast(compiled(expr, before)(values), expr.type, field_.type)
    except Failure:
        failures.append(f"column '{field_.name}' cannot be computed")
        return None


def _timestamp(stream: Stream, values: tuple[Value, ...]) -> tuple[Point | None, str | None]:
    """Return the point of a tuple, or the reason why it has none."""
    column, type_ = stream.timestamp.column, stream.timestamp.type
    if column is None or type_ is None:
        return None, None
    value = values[[field.name for field in stream.schema].index(column)]
    if value is None and stream.timestamp.kind is TimestampKind.INTERNAL:
        raise ValueError(f"'{stream.name}': an internal timestamp is given as it was recorded on arrival")
    if value is None:
        return None, NO_TIMESTAMP
    if isinstance(value, float) and not math.isfinite(value):
        # It would promise everything or nothing, for good.
        return None, NOT_FINITE
    point = to_point(value, type_)
    return point, OUTERMOST if point is None else None


def _heartbeat(stream: Stream, attributes: Mapping[str, Promised], heartbeat: Heartbeat) -> None:
    name = (heartbeat.on or stream.timestamp.column or "").lower()
    attribute = attributes.get(name)
    if attribute is None:
        raise ValueError(f"'{stream.name}' promises nothing about '{name}' that a heartbeat could renew")
    point = to_point(checked(heartbeat.time, attribute.type, stream.name), attribute.type)
    if point is None:
        raise ValueError(f"'{stream.name}': a heartbeat needs a time")
    attribute.renew(at(point))


def _promises(scanned: Scanned, attributes: Mapping[str, Promised]) -> dict[Attribute, Instant]:
    """Return the promises on each attribute, and on the timestamp under any name."""
    column = scanned.stream.timestamp.column
    promises: dict[Attribute, Instant] = {
        attribute_of(ColumnRef(scanned.alias, name)): promised.promise
        for name, promised in attributes.items()
    }
    if column is not None:
        promises[TIMESTAMP_ITSELF] = attributes[column.lower()].promise
    return promises
