"""Values in generated source: what is written before them, and what may go wrong on the way.

A value is the text of an expression and, where it may be NULL, the text of a condition that says so. What
needs statements (a check for overflow, a query) is written before the line that uses it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from millstream.codegen.core.source_writer import SourceWriter
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import Call, Expr
from millstream.ir.value_kinds import kind_of, zero
from millstream.types import Kind, Type


class Value(NamedTuple):
    """``code`` has the value unless ``null`` is true; no ``null`` means never."""

    code: str
    null: str = ""


@dataclass(frozen=True)
class KnownValue:
    """An expression whose value has been computed."""

    value: Value
    type: Type


class EmitterScope(ABC):
    """Scope of generated expressions."""

    writer: SourceWriter

    @abstractmethod
    def parameter(self, index: int) -> Value: ...

    @abstractmethod
    def column(self, column: typed_nodes.Column) -> Value: ...

    @abstractmethod
    def oldest(self, position: Value, index: int, type_: Type) -> Value: ...

    @abstractmethod
    def grouped(self, index: int) -> Value: ...

    def settled(self, part: typed_nodes.Parameter | typed_nodes.Column | typed_nodes.Oldest) -> Value | None:
        """Return a value that stays the same for as long as results computed from it are remembered."""
        return self.parameter(part.index) if isinstance(part, typed_nodes.Parameter) else None

    @abstractmethod
    def scalar(self, query: typed_nodes.Query) -> Value: ...

    @abstractmethod
    def exists(self, query: typed_nodes.Query) -> str:
        """Return a condition."""

    @abstractmethod
    def among(self, values: tuple[Value, ...], node: typed_nodes.InQuery) -> tuple[str, str]:
        """Return two conditions: the value is among them, and it is surely not."""

    @abstractmethod
    def word(self, value: object, type_: Type) -> str:
        """Return a constant that is a word."""

    @abstractmethod
    def labels(self, type_: Type) -> str:
        """Return the array that gives the order of words of a type."""

    @abstractmethod
    def hashes(self, function: str, type_: Type) -> str:
        """Return the array that gives the hashes of words of a type."""

    @abstractmethod
    def outside(self, name: str, types: tuple[Type, ...], result: Type) -> str:
        """Return a function that is not compiled, by the name that calls it."""

    @abstractmethod
    def fail(self, failure: int) -> None:
        """Write the lines that stop the program."""


class ValueEmitter(ABC):
    """Base of the emitters of values."""

    def __init__(self, around: EmitterScope) -> None:
        self._around = around

    @property
    def _writer(self) -> SourceWriter:
        return self._around.writer

    @abstractmethod
    def value(self, expr: Expr | KnownValue) -> Value:
        """Write what an expression needs, and give its value."""

    def kept(self, value: Value) -> Value:
        """Return a value in names of its own, so that it is computed once."""
        code = value.code if is_simple(value.code) else self._kept(value.code)
        null = value.null if is_simple(value.null) or not value.null else self._kept(value.null)
        return Value(code, null)

    def _kept(self, code: str) -> str:
        if is_simple(code):
            return code
        name = self._writer.name("v")
        self._writer.line(f"{name} = {code}")
        return name

    def outside(self, name: str, arguments: tuple[Expr | KnownValue, ...], result: Type) -> Value:
        function = self._around.outside(name, tuple(a.type for a in arguments), result)
        values = [self.value(a) for a in arguments]
        given = ", ".join(f"{v.code}, {v.null or 'False'}" for v in values)
        name_, null = self._writer.name("v"), self._writer.name("n")
        self._writer.line(f"{name_}, {null} = {function}({given})")
        return Value(name_, null)

    def operands(self, expr: Call) -> tuple[list[str], str]:
        """Return the codes of the arguments, and when one of them is NULL."""
        values = [self.kept(self.value(argument)) for argument in expr.arguments]
        nulls = list(dict.fromkeys(value.null for value in values if value.null))
        return [value.code for value in values], either(*nulls) if nulls else ""

    def checked(self, null: str, type_: Type, lines: list[str], failing: str, failure: int) -> Value:
        """Write lines that compute a value (``{v}`` is its name) and may fail, unless an operand is NULL."""
        name = self._writer.name("v")
        if null:
            null = self._kept(null)
            self._writer.line(f"{name} = {zero(kind_of(type_))}")
            with self._writer.deeper(f"if not {null}:"):
                self._checked_lines(name, lines, failing, failure)
        else:
            self._checked_lines(name, lines, failing, failure)
        return Value(name, null)

    def _checked_lines(self, name: str, lines: list[str], failing: str, failure: int) -> None:
        for line in lines:
            self._writer.line(line.replace("{v}", name))
        if failing:
            with self._writer.deeper(f"if {failing.replace('{v}', name)}:"):
                self._around.fail(failure)

    def single(self, code: str, type_: Type) -> str:
        return f"single({code})" if type_.kind is Kind.FLOAT else code


def truth(null: str) -> str:
    """Tell whether a value is NULL, as arrays keep it."""
    return {"": "0", "False": "0", "True": "1"}.get(null, null)


def either(*conditions: str) -> str:
    """Join conditions with ``or``, each once."""
    known = list(dict.fromkeys(conditions))
    return known[0] if len(known) == 1 else f"({' or '.join(known)})"


def is_simple(code: str) -> bool:
    """Tell whether it is a name or a number, which stays the same wherever it is written again."""
    return code.isidentifier() or code.lstrip("-").replace(".", "", 1).isdigit()
