"""Aggregates inside queries of a body, as generated source: begin, add a row, result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from millstream.codegen.core.expression_emitter import ExpressionEmitter
from millstream.codegen.core.value_emitter import KnownValue, Value
from millstream.codegen.udas.body_facts import returns_one_row
from millstream.ir import typed_nodes
from millstream.ir.value_kinds import INTEGER, kind_of, zero
from millstream.program.failures import ROWS
from millstream.types import BIGINT, BOOLEAN, DOUBLE, Kind, Type

if TYPE_CHECKING:
    from millstream.codegen.udas.body_emitter import BodyEmitter


class Accumulator(ABC):
    """One aggregate over the rows of a loop."""

    takes_any_order = True

    def __init__(self, aggregate: typed_nodes.Aggregation, body: BodyEmitter) -> None:
        self.aggregate, self._body, self._writer = aggregate, body, body.writer
        self.expressions = ExpressionEmitter(body)

    @abstractmethod
    def begin(self) -> None: ...

    def add(self) -> None:
        """Write what a row does; a row that the FILTER does not want does nothing."""
        if self.aggregate.filter is not None:
            with self._writer.deeper(f"if {self.expressions.truth(self.aggregate.filter)}:"):
                self.take(
                    [self.expressions.kept(self.expressions.value(a)) for a in self.aggregate.arguments]
                )
        else:
            self.take([self.expressions.kept(self.expressions.value(a)) for a in self.aggregate.arguments])

    @abstractmethod
    def take(self, arguments: list[Value]) -> None: ...

    @abstractmethod
    def result(self) -> Value: ...


class Scalar(Accumulator):
    """One that knows what it has to know in a few names."""

    @abstractmethod
    def state(self) -> list[tuple[Value, Type]]:
        """Its names, with their types: who keeps their values can go on another time."""


class Count(Scalar):
    def begin(self) -> None:
        self._name = self._writer.name("v")
        self._writer.line(f"{self._name} = 0")

    def take(self, arguments: list[Value]) -> None:
        nulls = [f"not {a.null}" for a in arguments if a.null]
        if nulls:
            with self._writer.deeper(f"if {' and '.join(nulls)}:"):
                self._writer.line(f"{self._name} += 1")
        else:
            self._writer.line(f"{self._name} += 1")

    def result(self) -> Value:
        return Value(self._name)

    def state(self) -> list[tuple[Value, Type]]:
        return [(Value(self._name), BIGINT)]


class Sum(Scalar):
    """NULL until there is a value."""

    def __init__(self, aggregate: typed_nodes.Aggregation, body: BodyEmitter) -> None:
        super().__init__(aggregate, body)
        self._type = aggregate.type
        self.takes_any_order = kind_of(self._type) == INTEGER

    def begin(self) -> None:
        self._name, self._null = self._writer.name("v"), self._writer.name("n")
        self._writer.lines(f"{self._name} = {zero(kind_of(self._type))}", f"{self._null} = True")

    def take(self, arguments: list[Value]) -> None:
        value = arguments[0]
        if value.null:
            with self._writer.deeper(f"if not {value.null}:"):
                self._take(value.code)
        else:
            self._take(value.code)

    def _take(self, code: str) -> None:
        with self._writer.deeper(f"if {self._null}:"):
            self._writer.lines(f"{self._name} = {code}", f"{self._null} = False")
        with self._writer.deeper("else:"):
            so_far, more = (KnownValue(Value(c), self._type) for c in (self._name, code))
            total = self.expressions.value(typed_nodes.Call("+", (so_far, more), self._type))  # type: ignore[arg-type]
            self._writer.line(f"{self._name} = {total.code}")

    def result(self) -> Value:
        return Value(self._name, self._null)

    def state(self) -> list[tuple[Value, Type]]:
        return [(self.result(), self._type)]


class Average(Scalar):
    takes_any_order = False

    def begin(self) -> None:
        given = self.aggregate.arguments[0].type
        decimal = given.kind is Kind.DECIMAL
        self._sum_type = Type(Kind.DECIMAL, min(given.precision + 10, 38), given.scale) if decimal else DOUBLE
        argument = self.aggregate.arguments[0]
        inner = typed_nodes.Aggregation("sum", (typed_nodes.Cast(argument, self._sum_type),), self._sum_type)
        self._sum = Sum(inner, self._body)
        self._count = Count(typed_nodes.Aggregation("count", (argument,), BIGINT), self._body)
        self._sum.begin()
        self._count.begin()

    def take(self, arguments: list[Value]) -> None:
        given = KnownValue(arguments[0], self.aggregate.arguments[0].type)
        self._sum.take([self.expressions.kept(self.expressions.value(_as(given, self._sum_type)))])
        self._count.take(arguments)

    def result(self) -> Value:
        total, count = self._sum.result(), self._count.result()
        if self._sum_type == DOUBLE:
            name = self._writer.name("v")
            self._writer.line(f"{name} = {total.code} / max({count.code}, 1)")
            return Value(name, total.null)
        operands = KnownValue(total, self._sum_type), KnownValue(count, BIGINT)
        return self.expressions.outside("average", operands, self.aggregate.type)

    def state(self) -> list[tuple[Value, Type]]:
        return [*self._sum.state(), *self._count.state()]


class MinMax(Scalar):
    """min and max."""

    def begin(self) -> None:
        self._name, self._null = self._writer.name("v"), self._writer.name("n")
        self._writer.lines(f"{self._name} = {zero(kind_of(self.aggregate.type))}", f"{self._null} = True")

    def take(self, arguments: list[Value]) -> None:
        value = arguments[0]
        operator = "<" if self.aggregate.name == "min" else ">"
        better = self.expressions.plain_test(operator, value.code, self._name, self.aggregate.type)
        known = f"not {value.null} and " if value.null else ""
        with self._writer.deeper(f"if {known}({self._null} or {better}):"):
            self._writer.lines(f"{self._name} = {value.code}", f"{self._null} = False")

    def result(self) -> Value:
        return Value(self._name, self._null)

    def state(self) -> list[tuple[Value, Type]]:
        return [(self.result(), self.aggregate.type)]


class FirstLast(Scalar):
    """first and last, whatever they are."""

    takes_any_order = False

    def begin(self) -> None:
        self._name, self._null, self._seen = (self._writer.name(prefix) for prefix in ("v", "n", "m"))
        self._writer.lines(
            f"{self._name} = {zero(kind_of(self.aggregate.type))}",
            f"{self._null} = True",
            f"{self._seen} = False",
        )

    def take(self, arguments: list[Value]) -> None:
        lines = (
            f"{self._name} = {arguments[0].code}",
            f"{self._null} = {arguments[0].null or 'False'}",
            f"{self._seen} = True",
        )
        if self.aggregate.name == "last":
            self._writer.lines(*lines)
        else:
            with self._writer.deeper(f"if not {self._seen}:"):
                self._writer.lines(*lines)

    def result(self) -> Value:
        return Value(self._name, self._null)

    def state(self) -> list[tuple[Value, Type]]:
        return [(self.result(), self.aggregate.type), (Value(self._seen), BOOLEAN)]


class CalledUda(Accumulator):
    """An aggregate of the user's own, run over the rows from its beginning to its end.

    Its value is the row that TERMINATE returns, else that of the last tuple; several rows are a failure.
    """

    takes_any_order = False

    def begin(self) -> None:
        body = self.aggregate.user
        assert body is not None
        self._name, self._null, self._first = (self._writer.name(prefix) for prefix in ("v", "n", "m"))
        self._writer.lines(
            f"{self._name} = {zero(kind_of(self.aggregate.type))}",
            f"{self._null} = True",
            f"{self._first} = True",
        )
        self._rows = "" if returns_one_row(body) else self._writer.name("k")
        if self._rows:
            self._writer.line(f"{self._rows} = 0")
        self._inner = self._body.called(body, self._returned)
        self._inner.clear()

    def _returned(self, values: list[Value]) -> None:
        value = values[self.aggregate.column]
        self._writer.lines(f"{self._name} = {value.code}", f"{self._null} = {value.null or 'False'}")
        if self._rows:
            self._writer.line(f"{self._rows} += 1")

    def take(self, arguments: list[Value]) -> None:
        self._writer.line(f"{self._null} = True")
        if self._rows:
            self._writer.line(f"{self._rows} = 0")
        with self._writer.deeper(f"if {self._first}:"):
            self._writer.line(f"{self._first} = False")
            self._inner.block("INITIALIZE", arguments)
        with self._writer.deeper("else:"):
            self._inner.block("ITERATE", arguments)

    def result(self) -> Value:
        before = self._writer.name("k") if self._rows else ""
        if before:
            self._writer.lines(f"{before} = {self._rows}", f"{self._rows} = 0")
        with self._writer.deeper(f"if not {self._first}:"):
            self._inner.block("TERMINATE", [])
        if before:
            with self._writer.deeper(f"if {self._rows} > 1 or ({self._rows} == 0 and {before} > 1):"):
                self._body.fail(ROWS)
        return Value(self._name, self._null)


def _as(value: KnownValue, wanted: Type) -> typed_nodes.Expr:
    return value if value.type == wanted else typed_nodes.Cast(value, wanted)  # type: ignore[arg-type,return-value]
