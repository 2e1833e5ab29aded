"""Beside: kernels that take the same tuples, so that these are packed, judged and put in order once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.base import Change, Frontier, Kernel, Tuples

BRANCH = "__ms_branch"
"""A column that tells whose result a row is."""


@dataclass(frozen=True)
class Branch:
    """One of the kernels, and the columns of its results."""

    make: Callable[[], Kernel]
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


class Beside(Kernel):
    """Gives every tuple to all branches. The results of one come after those of another."""

    def __init__(self, branches: tuple[Branch, ...]) -> None:
        self._kernels = [branch.make() for branch in branches]
        self._outputs = [branch.output for branch in branches]
        self._schema = branched_schema(self._outputs)

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        found = [kernel.process(tuples, frontier) for kernel in self._kernels]
        return Tuples(
            pa.concat_tables([self._table(branch, part) for branch, part in enumerate(found)]),
            np.concatenate([part.time for part in found]),
            np.concatenate([part.origin for part in found]),
            np.concatenate([part.number for part in found]),
        )

    def _table(self, branch: int, part: Tuples) -> pa.Table:
        count = len(part)
        columns: dict[str, Any] = {
            branch_name(branch, name): part.columns[name] for name in self._outputs[branch].names
        }
        columns[BRANCH] = pa.array(np.full(count, branch, np.int32))
        return pa.table(
            [
                columns[field.name].cast(field.type) if field.name in columns else pa.nulls(count, field.type)
                for field in self._schema
            ],
            schema=self._schema,
        )

    def passes(self, frontier: Frontier) -> Frontier:
        return min(kernel.passes(frontier) for kernel in self._kernels)

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        changes = [kernel.snapshot() for kernel in self._kernels]
        return Change(
            {
                f"{i}/{name}": chunk
                for i, change in enumerate(changes)
                for name, chunk in change.added.items()
            },
            tuple(f"{i}/{name}" for i, change in enumerate(changes) for name in change.dropped),
            {str(i): dict(change.meta) for i, change in enumerate(changes)},
        )

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        for i, kernel in enumerate(self._kernels):
            prefix = f"{i}/"
            own = {name: chunk for name, chunk in chunks.items() if name.startswith(prefix)}
            kernel.restore(meta[str(i)], {name.removeprefix(prefix): chunk for name, chunk in own.items()})

    @property
    def rows(self) -> int:
        return sum(kernel.rows for kernel in self._kernels)
