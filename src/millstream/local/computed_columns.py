"""Computed columns of streams and tables, stateless queries below an order, and rows that fail in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.entries import NOT_TESTED, ComputedColumn, SelectStep, Stream, not_computed
from millstream.errors import ExecutionError, NotExecutableError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.expressions import Columns, ScalarFunction, compile_expression
from millstream.local.frame import Frame
from millstream.types import BIGINT, BOOLEAN, STRING, Field, Type

FAILED = "__ms_failed"
"""The reason for which a row is bad, if an expression has failed on it."""
INDEX = "__ms_index"
"""The number of a row among those that were read."""


def prepared(frame: Frame, stream: Stream) -> Frame:
    """Compute the columns of a stream from those of its source, and tell which row each comes from."""
    frame = frame.with_hidden(INDEX, BIGINT, pa.array(range(frame.count), pa.int64()))
    frame = with_computed(frame, stream.read.computed, stream.read.schema)
    if stream.selection is not None:
        for step in stream.selection.steps:
            frame = _selected(frame, step)
    return frame


def with_computed(frame: Frame, computed: Sequence[ComputedColumn], schema: Sequence[Field]) -> Frame:
    """Add computed columns, each NULL where its expression fails, and the reason of the first failure."""
    types = {field.name: field.type for field in schema}
    failures: list[str | None] = [None] * frame.count
    for one in computed:
        values = _attempted(frame, one.expr, types[one.name], not_computed(one.name), failures)
        frame = Frame.of([*frame.pairs, (ColumnRef("", one.name, types[one.name]), values)], frame.count)
    shown = {ref.name: (ref, column) for ref, column in frame.shown}
    ordered = [shown[field.name] for field in schema if field.name in shown]
    frame = Frame.of([*ordered, *frame.pairs[len(shown) :]], frame.count)
    return frame.with_hidden(FAILED, STRING, pa.array(failures, pa.string()))


def _selected(frame: Frame, step: SelectStep) -> Frame:
    """Apply a SELECT; rows that have failed stay, with their reason."""
    before: list[str | None] = frame.hidden[FAILED].to_pylist()
    failures: list[str | None] = [None] * frame.count
    rows = frame.alias(step.alias)
    kept = pa.array([True] * frame.count, pa.bool_())
    for condition in step.conditions:
        test = _attempted(rows, condition, BOOLEAN, NOT_TESTED, failures)
        has_failed = pa.array([reason is not None for reason in failures], pa.bool_())
        kept = pc.and_(kept, pc.or_(pc.fill_null(test, False), has_failed))
    types = {field.name: field.type for field in step.schema}
    made = []
    for one in step.columns:
        values = _attempted(rows, one.expr, types[one.name], not_computed(one.name), failures)
        made.append((ColumnRef("", one.name, types[one.name]), values))
    failures = [first or reason for first, reason in zip(before, failures, strict=True)]
    hidden = rows.pairs[len(rows.shown) :]
    after = Frame.of([*made, *hidden], frame.count)
    after = after.with_hidden(FAILED, STRING, pa.array(failures, pa.string()))
    return after.where(pc.or_(kept, pa.array([reason is not None for reason in before], pa.bool_())))


def _attempted(frame: Frame, expr: object, type_: Type, reason: str, failures: list[str | None]) -> pa.Array:
    """Evaluate an expression; rows where it fails are NULL, and have a reason."""
    assert isinstance(expr, Expr)
    value = Expr(("CAST((", *expr.parts, f") AS {type_})"), type_)
    function, target = compile_expression(value, frame.refs), arrow_type(type_)
    pieces = []
    for start, values in _pieces(function, frame.columns, 0, frame.count):
        if values is None:
            failures[start] = failures[start] or reason
        pieces.append(pa.nulls(1, target) if values is None else values.cast(target))
    return pa.concat_arrays(pieces) if pieces else pa.nulls(0, target)


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
