"""Panes: a UDA that is computed from the results of parts of its windows.

The tuples of a partition are cut into panes of a fixed number. Of a full pane only its result is kept; the
combining UDA takes the results of panes as it would take tuples (ESL paper, section 5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.column_names import KEY, KEY2
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.buffers import frozen
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.specs import OverUdaSpec, PaneSpec
from millstream.kernels.udas.compiled_machine import Returned, UserAggregateError
from millstream.kernels.udas.machine_state import MachineState
from millstream.kernels.udas.returned_rows import converted, located, merged


class PaneUda:
    """One call over windows of panes."""

    def __init__(self, spec: OverUdaSpec, panes: PaneSpec, prefix: str) -> None:
        self._spec, self._panes = spec, panes
        self._filling = MachineState(panes.program, f"{prefix}-pane")
        self._combining = MachineState(spec.user.program, prefix)

    def process(self, tuples: Tuples, frontier: Frontier) -> list[Returned]:
        panes = self._panes
        codes = self._filling.codes(tuples.columns)
        parameters = self._filling.machine.encoded(tuples.columns, self._spec.user.arguments)
        arguments = codes, np.int64(panes.size), np.int64(panes.size), np.int64(0)
        try:
            filled = self._filling.machine.call("run", len(tuples), arguments, parameters)
            returned = self._combined(tuples, filled)
        except UserAggregateError as failure:
            raise located(failure, tuples, self._spec.user.arguments) from None
        if not frontier.is_end:
            for state in (self._filling, self._combining):
                if state.is_wasteful():
                    state.start_over()
        return [returned]

    def _combined(self, tuples: Tuples, filled: Returned) -> Returned:
        """Return the rows for the last tuples of panes."""
        panes, machine = self._panes, self._combining.machine
        table = self._as_tuples(tuples.columns.take(pa.array(filled.sources)), filled)
        codes = self._combining.codes(table)
        bounds = filled.times - (panes.count - 1)
        every = np.int64(panes.every if machine.program.mode == "again" else 1)
        arguments = codes, frozen(filled.times), frozen(bounds), np.int64(0), every
        try:
            returned = machine.call("run", len(filled), arguments, machine.encoded(table, self._names))
        except UserAggregateError as failure:
            row = int(filled.sources[failure.row])
            raise UserAggregateError(failure.aggregate, failure.statement, failure.reason, row) from None
        # Of a pane that has several rows as its result, the last one tells.
        is_last = np.append(filled.sources[1:] != filled.sources[:-1], True)
        is_heard = is_last & ((filled.times + 1) % panes.every == 0)
        chosen = np.flatnonzero(is_heard[returned.sources])
        columns = tuple(column.take(pa.array(chosen)) for column in returned.columns)
        return Returned(filled.sources[returned.sources[chosen]], columns)

    @property
    def _names(self) -> list[str]:
        return [f"pane{i}" for i in range(len(self._spec.user.program.parameters))]

    def _as_tuples(self, lasts: pa.Table, filled: Returned) -> pa.Table:
        """Return the results of panes as tuples of the same partitions."""
        kept = lasts.select([name for name in (KEY, KEY2) if name in lasts.column_names])
        for name, column, parameter in zip(
            self._names, filled.columns, self._spec.user.program.parameters, strict=True
        ):
            type_ = arrow_type(parameter.type)
            taken = converted(self._spec.user.program.name, column, type_, filled.sources)
            kept = kept.append_column(name, taken)
        return kept

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        return merged([self._filling.snapshot(), self._combining.snapshot()])

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._filling.restore(meta, chunks)
        self._combining.restore(meta, chunks)

    @property
    def rows(self) -> int:
        return self._filling.rows + self._combining.rows
