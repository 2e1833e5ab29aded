"""Aggregates of lists of values in interpreted functions, computed as those of one window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates.accumulator_selection import plan
from millstream.kernels.aggregates.content_aggregates import gathered
from millstream.kernels.aggregates.finalize import result
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.kernel_errors import KernelError
from millstream.kernels.result_types import rows_type
from millstream.kernels.specs import USER, AggregateSpec, Order
from millstream.kernels.udas.compiled_machine import UserAggregateError
from millstream.kernels.udas.local_tables import Columns, read, written
from millstream.program.content_aggregate import WHOLE_ROW, ContentAggregate
from millstream.program.failures import OutsideError
from millstream.program.program import InterpretedCall, Program, dtype_of
from millstream.program.python_program import PythonProgram
from millstream.types import Field

_MANY = 1 << 16
"""Number of values after which dictionaries are rebuilt: most of their words are not needed any more."""


def content_functions(calls: Sequence[InterpretedCall], columns: Columns) -> dict[str, Callable[..., Any]]:
    """Return the functions that take lists, under the names by which a program calls them."""
    return {
        f"outside{i}": _Aggregate(call, columns) for i, call in enumerate(calls) if call.content is not None
    }


class _Aggregate:
    """A function of a list of tuples, each with a value and a NULL flag for every argument."""

    def __init__(self, call: InterpretedCall, columns: Columns) -> None:
        self._content: ContentAggregate = call.content
        self._fields = [Field(f"a{i}", type_) for i, type_ in enumerate(call.arguments)]
        self._result, self._columns = Field("r", call.result), columns
        self._schema = pa.schema([pa.field(f.name, arrow_type(f.type)) for f in self._fields])
        self._begin()

    def _begin(self) -> None:
        self._measures, (self._aggregate,) = plan([self._spec()], self._schema, in_order=True)
        self._seen = 0

    def _spec(self) -> AggregateSpec:
        content, (first, *others) = self._content, self._schema.names
        program = content.source
        if isinstance(program, Program | PythonProgram):
            function, type_, parameters = USER, rows_type(program), (program,)
        else:
            function, type_, parameters = content.name, arrow_type(content.type), content.parameters
        return AggregateSpec(
            function,
            first,
            "r",
            type_,
            ignore_nulls=content.ignore_nulls,
            others=tuple(others),
            parameters=parameters,
            distinct=content.distinct,
            order=tuple(Order(by.descending, by.nulls_first) for by in content.order),
        )

    def __call__(self, values: list[tuple[Any, ...]]) -> tuple[Any, bool]:
        count = len(values)
        self._seen += count
        if self._seen > _MANY:
            self._begin()
        numbers = np.arange(count)
        tuples = Tuples(self._table(values), numbers, np.zeros(count, np.int32), numbers)
        groups = np.zeros(count, np.int32)
        try:
            parts = [gathered(measure, tuples, groups, 1) for measure in self._measures]
            own = [parts[number] for number in self._aggregate.measures]
            first = self._measures[self._aggregate.measures[0]]
            found = self._chosen(result(self._aggregate, first, own, lambda row: (row,)))
        except (KernelError, UserAggregateError) as error:
            raise OutsideError(str(error)) from None
        out, nulls = read(found, self._result, self._columns)
        return out[0].item(), bool(nulls[0])

    def _table(self, values: list[tuple[Any, ...]]) -> pa.Table:
        arrays = {}
        for i, field in enumerate(self._fields):
            own = np.array([value[2 * i] for value in values], dtype_of(field.type))
            nulls = np.array([value[2 * i + 1] for value in values], np.uint8)
            arrays[field.name] = written(own, nulls, field, self._columns)
        return pa.table(arrays)

    def _chosen(self, found: pa.Array) -> pa.Array:
        """Return the last of the rows returned by a UDA, or its requested column."""
        if self._content.source is None:
            return found
        rows = found.flatten()
        type_ = arrow_type(self._result.type)
        if not len(rows):
            return pa.nulls(1, type_)
        last = rows.slice(len(rows) - 1).flatten()
        if self._content.column != WHOLE_ROW:
            return last[self._content.column]
        return pa.StructArray.from_arrays(last, fields=list(type_))
