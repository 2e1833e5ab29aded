"""Computed columns of streams and tables, and the rows whose expression fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.entries import ComputedColumn, not_computed
from millstream.errors import ExecutionError, NotExecutableError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.expressions import Columns, ScalarFunction, compile_expression
from millstream.local.frame import Frame
from millstream.types import Field


def with_computed(
    frame: Frame, computed: Sequence[ComputedColumn], schema: Sequence[Field]
) -> tuple[Frame, list[str | None]]:
    """Add computed columns, and tell why a row is bad; a column is NULL where its expression fails."""
    types = {field.name: field.type for field in schema}
    failures: list[str | None] = [None] * frame.count
    for one in computed:
        assert isinstance(one.expr, Expr)
        type_ = types[one.name]
        value = Expr(("CAST((", *one.expr.parts, f") AS {type_})"), type_)
        column = _attempted(compile_expression(value, frame.refs), frame, one.name, failures)
        ref = ColumnRef("", one.name, type_)
        frame = Frame.of([*frame.pairs, (ref, column.cast(arrow_type(type_)))], frame.count)
    return _in_order(frame, schema) if computed else frame, failures


def _in_order(frame: Frame, schema: Sequence[Field]) -> Frame:
    shown = {ref.name: (ref, column) for ref, column in frame.shown}
    hidden = frame.pairs[len(shown) :]
    return Frame.of([*(shown[field.name] for field in schema if field.name in shown), *hidden], frame.count)


def _attempted(function: ScalarFunction, frame: Frame, name: str, failures: list[str | None]) -> pa.Array:
    """Evaluate a function; rows where it fails are NULL and have a reason."""
    pieces = []
    for start, values in _pieces(function, frame.columns, 0, frame.count):
        if values is None:
            failures[start] = failures[start] or not_computed(name)
        type_ = arrow_type(function.type)
        pieces.append(pa.nulls(1, type_) if values is None else values.cast(type_))
    return pa.concat_arrays(pieces) if pieces else pa.nulls(0, arrow_type(function.type))


def _pieces(
    function: ScalarFunction, columns: Columns, start: int, count: int
) -> Iterator[tuple[int, pa.Array | None]]:
    """Yield values in pieces, each with its first row; halves of a piece that fails, down to one row."""
    try:
        values = function([column.slice(start, count) for column in columns], count)
    except NotExecutableError:
        raise
    except ExecutionError:
        if count == 1:
            yield start, None
            return
        half = count // 2
        yield from _pieces(function, columns, start, half)
        yield from _pieces(function, columns, start + half, count - half)
        return
    if count:
        yield start, values
