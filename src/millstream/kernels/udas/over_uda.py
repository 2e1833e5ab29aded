"""OverUda: window UDAs over the tuple and those before it in its partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.buffers import NO_INTEGERS, Buffer, Codes, Integers, frozen
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.core.time_order import as_order, earlier, order_of
from millstream.kernels.python_udas.user_traceback import PythonAggregateError
from millstream.kernels.specs import OverUdaSpec
from millstream.kernels.udas.compiled_machine import Returned, UserAggregateError
from millstream.kernels.udas.machine_state import MachineState
from millstream.kernels.udas.pane_uda import PaneUda
from millstream.kernels.udas.returned_rows import expanded, listed, located, merged


class OverUda(Kernel):
    """A kernel that takes tuples in order; each comes out once for every row that the UDAs return for it.

    With ``together`` it comes out once, with all returned rows in lists: another kernel then selects the
    tuples that give results.
    """

    def __init__(self, calls: Sequence[OverUdaSpec], *, together: bool = False) -> None:
        self._users = [user for spec in calls for user in spec.members or (spec.user,)]
        self._together = together
        self._windows = [_window(spec, f"user{i}") for i, spec in enumerate(calls)]

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        returned = [part for window in self._windows for part in window.process(tuples, frontier)]
        return (listed if self._together else expanded)(tuples, returned, self._users)

    def snapshot(self) -> Change:
        return merged(window.snapshot() for window in self._windows)

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        for window in self._windows:
            window.restore(meta, chunks)

    @property
    def rows(self) -> int:
        return sum(window.rows for window in self._windows)


def _window(spec: OverUdaSpec, prefix: str) -> _Window | PaneUda:
    return _Window(spec, prefix) if spec.panes is None else PaneUda(spec, spec.panes, prefix)


class _Window:
    """One call, or several that share it, with its window."""

    def __init__(self, spec: OverUdaSpec, prefix: str) -> None:
        self._spec = spec
        self.state = MachineState(spec.user.program, prefix)
        self._times, self._codes = Buffer(np.int64), Buffer(np.int32)
        """Time and instance of each tuple in a window of time, until it has expired."""

        self._is_float = False

    def process(self, tuples: Tuples, frontier: Frontier) -> list[Returned]:
        spec, state = self._spec, self.state
        self._is_float = tuples.time.dtype == np.float64
        codes = state.codes(tuples.columns)
        arguments: tuple[Any, ...] = (codes,)
        mode = spec.user.program.mode
        if mode in ("rows", "range"):
            arguments = self._bounds(tuples, codes)
        elif mode == "tumble":
            assert spec.rows is not None
            arguments = codes, np.int64(spec.rows + 1), np.int64(spec.slide), np.int64(1)
        parameters = state.machine.encoded(tuples.columns, spec.user.arguments)
        try:
            returned = state.machine.call("run", len(tuples), arguments, parameters)
        except UserAggregateError as failure:
            raise located(failure, tuples, spec.user.arguments) from None
        if not frontier.is_end:
            if spec.range is not None:
                self._expire(frontier)
            if state.is_wasteful():
                state.start_over()
                self._remember()
        return self._apart(returned) if spec.members else [returned]

    def _apart(self, returned: Returned) -> list[Returned]:
        """Split the rows of several UDAs."""
        whose = np.asarray(returned.columns[0])
        parts, first = [], 1
        for number, member in enumerate(self._spec.members):
            rows = np.flatnonzero(whose == number)
            last = first + len(member.program.returns)
            columns = tuple(column.take(pa.array(rows)) for column in returned.columns[first:last])
            parts.append(Returned(returned.sources[rows], columns))
            first = last
        return parts

    def _bounds(self, tuples: Tuples, codes: Codes) -> tuple[Any, ...]:
        """Return the positions of tuples, the starts of their windows, the rows in them, and the slides."""
        if self._spec.range is None:
            none = frozen(NO_INTEGERS)
            return codes, none, none, np.int64(self._spec.rows or 0), np.int64(self._spec.slide)
        order = as_order(tuples.time)
        bounds = earlier(order, self._is_float, self._spec.range)
        self._times.extend(order)
        self._codes.extend(codes)
        return codes, frozen(order), frozen(bounds), np.int64(0), np.int64(1)

    def _expire(self, frontier: Frontier) -> None:
        """Expire tuples that are too old for all to come, so that idle partitions are deleted too."""
        assert self._spec.range is not None
        now = np.array([order_of(frontier.time, self._is_float)])
        bound = int(earlier(now, self._is_float, self._spec.range)[0])
        count = int(np.searchsorted(self._times.view, bound, "left"))
        if not count:
            return
        codes = np.unique(self._codes.view[:count])
        self._times, self._codes = _rest(self._times, count), _rest(self._codes, count)
        self.state.touch(codes)
        bounds = frozen(np.full(len(codes), bound))
        try:
            self.state.machine.call("sweep", len(codes), (codes, bounds))
        except PythonAggregateError:
            raise
        except UserAggregateError as failure:
            raise UserAggregateError(
                failure.aggregate, failure.statement, f"{failure.reason} (as a tuple leaves)", -1
            ) from None

    def _remember(self) -> None:
        """Rebuild the times of tuples in the window, from the state of instances and their tuples."""
        self._times, self._codes = Buffer(np.int64), Buffer(np.int32)
        if self._spec.range is None or self._spec.user.program.mode != "range":
            return
        machine = self.state.machine
        alive = np.flatnonzero(machine.instances["alive"]).astype(np.int32)
        times, codes = [machine.instances["latest"][alive]], [alive]
        for table in machine.kept:
            if table.is_window:
                places, owners = table.places()
                times.append(places)
                codes.append(owners)
        every, whose = np.concatenate(times), np.concatenate(codes)
        order = np.argsort(every, kind="stable")
        self._times.extend(every[order])
        self._codes.extend(whose[order])

    @property
    def rows(self) -> int:
        return self.state.rows

    def snapshot(self) -> Change:
        return self.state.snapshot()

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self.state.restore(meta, chunks)
        self._remember()


def _rest(buffer: Buffer, count: int) -> Buffer:
    rest = Buffer(buffer.data.dtype)
    rest.extend(buffer.view[count:])
    return rest


__all__ = ["Integers", "OverUda"]
