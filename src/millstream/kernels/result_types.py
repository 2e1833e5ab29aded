"""Arrow types of what users' aggregates return."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.specs import USER, AggregateSpec
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram


def returned_fields(program: Program | PythonProgram, names: Sequence[str]) -> list[pa.Field]:
    """Return the columns of a result under these names."""
    return [pa.field(n, arrow_type(f.type)) for n, f in zip(names, program.returns, strict=True)]


def rows_type(program: Program | PythonProgram) -> pa.DataType:
    """Return the type of a list of all rows that are returned for a tuple or a window."""
    return pa.list_(pa.struct([pa.field(f"r{i}", arrow_type(f.type)) for i, f in enumerate(program.returns)]))


def result_fields(spec: AggregateSpec) -> list[pa.Field]:
    """Return the columns of an aggregate's results: of a user's aggregate, those of the rows it returns."""
    if spec.function != USER:
        return [pa.field(spec.result, spec.type)]
    fields = spec.type.value_type
    return [pa.field(f"{spec.result}_{i}", fields.field(i).type) for i in range(fields.num_fields)]
