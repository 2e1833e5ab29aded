"""Scalar expressions without Spark: from text to a Python function over Arrow columns.

An expression takes the way of aggregate bodies and pattern conditions: it is typed, elaborated and written as
source. The source is run as it is, over the values themselves instead of the codes of a dictionary. An
expression that only Spark can compute is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.types.elaborator import Elaborator
from millstream.catalog import Catalog
from millstream.codegen.core.expression_emitter import ExpressionEmitter
from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.core.value_emitter import EmitterScope, Value
from millstream.errors import AnalysisError, ExecutionError, NotExecutableError
from millstream.ir import typed_nodes
from millstream.ir.value_kinds import DOUBLE, TRUTH, WORD, kind_of
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.scalar_functions import FUNCTIONS as FUNCTIONS_OF_ROWS
from millstream.local.scalar_functions import LocalFunction
from millstream.local.user_functions import PythonFunction, cast_to, inline
from millstream.program import spark_arithmetic, spark_hash  # noqa: F401 (they fill the registry)
from millstream.program.failures import MESSAGES, OutsideError
from millstream.program.interpreted_functions import ValueConverter, interpreted_functions
from millstream.program.jit_registry import PLAIN
from millstream.program.program import InterpretedCall
from millstream.program.spark_text_hash import SEED, murmur_text, xx_text
from millstream.syntax import parse_expression
from millstream.types import STRING, TIMESTAMP, UNKNOWN, Field, Kind, Type, struct

Columns = Sequence[pa.Array]


_VALUE, _NULL = "value_", "null_"
"""Prefixes of names in source. Emitters make names of a letter and a number."""

CLOCK: ContextVar[int] = ContextVar("clock", default=0)
"""The time of the run in microseconds, which ``current_timestamp()`` gives."""

FUNCTIONS: ContextVar[Catalog | None] = ContextVar("functions", default=None)
"""The catalog of the run, with the user-defined functions that expressions call."""


class ScalarFunction(Protocol):
    """A compiled expression: its type, and its value for each row of some columns."""

    @property
    def type(self) -> Type:
        """The type of the values."""

    def __call__(self, columns: Columns, count: int) -> pa.Array:
        """Evaluate over so many rows."""


def compile_expression(expr: Expr, schema: Sequence[ColumnRef]) -> ScalarFunction:
    """Compile an expression over rows with these columns.

    >>> from millstream.types import INT
    >>> double = compile_expression(Expr(("a * 2",)), (ColumnRef("", "a", INT),))
    >>> double([pa.array([1, None], pa.int32())], 2).to_pylist()
    [2, None]
    """
    try:
        return _compiled(parse_expression(expr.sql), _RowElaborator(schema, FUNCTIONS.get() or Catalog()))
    except AnalysisError as error:
        # Its place is one in the text of the expression, and not in that of the script.
        raise NotExecutableError(error.message, hint="run without --engine local") from None


def _compiled(node: exp.Expr, elaborator: _RowElaborator) -> ScalarFunction:
    typed = elaborator.of(node)
    if isinstance(typed, typed_nodes.Parameter):
        return elaborator.read[typed.index]
    return _emitted(typed, elaborator)


def _named_struct(node: exp.Anonymous, elaborator: _RowElaborator) -> ScalarFunction:
    names = [name.name for name in node.expressions[::2]]
    return _StructFunction(names, [_compiled(value, elaborator) for value in node.expressions[1::2]])


def _struct(node: exp.Anonymous, elaborator: _RowElaborator) -> ScalarFunction:
    values = [_compiled(value, elaborator) for value in node.expressions]
    return _StructFunction([f"col{i}" for i in range(1, len(values) + 1)], values)


def _array(node: exp.Anonymous, elaborator: _RowElaborator) -> ScalarFunction:
    elements = [_compiled(value, elaborator) for value in node.expressions]
    return _ListFunction(elements, elaborator.type_of(node))


def _to_json(node: exp.Anonymous, elaborator: _RowElaborator) -> ScalarFunction:
    return _JsonFunction(_compiled(node.expressions[0], elaborator))


_NESTED = {"named_struct": _named_struct, "struct": _struct, "array": _array, "to_json": _to_json}
"""Functions of nested values, which are computed column by column."""


@dataclass(frozen=True)
class _ReadColumn:
    """A column, or a part of one that is a struct."""

    position: int
    path: tuple[str, ...]
    type: Type

    def __call__(self, columns: Columns, count: int) -> pa.Array:
        column = columns[self.position]
        for name in self.path:
            column = pc.struct_field(column, name)
        return column


class _StructFunction:
    """A struct of named values."""

    def __init__(self, names: Sequence[str], values: Sequence[ScalarFunction]) -> None:
        self._names, self._values = names, values
        self.type = struct(*(Field(name, value.type) for name, value in zip(names, values, strict=True)))

    def __call__(self, columns: Columns, count: int) -> pa.Array:
        return pa.StructArray.from_arrays([value(columns, count) for value in self._values], self._names)


@dataclass(frozen=True)
class _ListFunction:
    """A list of values."""

    elements: Sequence[ScalarFunction]
    type: Type

    def __call__(self, columns: Columns, count: int) -> pa.Array:
        target = arrow_type(self.type)
        values = [one(columns, count).cast(target.value_type).to_pylist() for one in self.elements]
        return pa.array([list(row) for row in zip(*values, strict=True)] or [[]] * count, target)


@dataclass(frozen=True)
class _CallOfPython:
    """A call of a function in Python."""

    function: PythonFunction
    arguments: tuple[ScalarFunction, ...]

    @property
    def type(self) -> Type:
        return self.function.type

    def __call__(self, columns: Columns, count: int) -> pa.Array:
        return self.function([argument(columns, count) for argument in self.arguments], count)


@dataclass(frozen=True)
class _CallOfFunction:
    """A call of a function that is computed row by row."""

    function: LocalFunction
    arguments: tuple[ScalarFunction, ...]
    type: Type

    def __call__(self, columns: Columns, count: int) -> pa.Array:
        decoded = [_decoded(argument(columns, count), argument.type) for argument in self.arguments]
        given = [
            [None if is_null else value for value, is_null in zip(values, nulls, strict=True)]
            for values, nulls in decoded
        ]
        try:
            return _encoded([self._computed(row) for row in zip(*given, strict=True)], self.type)
        except OutsideError as error:
            raise ExecutionError(str(error)) from None

    def _computed(self, row: tuple[Any, ...]) -> Any:
        return None if None in row and not self.function.takes_nulls else self.function.compute(*row)


class _JsonFunction:
    """The text of a value as JSON, which tells values apart."""

    type = STRING

    def __init__(self, value: ScalarFunction) -> None:
        self._value = value

    def __call__(self, columns: Columns, count: int) -> pa.Array:
        values = self._value(columns, count).to_pylist()
        return pa.array([json.dumps(value, default=repr) for value in values], pa.string())


@dataclass(frozen=True)
class _SourceFunction:
    """Generated source, which loops over the values of the columns that it reads."""

    type: Type
    arguments: tuple[ScalarFunction, ...]
    evaluate: Callable[..., None]

    def __call__(self, columns: Columns, count: int) -> pa.Array:
        decoded: list[Any] = []
        for argument in self.arguments:
            decoded += _decoded(argument(columns, count), argument.type)
        values: list[Any] = []
        try:
            with np.errstate(all="ignore"):
                self.evaluate(range(count), *decoded, values.append)
        except OutsideError as error:
            raise ExecutionError(str(error)) from None
        return _encoded(values, self.type)


class _RowElaborator(Elaborator):
    """Elaborates expressions over one row, whose columns are parameters."""

    where = "by the local engine"

    def __init__(self, schema: Sequence[ColumnRef], catalog: Catalog) -> None:
        self._positions: dict[tuple[str, str], int] = {}
        for position, column in enumerate(schema):
            for relation in (column.relation.lower(), ""):
                self._positions.setdefault((relation, column.name.lower()), position)
        self._schema = schema
        self.read: list[ScalarFunction] = []
        """Columns, and nested values made of them, that expressions read: the parameters of their source."""
        super().__init__(
            catalog,
            column=lambda node: self._located(node).type,
            call=lambda name, node, types: self._returned(name),
            query=lambda query: UNKNOWN,
            names=tuple,
        )

    def _returned(self, name: str) -> Type | None:
        """The type of a user-defined function."""
        function = self._catalog.function(name)
        return None if function is None else function.returns

    def found(self, node: exp.Expr) -> typed_nodes.Expr | None:
        if not isinstance(node, exp.Anonymous):
            return None
        if node.name.lower() in _NESTED:
            return self._parameter(_NESTED[node.name.lower()](node, self))
        function = self._catalog.function(node.name)
        if function is None:
            return None
        if function.body is not None:
            return self.of(inline(function, node.expressions))
        given = zip(node.expressions, function.parameters, strict=True)
        arguments = tuple(_compiled(cast_to(value, parameter.type), self) for value, parameter in given)
        return self._parameter(_CallOfPython(PythonFunction.of(function), arguments))

    def column(self, node: exp.Column) -> typed_nodes.Expr:
        return self._parameter(self._located(node))

    def _parameter(self, function: ScalarFunction) -> typed_nodes.Parameter:
        if function not in self.read:
            self.read.append(function)
        return typed_nodes.Parameter(self.read.index(function), function.type)

    def _located(self, node: exp.Column) -> _ReadColumn:
        """Find a column by its relation and name, and the parts of a struct behind them."""
        parts = [part.name.lower() for part in node.parts]
        named = [((parts[0], parts[1]), parts[2:])] if len(parts) > 1 else []
        for key, rest in [*named, (("", parts[0]), parts[1:])]:
            found = self._part(self._positions[key], rest) if key in self._positions else None
            if found is not None:
                return found
        raise self.refused(node, f"'{'.'.join(part.name for part in node.parts)}'")

    def _part(self, position: int, names: Sequence[str]) -> _ReadColumn | None:
        type_ = self._schema[position].type
        path: list[str] = []
        for name in names:
            field = next((f for f in type_.fields if f.name.lower() == name), None)
            if field is None:
                return None
            type_, path = field.type, [*path, field.name]
        return _ReadColumn(position, tuple(path), type_)

    def dot(self, node: exp.Dot) -> typed_nodes.Expr:
        raise self.refused(node, "a part of a struct")

    def called(self, name: str, node: exp.Expr, written: Sequence[exp.Expr]) -> typed_nodes.Expr:
        if name in ("current_timestamp", "now") and not written:
            return typed_nodes.Constant(CLOCK.get(), TIMESTAMP)
        if name == "raise_error":
            return typed_nodes.Call(name, (self.as_(written[0], STRING),), STRING)
        function = FUNCTIONS_OF_ROWS.get(name)
        if function is None or self._catalog.function(name) is not None:
            return super().called(name, node, written)
        if name in ("to_timestamp", "to_date") and self.type_of(written[0]).kind is not Kind.STRING:
            return self.of(cast_to(written[0], self.known_type(node)))
        arguments = tuple(
            _compiled(cast_to(value, function.parameter(index)), self) for index, value in enumerate(written)
        )
        return self._parameter(_CallOfFunction(function, arguments, self.known_type(node)))


class _RowScope(EmitterScope):
    """Names of an expression's columns, constants and interpreted functions in its source."""

    def __init__(self) -> None:
        self.writer = SourceWriter()
        self.parameters: dict[int, None] = {}
        self.constants: dict[str, Any] = {}
        self.calls: list[InterpretedCall] = []

    def parameter(self, index: int) -> Value:
        self.parameters[index] = None
        return Value(f"{_VALUE}{index}", f"{_NULL}{index}")

    def word(self, value: object, type_: Type) -> str:
        name = f"w{len(self.constants)}"
        if type_.kind is Kind.DECIMAL and isinstance(value, int):
            value = Decimal(value).scaleb(-type_.scale)
        self.constants[name] = value
        return name

    def labels(self, type_: Type) -> str:
        return "values"

    def hashes(self, function: str, type_: Type) -> str:
        return f"{function}_hashes"

    def outside(self, name: str, types: tuple[Type, ...], result: Type) -> str:
        self.calls.append(InterpretedCall(name, types, result))
        return f"outside{len(self.calls) - 1}"

    def fail(self, failure: int) -> None:
        self.writer.line(f"fail({failure})")

    def column(self, column: typed_nodes.Column) -> Value:
        raise _outside_bodies(column)

    def oldest(self, position: Value, index: int, type_: Type) -> Value:
        raise _outside_bodies(position)

    def grouped(self, index: int) -> Value:
        raise _outside_bodies(index)

    def scalar(self, query: typed_nodes.Query) -> Value:
        raise _outside_bodies(query)

    def exists(self, query: typed_nodes.Query) -> str:
        raise _outside_bodies(query)

    def among(self, values: tuple[Value, ...], node: typed_nodes.InQuery) -> tuple[str, str]:
        raise _outside_bodies(node)


def _outside_bodies(part: object) -> AssertionError:
    return AssertionError(f"{part} occurs only in aggregate bodies and patterns")


class _PythonValues(ValueConverter):
    """Values of the types that need a dictionary in compiled code; here they are themselves."""

    def __init__(self) -> None:
        super().__init__(lambda type_: None)

    def opened(self, value: Any, type_: Type) -> Any:
        return value if kind_of(type_) == WORD else super().opened(value, type_)

    def closed(self, value: Any, type_: Type) -> Any:
        return value if kind_of(type_) == WORD else super().closed(value, type_)


class _Lookup:
    """An array of generated source that is a function here."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __getitem__(self, value: Any) -> Any:
        return self._function(value)


_LOOKUPS = {
    "values": _Lookup(lambda value: value),
    "xx_hashes": _Lookup(partial(xx_text, seed=SEED)),
    "murmur_hashes": _Lookup(partial(murmur_text, seed=SEED)),
}


def _fail(failure: int) -> NoReturn:
    raise OutsideError(MESSAGES[failure])


def _emitted(expr: typed_nodes.Expr, elaborator: _RowElaborator) -> ScalarFunction:
    """Write an expression as a loop over rows."""
    scope = _RowScope()
    writer = scope.writer
    with writer.deeper(), writer.deeper():
        value = ExpressionEmitter(scope).value(expr)
        value_or_null = f"None if {value.null} else {value.code}" if value.null else value.code
        writer.line(f"result({value_or_null})")
    body = writer.cut(0)
    used = sorted(scope.parameters)
    scalars = [f"{name}{index}" for index in used for name in (_VALUE, _NULL)]
    arrays = [f"{name}s" for name in scalars]
    writer.line(f"def evaluate({', '.join(['rows', *arrays, 'result'])}):")
    with writer.deeper():
        together = f"zip({', '.join(['rows', *arrays])})"
        writer.line(f"for {', '.join(['_row', *scalars])} in {together}:" if used else "for _row in rows:")
    writer.put(body)
    outside = interpreted_functions(scope.calls, _PythonValues())
    names: dict[str, Any] = {**PLAIN, **outside, **scope.constants, **_LOOKUPS, "np": np, "fail": _fail}
    exec(compile(writer.text(), "<expression>", "exec"), names)
    return _SourceFunction(expr.type, tuple(elaborator.read[i] for i in used), names["evaluate"])


def _decoded(column: pa.Array | pa.ChunkedArray, type_: Type) -> tuple[list[Any], list[bool]]:
    """Return values as generated source has them, with zeros for NULLs, and a list that tells the NULLs."""
    if type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DAY_TIME_INTERVAL):
        values = column.cast(pa.int64()).to_pylist()
    elif type_.kind is Kind.DATE:
        values = column.cast(pa.int32()).to_pylist()
    elif type_.kind is Kind.DECIMAL and kind_of(type_) != WORD:
        values = [None if v is None else int(v.scaleb(type_.scale)) for v in column.to_pylist()]
    else:
        values = column.to_pylist()
    zero: Any = {DOUBLE: 0.0, TRUTH: False, WORD: ""}.get(kind_of(type_), 0)
    return [zero if value is None else value for value in values], [value is None for value in values]


def _encoded(values: list[Any], type_: Type) -> pa.Array:
    target = arrow_type(type_)
    if type_.kind is Kind.DECIMAL and kind_of(type_) != WORD:
        values = [None if value is None else Decimal(int(value)).scaleb(-type_.scale) for value in values]
    elif type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DAY_TIME_INTERVAL):
        return pa.array(values, pa.int64()).cast(target)
    elif type_.kind is Kind.DATE:
        return pa.array(values, pa.int32()).cast(target)
    elif type_.kind is Kind.BOOLEAN:
        values = [None if value is None else bool(value) for value in values]
    return pa.array(values, target)
