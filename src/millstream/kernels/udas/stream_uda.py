"""BaseAggregate: base UDAs on a stream, with an instance for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.specs import UdaSpec
from millstream.kernels.udas.compiled_machine import UserAggregateError
from millstream.kernels.udas.machine_state import MachineState
from millstream.kernels.udas.returned_rows import counted, expanded, located, merged


class BaseAggregate(Kernel):
    """A kernel that takes tuples in order; each comes out once for every row that the UDAs return for it."""

    def __init__(self, calls: Sequence[UdaSpec]) -> None:
        self._specs = tuple(calls)
        self._states = [MachineState(spec.program, f"user{i}") for i, spec in enumerate(calls)]

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        returned = []
        for spec, state in zip(self._specs, self._states, strict=True):
            seen, rows = counted(tuples, spec.condition)
            codes = state.codes(seen.columns)
            parameters = state.machine.encoded(seen.columns, spec.arguments)
            try:
                own = state.machine.call("run", len(seen), (codes,), parameters)
            except UserAggregateError as failure:
                raise located(failure, seen, spec.arguments) from None
            returned.append(
                own if rows is None else replace(own, sources=rows[own.sources], is_one_each=False)
            )
            if state.is_wasteful() and not frontier.is_end:
                state.start_over()
        return expanded(tuples, returned, self._specs)

    def snapshot(self) -> Change:
        return merged(state.snapshot() for state in self._states)

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        for state in self._states:
            state.restore(meta, chunks)

    @property
    def rows(self) -> int:
        return sum(state.rows for state in self._states)
