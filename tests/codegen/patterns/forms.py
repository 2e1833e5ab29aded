"""Patterns written by hand, and what they match by definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from millstream.ir import typed_nodes
from millstream.ir.pattern import Element, End, Measure, Pattern, Place
from millstream.ir.typed_nodes import Aggregation, Call, Cast, Column, Constant, Expr, GroupColumn
from millstream.types import BIGINT, BOOLEAN, DOUBLE, STRING, Field, Type
from tests.codegen.patterns.aggregates import BY_DEFINITION, user

Row = Mapping[str, Any]

# ---------------------------------------------------------------- writing patterns


@dataclass(frozen=True, eq=False)
class Term:
    """An expression that Python's operators make larger ones of."""

    expr: Expr

    def __add__(self, other: Any) -> Term:
        return self._made("+", other, self.expr.type)

    def __sub__(self, other: Any) -> Term:
        return self._made("-", other, self.expr.type)

    def __mul__(self, other: Any) -> Term:
        return self._made("*", other, self.expr.type)

    def __truediv__(self, other: Any) -> Term:
        return self._made("/", other, DOUBLE)

    def __lt__(self, other: Any) -> Term:
        return self._made("<", other, BOOLEAN)

    def __le__(self, other: Any) -> Term:
        return self._made("<=", other, BOOLEAN)

    def __gt__(self, other: Any) -> Term:
        return self._made(">", other, BOOLEAN)

    def __ge__(self, other: Any) -> Term:
        return self._made(">=", other, BOOLEAN)

    def __eq__(self, other: Any) -> Term:  # type: ignore[override]
        return self._made("=", other, BOOLEAN)

    def __ne__(self, other: Any) -> Term:  # type: ignore[override]
        return self._made("<>", other, BOOLEAN)

    def __or__(self, other: Any) -> Term:
        return self._made("or", other, BOOLEAN)

    __hash__ = None  # type: ignore[assignment]

    def _made(self, name: str, other: Any, type_: Type) -> Term:
        mine = self.expr
        theirs = other.expr if isinstance(other, Term) else Constant(other, _type_of(other))
        if name == "/" or DOUBLE in (mine.type, theirs.type):
            mine, theirs = (e if e.type == DOUBLE else Cast(e, DOUBLE) for e in (mine, theirs))
            type_ = DOUBLE if type_ == BIGINT else type_
        return Term(Call(name, (mine, theirs), type_))


def _type_of(value: Any) -> Type:
    return {bool: BOOLEAN, int: BIGINT, float: DOUBLE, str: STRING}[type(value)]


class Variable:
    """``x.v``, ``x.previous.v``, ``x.first.v`` and ``x.last.v``."""

    def __init__(self, patterns: Patterns, place: Place) -> None:
        self._patterns, self._place = patterns, place

    @property
    def previous(self) -> Variable:
        return Variable(self._patterns, replace(self._place, back=self._place.back + 1))

    @property
    def first(self) -> Variable:
        return Variable(self._patterns, replace(self._place, end=End.FIRST))

    @property
    def last(self) -> Variable:
        return Variable(self._patterns, replace(self._place, end=End.LAST))

    def __getattr__(self, name: str) -> Term:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._patterns.column(self._place, name)


class Patterns:
    """Makes one: ``AS (X, *Y)`` over some columns, then conditions, then results."""

    def __init__(self, elements: str, **columns: Type) -> None:
        self._names = elements.replace("*", "").split()
        self._stars = [name.startswith("*") for name in elements.split()]
        self._fields = tuple(Field(name, type_) for name, type_ in columns.items())
        self._places: list[Place] = []
        self._measures: list[Measure] = []

    def variables(self) -> list[Variable]:
        return [Variable(self, Place(i)) for i in range(len(self._names))]

    def column(self, place: Place, name: str) -> Term:
        if place not in self._places:
            self._places.append(place)
        index = [f.name for f in self._fields].index(name)
        return Term(Column(self._places.index(place), index, self._fields[index].type))

    def measure(
        self,
        name: str,
        variable: Variable,
        column: str = "",
        *,
        running: bool = False,
        rows: int | None = None,
        where: Term | None = None,
    ) -> Term:
        """An aggregate; ``where`` is its FILTER, with which the base version sees the content of a window."""
        body = user(name) if name in BY_DEFINITION else None
        arguments = (getattr(variable, column).expr,) if column else ()
        type_ = DOUBLE if name == "avg" else arguments[0].type if name in ("min", "max", "sum") else BIGINT
        wanted = None if where is None else where.expr
        aggregation = Aggregation(name, arguments, type_, user=body, filter=wanted)
        measure = Measure(variable._place.element, aggregation, not running, rows)
        if measure not in self._measures:
            self._measures.append(measure)
        return Term(GroupColumn(self._measures.index(measure), type_))

    def made(self, where: Sequence[Term], select: Sequence[Term]) -> Pattern:
        per_tuple: list[list[Expr]] = [[] for _ in self._names]
        final: list[list[Expr]] = [[] for _ in self._names]
        for term in where:
            owner = max(element for element, _ in self._mentions(term.expr))
            at_the_end = all(is_final for element, is_final in self._mentions(term.expr) if element == owner)
            (final if at_the_end else per_tuple)[owner].append(term.expr)
        elements = [
            Element(name, star, tuple(per_tuple[i]), tuple(final[i]))
            for i, (name, star) in enumerate(zip(self._names, self._stars, strict=True))
        ]
        return Pattern(
            self._fields,
            tuple(elements),
            tuple(self._places),
            tuple(self._measures),
            tuple(term.expr for term in select),
            tuple(Field(f"r{i}", term.expr.type) for i, term in enumerate(select)),
        )

    def _mentions(self, expr: Expr) -> Iterator[tuple[int, bool]]:
        """The elements in a condition, each with whether it is asked about when it is complete."""
        for part in typed_nodes.walk(expr):
            if isinstance(part, Column):
                place = self._places[part.scan]
                yield place.element, place.end is not End.NOW
            elif isinstance(part, GroupColumn):
                yield self._measures[part.index].element, self._measures[part.index].final


# ---------------------------------------------------------------- matching by definition


class Definition:
    """All matches in the rows of one partition, as section 5 of the semantics says it."""

    def __init__(self, pattern: Pattern, rows: Sequence[Row]) -> None:
        self._pattern, self._rows = pattern, rows

    def matches(self) -> list[tuple[int, tuple[Any, ...]]]:
        """The number of the last tuple, and the results, of each."""
        found = []
        start, consumed = 0, -1
        while start < len(self._rows):
            spans = self._attempt(start) if self._may_start(start, consumed) else None
            if spans is None:
                start += 1
                continue
            consumed = spans[-1][1]
            found.append((consumed, tuple(self._value(e, spans) for e in self._pattern.outputs)))
            start = consumed + 1
        return found

    def _may_start(self, start: int, consumed: int) -> bool:
        element = self._pattern.elements[0]
        if not element.star or start == 0 or consumed == start - 1:
            return True
        conditions = [
            c for c in element.per_tuple if not any(isinstance(p, GroupColumn) for p in typed_nodes.walk(c))
        ]
        return not self._all(conditions, [(start - 1, start - 1)])

    def _attempt(self, start: int) -> list[tuple[int, int]] | None:
        spans: list[tuple[int, int]] = []
        at = start
        for element in self._pattern.elements:
            first = at
            while at < len(self._rows) and self._all(element.per_tuple, [*spans, (first, at)]):
                at += 1
                if not element.star:
                    break
            if at == first:
                return None
            spans.append((first, at - 1))
            if not self._all(element.final, spans):
                return None
        return spans

    def _all(self, conditions: Sequence[Expr], spans: list[tuple[int, int]]) -> bool:
        return all(self._value(condition, spans) is True for condition in conditions)

    def _value(self, expr: Expr, spans: list[tuple[int, int]]) -> Any:
        match expr:
            case Constant(value):
                return value
            case Column(scan, index):
                place = self._pattern.places[scan]
                first, last = spans[place.element]
                at = (first if place.end is End.FIRST else last) - place.back
                return self._rows[at][self._pattern.fields[index].name] if at >= 0 else None
            case GroupColumn(index):
                return self._measure(self._pattern.measures[index], spans)
            case Cast(argument):
                value = self._value(argument, spans)
                return None if value is None else float(value)
            case Call("or", (a, b)):
                one, other = self._value(a, spans), self._value(b, spans)
                return True if True in (one, other) else None if None in (one, other) else False
            case Call(name, (a, b)):
                one, other = self._value(a, spans), self._value(b, spans)
                return None if one is None or other is None else _OPERATORS[name](one, other)
        raise AssertionError(expr)

    def _measure(self, measure: Measure, spans: list[tuple[int, int]]) -> Any:
        first, last = spans[measure.element]
        if measure.rows is not None:
            first = max(first, last - measure.rows + 1)
        taken = [[*spans[: measure.element], (at, at)] for at in range(first, last + 1)]
        if measure.aggregation.filter is not None:
            wanted = measure.aggregation.filter
            taken = [own for own in taken if self._value(wanted, own) is True]
        if not measure.aggregation.arguments:
            return len(taken)
        (argument,) = measure.aggregation.arguments
        values = [self._value(argument, own) for own in taken]
        if not values and measure.aggregation.name != "count":
            return None
        if measure.aggregation.name in ("first", "last"):
            return values[0 if measure.aggregation.name == "first" else -1]
        if measure.aggregation.user is not None:
            return BY_DEFINITION[measure.aggregation.name](values)
        known = [value for value in values if value is not None]
        match measure.aggregation.name:
            case "count":
                return len(known)
            case "sum":
                return sum(known) if known else None
            case "avg":
                return sum(known) / len(known) if known else None
            case "min" | "max":
                return (min if measure.aggregation.name == "min" else max)(known) if known else None
        raise AssertionError(measure)


_OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}


# ---------------------------------------------------------------- patterns as texts


def shown(pattern: Pattern) -> str:
    """A pattern for people who have to find out why it fails."""

    def text(expr: Any) -> str:
        match expr:
            case Constant(value):
                return str(value)
            case Column(scan, index):
                place = pattern.places[scan]
                end = "" if place.end is End.NOW else f".{place.end.value}"
                name = pattern.elements[place.element].name
                return f"{name}{end}{'.previous' * place.back}.{pattern.fields[index].name}"
            case GroupColumn(index):
                measure = pattern.measures[index]
                star = "*" if measure.final else ""
                inside = ", ".join(map(text, measure.aggregation.arguments))
                rows = f" over {measure.rows} rows" if measure.rows else ""
                name = pattern.elements[measure.element].name
                wanted = measure.aggregation.filter
                where = f" where {text(wanted)}" if wanted is not None else ""
                return f"{measure.aggregation.name}({star}{name} {inside}){where}{rows}"
            case Cast(argument):
                return text(argument)
            case Call(name, (a, b)):
                return f"({text(a)} {name} {text(b)})"
        raise AssertionError(expr)

    lines = []
    for element in pattern.elements:
        conditions = (", ".join(map(text, some)) for some in (element.per_tuple, element.final))
        lines.append(f"{'*' if element.star else ''}{element.name}: {' | '.join(conditions)}")
    return "\n".join([*lines, f"select {', '.join(map(text, pattern.outputs))}"])
