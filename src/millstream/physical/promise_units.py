"""Promises of a stream of the catalog, in the units in which kernels count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from millstream.catalog.entries import (
    HeartbeatPromise,
    OrderedPerPromise,
    Promise,
    PunctuationPromise,
    SlackPromise,
    Stream,
    TimestampKind,
)
from millstream.kernels.windows.double_slide_arithmetic import nearest
from millstream.progress.disorder_clauses import (
    Clause,
    Heartbeats,
    InOrder,
    OrderedPer,
    Promises,
    Punctuated,
    RowSlack,
)
from millstream.quantity import Distance, Duration, Quantity, Rows
from millstream.types import Kind, Type


def promises_of(stream: Stream | None, kind: Type) -> Promises:
    """Return the promises about a stream's timestamp.

    A table and the results of another stage have none.
    """
    if stream is None:
        return Promises(())
    if stream.timestamp.kind is not TimestampKind.EXTERNAL:
        return Promises((InOrder(), Heartbeats()))
    promises = _promises(stream.own_promises, kind)
    if promises.clauses == (Heartbeats(),):
        return replace(promises, clauses=(InOrder(), *promises.clauses))
    return promises


def promises_on(stream: Stream, attribute: str, kind: Type) -> Promises:
    """Return the promises of clauses about another attribute of a stream."""
    clauses = stream.promises_on_others.get(attribute, ())
    return _promises(clauses, kind) if clauses else Promises(())


def _promises(given: Iterable[Promise], kind: Type) -> Promises:
    clauses: list[Clause] = []
    generous = False
    for promise in given:
        match promise:
            case SlackPromise(Rows(count), generous_):
                clauses.append(RowSlack(count))
                generous = generous_
            case SlackPromise(amount, generous_):
                clauses.append(InOrder(units(amount, kind)))
                generous = generous_
            case OrderedPerPromise(_, idle):
                clauses.append(OrderedPer(None if idle is None else units(idle, kind)))
            case PunctuationPromise(_, per):
                clauses.append(Punctuated(bool(per)))
            case HeartbeatPromise():
                pass
    # Heartbeats come only to streams that ask for them, but the rule for them is there for all.
    return Promises((*clauses, Heartbeats()), generous)


def units(amount: Quantity, kind: Type) -> int | float:
    """An amount of time or distance as a number on an attribute of this type."""
    match amount:
        case Duration(microseconds):
            return microseconds
        case Distance(value):
            return _distance(value, kind)
        case Rows(count):
            return count


def _distance(value: Decimal, kind: Type) -> int | float:
    match kind.kind:
        case Kind.DOUBLE:
            return float(value)
        case Kind.FLOAT:
            return nearest(Fraction(value), single=True)
        case Kind.DECIMAL:
            return int(value.scaleb(kind.scale))
        case _:
            return int(value)
