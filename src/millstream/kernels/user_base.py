"""BaseAggregate: a base aggregate of the user's, on a stream or a table, for each group an instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.base import Change, Frontier, Kernel, Tuples
from millstream.kernels.specs import UserSpec
from millstream.kernels.user_machine import UserFailure
from millstream.kernels.user_state import UserState


class BaseAggregate(Kernel):
    """Takes tuples in order; each comes out as often as the aggregate returns something for it.

    At the end of the input TERMINATE runs for each group; what it returns comes with the group's last tuple.
    """

    def __init__(self, spec: UserSpec, *, terminates: bool = False) -> None:
        self._spec = spec
        self._state = UserState(spec.program, "user")
        self._terminates = terminates
        self._lasts: Tuples | None = None

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        state = self._state
        codes = state.codes(tuples.columns)
        machine = state.machine
        parameters = machine.encoded(tuples.columns, self._spec.arguments)
        try:
            returned = machine.call("run", len(tuples), (codes,), parameters)
        except UserFailure as failure:
            raise located(failure, tuples) from None
        out = expanded(tuples, returned, self._spec)
        if state.is_wasteful() and not frontier.is_end:
            state.start_over()
        return out

    def snapshot(self) -> Change:
        return self._state.snapshot()

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._state.restore(meta, chunks)

    @property
    def rows(self) -> int:
        return self._state.rows


def expanded(tuples: Tuples, returned: Any, spec: UserSpec) -> Tuples:
    """Tuples with what was returned for them."""
    out = tuples.take(np.asarray(returned.sources, np.int64))
    columns = out.columns
    for name, column in zip(spec.results, returned.columns, strict=True):
        columns = columns.append_column(name, column)
    return Tuples(columns, out.time, out.origin, out.number)


def located(failure: UserFailure, tuples: Tuples) -> UserFailure:
    """A failure that names the tuple at which it happened."""
    row = tuples.columns.slice(failure.row, 1)
    shown = ", ".join(
        f"{name}={row[name][0].as_py()!r}" for name in row.column_names if not name.startswith("__ms")
    )
    return UserFailure(failure.aggregate, failure.statement, f"{failure.reason} (for the tuple {shown})", failure.row)
