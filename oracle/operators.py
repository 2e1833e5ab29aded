"""Operators on single tuples, joins with tables, and the union of streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from millstream.analysis.types.coercion import common_type
from millstream.plan.nodes import (
    Extend,
    Filter,
    Generate,
    GroupingSets,
    Project,
    Rename,
    StreamUnion,
    TableJoin,
)
from millstream.types import TIMESTAMP, Type
from oracle.errors import NotInterpreted
from oracle.relations import TIMESTAMP_ITSELF, Attribute, Frontier, Record, Relation, attribute_of, slowest
from oracle.values.casts import cast
from oracle.values.expressions import compiled, holds
from oracle.values.points import NOTHING, from_point, to_point
from oracle.values.values import Value, same_key


def rename(node: Rename, relation: Relation) -> Relation:
    alias = node.alias.lower()
    renamed = relation.renamed(lambda old: None if old is None else (alias, old[1]))
    return renamed.changed(renamed.records, node.schema)


def filter_(node: Filter, relation: Relation) -> Relation:
    conditions = [holds(condition, relation.schema) for condition in node.conditions]
    return relation.changed(
        record for record in relation.records if all(condition(record.values) for condition in conditions)
    )


def grouping_sets(node: GroupingSets, relation: Relation) -> Relation:
    """Repeat each record for every grouping set, with its number."""
    records = [
        replace(record, values=(*record.values, number), order=(*record.order, number))
        for record in relation.records
        for number in range(node.count)
    ]
    return relation.changed(records, node.schema)


def project(node: Project, relation: Relation) -> Relation:
    outputs = [compiled(output.expr, relation.schema) for output in node.outputs]
    kept = {
        attribute_of(output.expr.column): attribute_of(column)
        for output, column in zip(node.outputs, node.schema, strict=True)
        if output.expr.column is not None
    }
    renamed = relation.renamed(kept.get)
    records = (
        replace(record, values=tuple(output(record.values) for output in outputs))
        for record in renamed.records
    )
    return renamed.changed(records, node.schema)


def generate(node: Generate, relation: Relation) -> Relation:
    """Return each tuple once for every element of its list."""
    items = compiled(node.items, relation.schema)
    records: list[Record] = []
    for record in relation.records:
        given = items(record.values)
        found: list[tuple[Value, ...]] = [(item, place) for place, item in enumerate(given or ())]
        if not found and node.outer:
            found = [(None, None)]
        width = 1 if node.position is None else 2
        for place, row in enumerate(found):
            values = (*record.values, *row[:width])
            records.append(replace(record, values=values, order=(*record.order, place)))
    return relation.changed(records, node.schema)


def extend(node: Extend, relation: Relation) -> Relation:
    outputs = [compiled(output.expr, relation.schema) for output in node.outputs]
    records = (
        replace(record, values=(*record.values, *(output(record.values) for output in outputs)))
        for record in relation.records
    )
    return relation.changed(records, node.schema)


# ---------------------------------------------------------------- joins with tables


def table_join(node: TableJoin, left: Relation, right: Relation) -> Relation:
    """Join each tuple with all rows of the table; the stream may be on either side."""
    if node.kind == "full":
        raise NotInterpreted("a FULL join")
    schema = (*left.schema, *right.schema)
    condition = None if node.condition is None else holds(node.condition, schema)
    mirrored = node.kind == "right" or (right.time_type is not None and node.kind in ("inner", "cross"))
    outer, inner = (right, left) if mirrored else (left, right)
    if inner.time_type is not None:
        raise NotInterpreted(f"a {node.kind.upper()} join that keeps the rows of a table")

    def matches(record: Record) -> Iterator[tuple[int, tuple[Value, ...]]]:
        for number, row in enumerate(inner.records):
            pair = (row.values, record.values) if mirrored else (record.values, row.values)
            values = (*pair[0], *pair[1])
            if condition is None or condition(values):
                yield number, values

    records: list[Record] = []
    for record in outer.records:
        found = list(matches(record))
        match node.kind:
            case "semi":
                records += [record] if found else []
            case "anti":
                records += [] if found else [record]
            case "inner" | "cross" | "left" | "right":
                for number, values in found:
                    records.append(replace(record, values=values, order=(*record.order, number)))
                if not found and node.kind in ("left", "right"):
                    nulls = (None,) * len(inner.schema)
                    values = (*nulls, *record.values) if mirrored else (*record.values, *nulls)
                    records.append(replace(record, values=values, order=(*record.order, 0)))
            case _:
                raise NotInterpreted(f"a {node.kind.upper()} join")
    return outer.changed(records, left.schema if node.kind in ("semi", "anti") else schema)


# ---------------------------------------------------------------- union


def stream_union(node: StreamUnion, left: Relation, right: Relation) -> Relation:
    """Merge both streams; without ALL, tuples equal in every column and in timestamp are one tuple."""
    assert left.time_type is not None
    assert right.time_type is not None
    time_type = TIMESTAMP if node.latent else common_type(left.time_type, right.time_type)
    assert time_type is not None
    records = [
        *(_united(record, left, node, time_type) for record in left.records),
        *(_united(record, right, node, time_type) for record in right.records),
    ]
    if not node.all:
        records = _distinct(records, node)
    frontiers = {} if node.latent else _frontiers(node, left, right)
    return Relation(
        node.schema,
        records,
        time_type,
        latent=node.latent,
        ended=left.ended and right.ended,
        frontiers=frontiers,
    )


def _united(record: Record, side: Relation, node: StreamUnion, time_type: Type) -> Record:
    values = tuple(
        cast(value, column.type, field.type)
        for value, column, field in zip(record.values, side.schema, node.fields, strict=True)
    )
    if node.latent:
        return replace(record, values=values, time=None)
    # A DOUBLE beside a BIGINT makes the timestamp a DOUBLE.
    time = record.time
    if time is not None and side.time_type is not None and side.time_type != time_type:
        time = to_point(cast(from_point(time, side.time_type), side.time_type, time_type), time_type)
    promised = record.promised
    if promised is not None:
        promised = {TIMESTAMP_ITSELF: promised.get(TIMESTAMP_ITSELF, NOTHING)} | {
            attribute_of(new): promised[attribute_of(old)]
            for old, new in zip(side.schema, node.schema, strict=True)
            if attribute_of(old) in promised
        }
    return replace(record, values=values, time=time, promised=promised)


def _distinct(records: list[Record], node: StreamUnion) -> list[Record]:
    """Return one tuple of each value: one on time rather than a late one, and then the first."""
    if node.latent and any(record.stamp is None for record in records):
        raise NotInterpreted("UNION without ALL of latent tuples that have no recorded stamps")
    kept: dict[Any, Record] = {}
    for record in sorted(records, key=_precedence):
        time = record.stamp if node.latent else record.time
        kept.setdefault((same_key(record.values), time), record)
    return list(kept.values())


def _precedence(record: Record) -> tuple[Any, ...]:
    promised = NOTHING if record.promised is None else record.promised.get(TIMESTAMP_ITSELF, NOTHING)
    return promised, record.order


def _frontiers(node: StreamUnion, left: Relation, right: Relation) -> dict[Attribute, Frontier]:
    """Return the promises common to both sides, on the timestamp and on columns in the same place."""
    pairs: list[tuple[Attribute, Attribute, Attribute]] = [(TIMESTAMP_ITSELF,) * 3]
    columns = zip(left.schema, right.schema, node.schema, strict=True)
    pairs += [(attribute_of(a), attribute_of(b), attribute_of(c)) for a, b, c in columns]
    return {
        new: slowest([left.frontiers[a], right.frontiers[b]])
        for a, b, new in pairs
        if a in left.frontiers and b in right.frontiers
    }
