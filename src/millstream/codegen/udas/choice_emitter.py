"""Aggregates that choose one of the values, or put bits together, as generated source."""

from __future__ import annotations

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.udas.accumulator_emitter import MinMax, Scalar
from millstream.ir.value_kinds import kind_of, zero
from millstream.types import Type


class KnownEdge(MinMax):
    """first and last of what is not NULL."""

    takes_any_order = False

    def take(self, arguments: list[Value]) -> None:
        value = arguments[0]
        wanted = [f"not {value.null}"] if value.null else []
        if self.aggregate.name == "first_known":
            wanted.append(self._null)
        with self._writer.deeper(f"if {' and '.join(wanted) or 'True'}:"):
            self._writer.lines(f"{self._name} = {value.code}", f"{self._null} = False")


class Bits(MinMax):
    """Bits that all values have, or some, or an odd number of them."""

    def take(self, arguments: list[Value]) -> None:
        value = arguments[0]
        operator = {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}[self.aggregate.name]
        with self._writer.deeper(f"if {f'not {value.null}' if value.null else 'True'}:"):
            together = f"{self._name} {operator} {value.code}"
            self._writer.line(f"{self._name} = {value.code} if {self._null} else {together}")
            self._writer.line(f"{self._null} = False")


class MinMaxBy(Scalar):
    """min_by and max_by: a value of the tuple that has least or most of another, of equal ones the last."""

    takes_any_order = False

    def begin(self) -> None:
        self._name, self._null, self._by, self._none = (self._writer.name(p) for p in ("v", "n", "v", "n"))
        by = self.aggregate.arguments[1].type
        self._writer.lines(
            f"{self._name} = {zero(kind_of(self.aggregate.type))}",
            f"{self._null} = True",
            f"{self._by} = {zero(kind_of(by))}",
            f"{self._none} = True",
        )

    def take(self, arguments: list[Value]) -> None:
        value, by = arguments
        operator = "<=" if self.aggregate.name == "min_by" else ">="
        better = self.expressions.plain_test(operator, by.code, self._by, self.aggregate.arguments[1].type)
        known = f"not {by.null} and " if by.null else ""
        with self._writer.deeper(f"if {known}({self._none} or {better}):"):
            self._writer.lines(
                f"{self._name} = {value.code}",
                f"{self._null} = {value.null or False}",
                f"{self._by} = {by.code}",
                f"{self._none} = False",
            )

    def result(self) -> Value:
        return Value(self._name, self._null)

    def state(self) -> list[tuple[Value, Type]]:
        return [
            (self.result(), self.aggregate.type),
            (Value(self._by, self._none), self.aggregate.arguments[1].type),
        ]
