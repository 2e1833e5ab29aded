"""The results of several searches as rows of one table: which columns are whose, and whose a row is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.kernels.core.kernel import Tuples
from millstream.kernels.specs import PatternSpec

BRANCH = "__ms_branch"
"""A column that tells whose result a row is."""


@dataclass(frozen=True)
class Branch:
    """One of the searches, and the columns of its results."""

    spec: PatternSpec
    output: pa.Schema


def branch_name(branch: int, name: str) -> str:
    """A column of one branch among those of all."""
    return f"b{branch}_{name}"


def branched_schema(outputs: Sequence[pa.Schema]) -> pa.Schema:
    """The columns of all branches, and which of them a row has."""
    fields = [
        pa.field(branch_name(i, field.name), field.type)
        for i, output in enumerate(outputs)
        for field in output
    ]
    return pa.schema([*fields, pa.field(BRANCH, pa.int32())])


def branched(branch: int, found: Tuples, names: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Columns of what one branch has found, among those of all."""
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
