"""User-defined scalar functions without Spark: SQL is inlined, Python is called row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from sqlglot import exp

from millstream.catalog.entries import ScalarFunction
from millstream.errors import ExecutionError
from millstream.ir.python_aggregate import RowsOf, load
from millstream.kernels.core.arrow_types import arrow_type
from millstream.syntax import parse_expression
from millstream.types import Type


def inline(function: ScalarFunction, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """Return the body of an SQL function over the arguments, with the conversions that its types ask for."""
    given = {
        parameter.name.lower(): cast_to(argument, parameter.type)
        for parameter, argument in zip(function.parameters, arguments, strict=True)
    }

    def bind(node: exp.Expr) -> exp.Expr:
        is_parameter = isinstance(node, exp.Column) and not node.table and node.name.lower() in given
        return given[node.name.lower()].copy() if is_parameter else node

    assert function.body is not None
    return cast_to(parse_expression(function.body).transform(bind), function.returns)


def cast_to(node: exp.Expr, type_: Type) -> exp.Expr:
    """Return an expression converted to a type."""
    cast = parse_expression(f"CAST(value AS {type_})")
    assert isinstance(cast, exp.Cast)
    cast.set("this", exp.Paren(this=node.copy()))
    return cast


@dataclass(frozen=True)
class PythonFunction:
    """A function in Python over columns."""

    name: str
    type: Type
    python: Callable[..., Any]

    @classmethod
    def of(cls, function: ScalarFunction) -> PythonFunction:
        assert function.python is not None
        python = load(function.python)
        if not callable(python):
            raise ExecutionError(f"'{function.python}' is not callable")
        if function.columns:
            python = RowsOf(function.name, python, tuple(column.name for column in function.columns))
        return cls(function.name, function.returns, python)

    def __call__(self, columns: Sequence[pa.Array], count: int) -> pa.Array:
        rows = zip(*(map(_given, column.to_pylist()) for column in columns), strict=True)
        values = [self._call(row) for row in (rows if columns else [()] * count)]
        try:
            return pa.array(values, arrow_type(self.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ExecutionError(f"function '{self.name}' does not return {self.type}: {error}") from None

    def _call(self, row: tuple[Any, ...]) -> Any:
        try:
            return self.python(*row)
        except Exception as error:
            shown = ", ".join(map(repr, row))
            raise ExecutionError(
                f"Python code failed with {type(error).__name__}: {error}",
                hint=f"raised by {self.name}({shown})",
            ) from error


def _given(value: Any) -> Any:
    """Return a value as Spark gives it to Python: times have no zone, and are those of the session."""
    is_aware = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC).replace(tzinfo=None) if is_aware else value
