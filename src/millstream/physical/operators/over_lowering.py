"""Calls with OVER in the terms of kernels: ranking functions, and frames that have no beginning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from millstream.analysis.queries.call_nodes import AggregateCall, Frame, OverCall, ranks_along
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.catalog.builtin_aggregates import accumulator_row, builtin_aggregate, function_of
from millstream.physical import expressions as ex
from millstream.quantity import Duration, Rows
from millstream.types import BIGINT, BOOLEAN, Type

_ALL = Frame(rows=True, preceding=None)
_PEERS = Frame(rows=False, preceding=Duration())


@dataclass
class LoweredCalls:
    """Calls in levels, of which each uses results of those below, and values computed from their results."""

    levels: list[list[OverCall]] = field(default_factory=list)
    values: dict[ColumnRef, Expr] = field(default_factory=dict)
    """Results of calls that are computed from those of others."""

    @classmethod
    def of(cls, calls: Iterable[OverCall]) -> LoweredCalls:
        lowered = cls()
        for call in calls:
            if ranks_along(call.call) or _has_no_beginning(call):
                value = lowered._value(call)
                lowered.values[call.call.result] = _as(value, call.call.type)
            else:
                lowered._call(call, 0)
        return lowered

    def _call(self, call: OverCall, level: int) -> ColumnRef:
        """Add a call that kernels know; return the column of its result."""
        while len(self.levels) <= level:
            self.levels.append([])
        self.levels[level].append(call)
        return call.call.result

    def _made(self, over: OverCall, frame: Frame, call: AggregateCall, level: int = 0) -> Expr:
        """Return the result of a further call with the partitions of ``over``, which is made once."""
        new = replace(over, call=call, frame=frame)
        for known in self.levels[level] if level < len(self.levels) else ():
            if replace(new, call=replace(call, result=known.call.result)) == known:
                return of_column(known.call.result)
        number = sum(map(len, self.levels))
        result = ColumnRef("", f"__over{number}", call.type)
        return of_column(self._call(replace(new, call=replace(call, result=result)), level))

    def _value(self, over: OverCall) -> Expr:
        match over.call.name:
            case "row_number":
                return self._made(over, _ALL, _count())
            case "rank":
                rows, peers = self._made(over, _ALL, _count()), self._made(over, _PEERS, _count())
                return Expr((*rows.parts, " - ", *peers.parts, " + 1"), BIGINT)
            case "dense_rank":
                peers = self._made(over, _PEERS, _count())
                return self._made(over, _ALL, _count(_equals(peers, 1)), 1)
            case "lag" | "lead":
                return self._other_row(over)
            case "nth_value":
                return self._nth(over)
            case _:
                return self._without_beginning(over, over.call, 0)

    def _other_row(self, over: OverCall) -> Expr:
        """Return the value of the row so far before or after: that of a frame with a single row."""
        call = over.call
        value, *default = call.arguments
        distance = _number(call) if call.name == "lag" else -_number(call)
        first = _value_of("first", value)
        if call.ignore_nulls:
            frame = Frame(rows=True, preceding=None, until=Rows(distance))
            last = _value_of("last", value, ignore_nulls=True)
            found = self._without_beginning(replace(over, frame=frame), last, 0)
            if not default:
                return found
            return Expr(("coalesce(", *found.parts, ", ", *_as(default[0], call.type).parts, ")"), call.type)
        frame = Frame(rows=True, preceding=Rows(distance), until=Rows(distance) if distance else None)
        found = self._made(over, frame, first)
        if not default:
            return found
        count = self._made(over, frame, _count())
        missing = _as(default[0], call.type).parts
        parts = ("CASE WHEN ", *count.parts, " = 0 THEN ", *missing, " ELSE ", *found.parts, " END")
        return Expr(parts, call.type)

    def _nth(self, over: OverCall) -> Expr:
        """Return the value of the n-th row of the partition, if the frame reaches it.

        A frame of rows that begins behind the first row has its n-th row at a fixed distance from the current
        one.
        """
        call, frame, number = over.call, over.frame, _number(over.call)
        value = call.arguments[0]
        counted = _count(ex.is_not_null(value)) if call.ignore_nulls else _count()
        place = self._made(over, _ALL, counted)
        nth = replace(
            _value_of("first", value, ignore_nulls=call.ignore_nulls), filter=_equals(place, number)
        )
        whole = Frame(frame.rows, None, frame.until)
        found = self._without_beginning(replace(over, frame=whole), nth, 1)
        if frame.preceding is None:
            return found
        assert isinstance(frame.preceding, Rows), "other frames have been refused"
        until = 0 if frame.until is None else int(getattr(frame.until, "count", 0))
        distance = frame.preceding.count - number + 1
        within = ex.constant("NULL", value.type)
        if distance >= until:
            row = Frame(rows=True, preceding=Rows(distance), until=Rows(distance) if distance else None)
            within = self._made(over, row, _value_of("first", value))
        size = str(frame.preceding.count)
        parts = (
            "CASE WHEN ",
            *place.parts,
            f" > {size} THEN ",
            *within.parts,
            " ELSE ",
            *found.parts,
            " END",
        )
        return Expr(parts, call.type)

    def _without_beginning(self, over: OverCall, call: AggregateCall, level: int) -> Expr:
        """Return an aggregate of all rows up to a bound: the running aggregate of the row at the bound."""
        running = self._made(over, _ALL, call, level)
        until = over.frame.until
        if until is None:
            return running
        if over.frame.follows:
            current = Rows(0) if over.frame.rows else Duration()
            frame = Frame(over.frame.rows, current, until)
        else:
            frame = Frame(over.frame.rows, until if over.frame.rows else None, until)
        found = self._made(over, frame, _value_of("last", running), level + 1)
        row = builtin_aggregate(call.name)
        assert row is not None, "other aggregates have been refused"
        if accumulator_row(function_of(row, len(call.arguments))).empty is None:
            return found
        return Expr(("coalesce(", *found.parts, ", 0)"), found.type)


def _has_no_beginning(over: OverCall) -> bool:
    return over.frame.preceding is None and over.frame.until is not None


def _as(value: Expr, type_: Type) -> Expr:
    return ex.cast(value, type_) if type_.is_known else value


def _number(call: AggregateCall) -> int:
    """Return the distance of lag and lead, or the place of nth_value."""
    assert call.constants, "the analysis has stored it"
    return int(call.constants[0])


def _equals(value: Expr, number: int) -> Expr:
    return Expr((*value.parts, f" = {number}"), BOOLEAN)


def _count(condition: Expr | None = None) -> AggregateCall:
    return _aggregate("count", (), BIGINT, condition)


def _value_of(name: str, value: Expr, *, ignore_nulls: bool = False) -> AggregateCall:
    return replace(_aggregate(name, (value,), value.type), ignore_nulls=ignore_nulls)


def _aggregate(
    name: str, arguments: tuple[Expr, ...], type_: Type, condition: Expr | None = None
) -> AggregateCall:
    text = f"{name}({', '.join(map(str, arguments)) or '*'})"
    result = ColumnRef("", "", type_)
    return AggregateCall(name, arguments, type_, result, filter=condition, text=text, constants=())
