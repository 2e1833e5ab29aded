"""Promises of a source partition about its future tuples, and the tuples that break them.

A promise about an attribute is a point: no more tuples before it. What the clauses of a stream promise:

| clause | promise, from what has come so far in the same source partition |
| --- | --- |
| (none) | the largest value seen |
| SLACK INTERVAL t | the largest value seen, minus t |
| SLACK n ROWS | the (n+1)-th largest value seen; nothing before there are so many |
| ORDERED PER (cols) | the least, over the sub-streams seen, of their largest values |
| ... IDLE AFTER t | the same without the sub-streams that are more than t behind the largest value of all |
| PUNCTUATED BY (p) | the largest value of a punctuation; everything, once one has NULL |
| ... PER (cols) | the least, over the sub-streams seen that have not ended, of what they have promised |
| HEARTBEAT | the largest heartbeat |

*Seen* is every tuple that came and was no bad record, late ones too: they have a rank for SLACK n ROWS, and a
sub-stream that begins with a late tuple has been seen. A sub-stream that has sent data but no punctuation has
promised nothing. When all sub-streams of PER have ended, nothing new is promised: another may begin.

Combined: a clause about an attribute and a heartbeat both hold, so their promise is the larger one. And a
promise once made stands: what counts is the largest promise so far, whatever a new sub-stream would make of
it. Promises about different attributes have nothing to do with one another. The timestamp is always promised
something (in order, if no clause says better), another attribute only what a clause says ``ON`` it.

A tuple is late if it breaks a promise about any attribute, made by what came before it: it is before the
promise of the source partition, or before what its own sub-stream has promised (the largest value of that
sub-stream, for ORDERED PER; its punctuation, for PUNCTUATED BY; anything, once it has ended). A value equal
to the promise keeps it. NULL in an attribute that is not the timestamp breaks nothing and shows nothing.
"""

from __future__ import annotations

import bisect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.entries import (
    HeartbeatPromise,
    OrderedPerPromise,
    Promise,
    PunctuationPromise,
    SlackPromise,
    Stream,
)
from millstream.quantity import Duration, Quantity, Rows
from millstream.types import Type
from oracle.errors import NotInterpreted
from oracle.values.expressions import holds
from oracle.values.points import (
    EVERYTHING,
    NOTHING,
    Instant,
    Point,
    at,
    earlier,
    is_everything,
    last_word,
    to_point,
)
from oracle.values.values import Value, same_key

Values = tuple[Value, ...]


class Rule(ABC):
    """Promise of one clause about one attribute of one source partition."""

    @abstractmethod
    def see(self, point: Point, values: Values) -> None:
        """Take note of a tuple."""

    @abstractmethod
    def progress(self) -> Instant:
        """Return the present promise."""

    def breaks(self, point: Point, values: Values) -> bool:
        """Return whether a tuple breaks the promise of its own sub-stream."""
        return False


class NoRule(Rule):
    """No clause: heartbeats only."""

    def see(self, point: Point, values: Values) -> None:
        """Ignore the tuple."""

    def progress(self) -> Instant:
        return NOTHING


class Slack(Rule):
    """SLACK INTERVAL t, and (without an amount) the default order."""

    def __init__(self, amount: Quantity | None, type_: Type) -> None:
        self._amount, self._type = amount, type_
        self._largest: Point | None = None

    def see(self, point: Point, values: Values) -> None:
        self._largest = point if self._largest is None else max(self._largest, point)

    def progress(self) -> Instant:
        if self._largest is None:
            return NOTHING
        return at(self._largest if self._amount is None else earlier(self._largest, self._amount, self._type))


class SlackRows(Rule):
    """SLACK n ROWS."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._seen: list[Point] = []

    def see(self, point: Point, values: Values) -> None:
        bisect.insort(self._seen, point)

    def progress(self) -> Instant:
        return at(self._seen[-self._rows - 1]) if len(self._seen) > self._rows else NOTHING


class OrderedPer(Rule):
    """ORDERED PER (cols) [IDLE AFTER t]."""

    def __init__(self, columns: Sequence[int], idle_after: Duration | None, type_: Type) -> None:
        if idle_after is not None and not type_.is_time:
            raise NotInterpreted(f"IDLE AFTER {idle_after} on an attribute of type {type_}")
        self._columns, self._idle_after, self._type = columns, idle_after, type_
        self._largest: dict[Values, Point] = {}

    def see(self, point: Point, values: Values) -> None:
        key = _key(values, self._columns)
        self._largest[key] = max(point, self._largest.get(key, point))

    def progress(self) -> Instant:
        if not self._largest:
            return NOTHING
        counted = list(self._largest.values())
        if self._idle_after is not None:
            since = earlier(max(counted), self._idle_after, self._type)
            counted = [point for point in counted if point >= since]
        return at(min(counted))

    def breaks(self, point: Point, values: Values) -> bool:
        return point < self._largest.get(_key(values, self._columns), point)


class Punctuated(Rule):
    """PUNCTUATED BY (predicate) [PER (cols)]; without PER the source partition is one sub-stream."""

    def __init__(self, is_punctuation: Callable[[Values], bool], per: Sequence[int]) -> None:
        self.is_punctuation = is_punctuation
        self._per = per
        self._promised: dict[Values, Instant] = {}

    def see(self, point: Point, values: Values) -> None:
        self._promised.setdefault(_key(values, self._per), NOTHING)

    def punctuate(self, point: Point | None, values: Values) -> None:
        """Take note of a promise; one without a point ends the sub-stream."""
        key = _key(values, self._per)
        promise = EVERYTHING if point is None else at(point)
        self._promised[key] = max(promise, self._promised.get(key, NOTHING))

    def progress(self) -> Instant:
        if not self._per:
            return self._promised.get((), NOTHING)
        alive = [promise for promise in self._promised.values() if promise != EVERYTHING]
        return min(alive, default=NOTHING)

    def breaks(self, point: Point, values: Values) -> bool:
        return at(point) < self._promised.get(_key(values, self._per), NOTHING)


def _key(values: Values, columns: Sequence[int]) -> Values:
    return same_key(values[i] for i in columns)


@dataclass
class Promised:
    """An attribute of a source partition, its rule, and the largest promise so far."""

    position: int
    type: Type
    rule: Rule
    generous: bool = False
    promise: Instant = NOTHING

    def is_broken_by(self, values: Values) -> bool:
        point = to_point(values[self.position], self.type)
        if point is None:
            return False
        return at(point) < self.promise or self.rule.breaks(point, values)

    def see(self, values: Values) -> None:
        point = to_point(values[self.position], self.type)
        if point is not None:
            self.rule.see(point, values)
        self.renew()

    def punctuated_by(self, values: Values) -> bool:
        """Return whether a tuple is a punctuation of this attribute, and apply it."""
        if not isinstance(self.rule, Punctuated) or not self.rule.is_punctuation(values):
            return False
        self.rule.punctuate(to_point(values[self.position], self.type), values)
        self.renew()
        return True

    def renew(self, heartbeat: Instant = NOTHING) -> None:
        """Renew the promise; after the last promise of everything it does not change."""
        if is_everything(self.promise):
            return
        renewed = max(self.promise, self.rule.progress(), heartbeat)
        self.promise = last_word(self.promise) if is_everything(renewed) else renewed


def promised_attributes(stream: Stream) -> dict[str, Promised]:
    """Return the promised attributes of a stream, as a source partition begins."""
    timestamp = stream.timestamp.column
    positions = {field.name.lower(): i for i, field in enumerate(stream.schema)}
    clauses: dict[str, list[Promise]] = {timestamp.lower(): []} if timestamp else {}
    for clause in stream.promises:
        on = clause.on or timestamp
        assert on is not None
        clauses.setdefault(on.lower(), []).append(clause)
    promised = {}
    for name, given in clauses.items():
        type_ = stream.schema[positions[name]].type
        # Analysis allows one clause for an attribute, and a heartbeat beside it.
        said = next((c for c in given if not isinstance(c, HeartbeatPromise)), None)
        in_order = timestamp is not None and name == timestamp.lower()
        rule = _rule(said, stream, type_, positions, in_order)
        generous = isinstance(said, SlackPromise) and said.generous
        promised[name] = Promised(positions[name], type_, rule, generous)
    return promised


def _rule(
    clause: Promise | None, stream: Stream, type_: Type, positions: Mapping[str, int], in_order: bool
) -> Rule:
    match clause:
        case SlackPromise(Rows(count)):
            return SlackRows(count)
        case SlackPromise(amount):
            return Slack(amount, type_)
        case OrderedPerPromise(columns, idle_after):
            return OrderedPer([positions[c.lower()] for c in columns], idle_after, type_)
        case PunctuationPromise(predicate, per):
            assert isinstance(predicate, Expr)
            schema = [ColumnRef("", field.name, field.type) for field in stream.schema]
            return Punctuated(holds(predicate, schema), [positions[c.lower()] for c in per])
        case _:
            return Slack(None, type_) if in_order else NoRule()
