"""What a stream of the catalog promises, in the units in which kernels count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from pyspark.sql import types as T  # noqa: N812 (Spark's own custom)

from millstream.catalog.entries import (
    HeartbeatPromise,
    OrderedPerPromise,
    Promise,
    PunctuationPromise,
    SlackPromise,
    Stream,
    TimestampKind,
)
from millstream.errors import NotExecutableError
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


def promises_of(stream: Stream | None, kind: T.DataType) -> Promises:
    """What is promised about a stream's timestamp.

    A table, or what comes from another stage, has nothing left to promise.
    """
    if stream is None:
        return Promises(())
    if stream.timestamp.kind is not TimestampKind.EXTERNAL:
        return Promises((InOrder(), Heartbeats()))
    promises = _promises(stream.own_promises, kind)
    if promises.clauses == (Heartbeats(),):
        return replace(promises, clauses=(InOrder(), *promises.clauses))
    return promises


def promises_on(stream: Stream, attribute: str, kind: T.DataType) -> Promises:
    """What is promised about another attribute of a stream: only what a clause says."""
    clauses = stream.promises_on_others.get(attribute, ())
    return _promises(clauses, kind) if clauses else Promises(())


def _promises(given: Iterable[Promise], kind: T.DataType) -> Promises:
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


def units(amount: Quantity, kind: T.DataType) -> int | float:
    """An amount of time or distance as a number on an attribute of this type."""
    match amount:
        case Duration(microseconds, 0):
            return microseconds
        case Duration():
            raise NotExecutableError(
                f"{amount} has no fixed length, so nothing can be measured by it yet",
                hint="use days: a month has 28 to 31 of them",
            )
        case Distance(value):
            return _distance(value, kind)
        case Rows(count):
            return count


def _distance(value: Decimal, kind: T.DataType) -> int | float:
    match kind:
        case T.DoubleType():
            return float(value)
        case T.FloatType():
            return nearest(Fraction(value), single=True)
        case T.DecimalType():
            return int(value.scaleb(kind.scale))
        case _:
            return int(value)
