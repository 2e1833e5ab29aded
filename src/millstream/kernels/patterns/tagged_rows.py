"""Results of several patterns as rows of one table, tagged with the number of the pattern."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.kernels.column_names import BRANCH
from millstream.kernels.core.kernel import Tuples


def branch_name(branch: int, name: str) -> str:
    """Return the name of a column of one branch in the common table."""
    return f"b{branch}_{name}"


def branched_schema(outputs: Sequence[pa.Schema]) -> pa.Schema:
    """Return the columns of all branches, and the tag."""
    fields = [
        pa.field(branch_name(i, field.name), field.type)
        for i, output in enumerate(outputs)
        for field in output
    ]
    return pa.schema([*fields, pa.field(BRANCH, pa.int32())])


def branched(branch: int, found: Tuples, names: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Return the rows of one branch with the columns of all."""
    count = len(found)
    columns = {branch_name(branch, name): found.columns[name] for name in names}
    columns[BRANCH] = pa.array(np.full(count, branch, np.int32))
    return pa.table(
        [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(count, field.type)
            for field in schema
        ],
        schema=schema,
    )
