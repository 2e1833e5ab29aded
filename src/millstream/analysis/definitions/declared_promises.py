"""Clauses of CREATE STREAM about disorder: SLACK, ORDERED PER, PUNCTUATED BY and HEARTBEAT."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.quantities import positive, positive_duration, positive_on
from millstream.catalog import Catalog
from millstream.catalog.entries import (
    HeartbeatPromise,
    OrderedPerPromise,
    Promise,
    PunctuationPromise,
    SlackPromise,
    Timestamp,
    TimestampKind,
)
from millstream.errors import Source, did_you_mean
from millstream.quantity import Duration, Rows
from millstream.syntax import nodes
from millstream.types import UNKNOWN, Field, Kind

IMPLIED_HEARTBEAT = Duration(1_000_000)
"""Interval of the heartbeats of streams that are stamped on arrival."""


def promises_of(
    node: nodes.CreateStream,
    schema: tuple[Field, ...],
    timestamp: Timestamp,
    catalog: Catalog,
    source: Source,
) -> tuple[Promise, ...]:
    """Return the promises of a stream about its timestamp and other attributes."""
    promises: list[Promise] = []
    seen: dict[tuple[type, str], exp.Expr] = {}
    for clause in node.args.get("clauses") or ():
        field = _promised_field(clause, schema, timestamp)
        # A heartbeat may stand beside another promise; two promises of one kind contradict each other.
        group = nodes.Heartbeat if isinstance(clause, nodes.Heartbeat) else nodes.Slack
        if (group, field.name) in seen:
            raise error_at(clause, f"two clauses say how '{field.name}' progresses", hint="keep one of them")
        seen[group, field.name] = clause
        if isinstance(clause, nodes.Heartbeat) and clause.this is None:
            _check_none(clause, timestamp)
            continue
        on = clause.args.get("on")
        promises.append(_promise(clause, field, schema, on.name if on else None, catalog, source))
    if timestamp.kind is TimestampKind.INTERNAL and (nodes.Heartbeat, timestamp.column) not in seen:
        promises.append(HeartbeatPromise(IMPLIED_HEARTBEAT, implied=True))
    return tuple(promises)


def _check_none(clause: nodes.Heartbeat, timestamp: Timestamp) -> None:
    """Refuse HEARTBEAT NONE where no heartbeat is implied."""
    if timestamp.kind is not TimestampKind.INTERNAL or clause.args.get("on") is not None:
        raise error_at(
            clause,
            "HEARTBEAT NONE goes with ORDER BY current_time, which implies a heartbeat",
            hint="leave it out: without HEARTBEAT there is none",
        )


def _promised_field(clause: exp.Expr, schema: tuple[Field, ...], timestamp: Timestamp) -> Field:
    on = clause.args.get("on")
    if on is not None:
        field = declared_field(on, schema)
        if field is None:
            raise error_at(
                on, f"unknown column '{on.name}' in ON", hint=did_you_mean(on.name, [f.name for f in schema])
            )
        if not field.type.is_ordered:
            raise error_at(on, f"nothing can be promised about '{field.name}', which is of type {field.type}")
        return field
    if timestamp.column is None:
        raise error_at(
            clause, "a stream without a timestamp promises nothing", hint="add ORDER BY, or ON attribute"
        )
    return Field(timestamp.column, timestamp.type or UNKNOWN)


def _promise(
    clause: exp.Expr,
    field: Field,
    schema: tuple[Field, ...],
    on: str | None,
    catalog: Catalog,
    source: Source,
) -> Promise:
    match clause:
        case nodes.Slack():
            amount = positive(clause.this, "SLACK")
            if not isinstance(amount, Rows):
                amount = positive_on(clause.this, "SLACK", field.name, field.type)
            return SlackPromise(amount, clause.args.get("mode") == "GENEROUS", on)
        case nodes.OrderedPer():
            idle = clause.args.get("idle")
            if idle is not None and field.type.is_numeric:
                raise error_at(
                    idle,
                    f"IDLE AFTER is a time, but '{field.name}' is of type {field.type}",
                    hint="order the stream by a timestamp, or leave IDLE AFTER out",
                )
            return OrderedPerPromise(
                _names(clause.expressions, schema),
                positive_duration(idle, "IDLE AFTER") if idle is not None else None,
                on,
            )
        case nodes.PunctuatedBy():
            scope = Scope([ScopeRelation("", schema)])
            resolver = Resolver(scope, catalog, source, on_subquery=lambda query, _: UNKNOWN)
            predicate = resolver.condition(clause.this, "PUNCTUATED BY")
            return PunctuationPromise(predicate, _names(clause.args.get("per") or (), schema), on)
        case _:
            if field.type.is_known and field.type.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
                raise error_at(
                    clause, f"a heartbeat follows the clock, but '{field.name}' is of type {field.type}"
                )
            return HeartbeatPromise(positive_duration(clause.this, "HEARTBEAT"), on)


def _names(named: Sequence[exp.Expr], schema: tuple[Field, ...]) -> tuple[str, ...]:
    names = []
    for node in named:
        field = declared_field(node, schema)
        if field is None:
            raise error_at(
                node, f"unknown column '{node.name}'", hint=did_you_mean(node.name, [f.name for f in schema])
            )
        names.append(field.name)
    return tuple(names)


def declared_field(node: exp.Expr, schema: tuple[Field, ...]) -> Field | None:
    """Return the column that a clause names."""
    return next((f for f in schema if f.name.lower() == node.name.lower()), None)
